"""How a sweep stands: runs by state, and what failed with which error."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mkldist.errors import StoreError
from mkldist.results.output import MANIFEST, OWNER, OutputFolder, manifest_name, no_folder
from mkldist.results.records import RecordStore
from mkldist.results.state import RunState
from mkldist.results.tree import RESULTS, locate
from mkldist.results.tree_index import TreeIndex


@dataclass(frozen=True)
class FailedRun:
    """A run that is recorded as failed.

    Parameters
    ----------
    id : str
        Its id.
    node : str
        Path of its method's node in the results.
    split : int
        Index of its split.
    params : dict of str to object
        Parameters of its method.
    error : str
        Why it failed.
    """

    id: str
    node: str
    split: int
    params: Mapping[str, object]
    error: str


@dataclass(frozen=True)
class SweepStatus:
    """How a sweep stands.

    Parameters
    ----------
    name : str
        Name of the sweep.
    path : Path
        Its output folder.
    counts : mapping of RunState to int
        Runs by state; planned runs without an outcome are waiting.
    by_node : mapping of str to mapping of RunState to int
        The same for each ``<dataset>/<method>``.
    failed : tuple of FailedRun
        The failed runs.
    is_active : bool
        Whether a process on this machine is at work on the sweep now.
    """

    name: str
    path: Path
    counts: Mapping[RunState, int]
    by_node: Mapping[str, Mapping[RunState, int]]
    failed: tuple[FailedRun, ...]
    is_active: bool

    @property
    def n_runs(self) -> int:
        """Number of planned runs."""
        return sum(self.counts.values())

    @property
    def is_finished(self) -> bool:
        """Whether every planned run has an outcome."""
        return self.n_runs > 0 and not self.counts.get(RunState.WAITING, 0)


def sweep_status(path: str | Path) -> SweepStatus:
    """Return how the sweep of an output folder stands, whether or not it is at work.

    Outcomes are taken from the records, which are ahead of the tree of results.

    Parameters
    ----------
    path : str or Path
        The output folder, or the ``results.zarr`` in it.

    Raises
    ------
    mkldist.errors.StoreError
        When no sweep wrote there, or what it wrote is damaged.
    """
    given = Path(path)
    folder = OutputFolder(given.parent if given.name == RESULTS else given)
    if not folder.manifest.is_file():
        raise StoreError(
            str(given),
            f"no {MANIFEST} here" if given.is_dir() else no_folder(given),
            "the output folder of a sweep",
        )
    records = RecordStore(folder.records)
    nodes = _planned(folder)
    recorded = records.ids()
    by_node: dict[str, Counter[RunState]] = {}
    failed = []
    for run_id, node in nodes.items():
        state = recorded.get(run_id, RunState.WAITING)
        by_node.setdefault(node, Counter())[state] += 1
        if state is RunState.FAILED:
            failed.append(_failed_run(records, run_id, node))
    total: Counter[RunState] = sum(by_node.values(), Counter())
    return SweepStatus(
        name=manifest_name(folder.path),
        path=folder.path,
        counts=dict(total),
        by_node={node: dict(counts) for node, counts in sorted(by_node.items())},
        failed=tuple(sorted(failed, key=lambda run: (run.node, run.split, run.id))),
        is_active=_is_active(folder),
    )


def _planned(folder: OutputFolder) -> dict[str, str]:
    """Return the node of every planned run; none before the sweep has planned."""
    if not folder.results.is_dir():
        return {}
    index = TreeIndex(locate(folder.path))
    return {run_id: node for run_id, (node, _) in index.places.items()}


def _failed_run(records: RecordStore, run_id: str, node: str) -> FailedRun:
    record = records.read(run_id)
    if record is None:
        return FailedRun(run_id, node, -1, {}, "its record is damaged: it will be run again")
    return FailedRun(run_id, node, record.split, record.params, record.error)


def _is_active(folder: OutputFolder) -> bool:
    """Tell from the owner's note whether its process lives; false on another machine."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        owner = json.loads((folder.path / OWNER).read_text())
        if owner["host"] != socket.gethostname():
            return False
        try:
            os.kill(int(owner["pid"]), 0)
        except PermissionError:
            return True  # it lives and is another user's
        return True
    return False
