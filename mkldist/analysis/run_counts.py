"""How many runs of a tree of results have which state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mkldist.results.node_arrays import nodes_of
from mkldist.results.schema import STATE
from mkldist.results.state import RunState

if TYPE_CHECKING:
    import xarray as xr


class RunCounts(NamedTuple):
    """Numbers of runs by state."""

    complete: int
    failed: int
    waiting: int


def run_counts(tree: xr.DataTree) -> RunCounts:
    """Return how many runs of a tree have which state."""
    nodes = nodes_of(tree, [STATE.name])
    states = np.concatenate([node.values[STATE.name][node.planned] for node in nodes])
    complete, failed = ((states == s.value).sum() for s in (RunState.COMPLETE, RunState.FAILED))
    return RunCounts(int(complete), int(failed), int(len(states) - complete - failed))
