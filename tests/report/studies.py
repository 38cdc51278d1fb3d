"""Facts of scaling studies that were made up."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from mkldist.report.facts import Facts
from mkldist.report.scaling_study import ScalingStudy
from mkldist.results.status import SweepStatus


def facts_of(tree: xr.DataTree) -> Facts:
    """Return facts of a tree in memory."""
    path = Path("results") / "ring"
    return Facts(tree, SweepStatus("ring", path, counts={}, by_node={}, failed=(), claim=None))


def study_of(tree: xr.DataTree) -> ScalingStudy:
    """Return the study of a tree in memory."""
    facts = facts_of(tree)
    return ScalingStudy(facts, facts.growths)
