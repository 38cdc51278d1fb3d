"""Progress of a sweep: its runs by state, the errors of failed runs, and its process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mkldist.errors import StoreError
from mkldist.results.output import (
    MANIFEST,
    Claim,
    OutputFolder,
    claim_on,
    manifest_name,
    no_folder,
)
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
        The error.
    """

    id: str
    node: str
    split: int
    params: Mapping[str, object]
    error: str


@dataclass(frozen=True)
class SweepStatus:
    """Progress of a sweep.

    Parameters
    ----------
    name : str
        Name of the sweep.
    path : Path
        Its output folder.
    counts : mapping of RunState to int
        Runs by state.  A run waits until its outcome is recorded, also while it is computed.
    by_node : mapping of str to mapping of RunState to int
        The same for each ``<dataset>/<method>``.
    failed : tuple of FailedRun
        The failed runs.
    claim : Claim or None
        The process that claimed the folder, which may have ended since.
    """

    name: str
    path: Path
    counts: Mapping[RunState, int]
    by_node: Mapping[str, Mapping[RunState, int]]
    failed: tuple[FailedRun, ...]
    claim: Claim | None

    @property
    def n_runs(self) -> int:
        """Number of planned runs."""
        return sum(self.counts.values())


def sweep_status(path: str | Path) -> SweepStatus:
    """Return the progress of the sweep in an output folder, running or not.

    Outcomes are taken from the records, which are ahead of the tree of results.

    Parameters
    ----------
    path : str or Path
        The output folder, or the ``results.zarr`` in it.

    Raises
    ------
    mkldist.errors.StoreError
        If no sweep wrote there, or its files are damaged.
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
        claim=claim_on(folder.path),
    )


def _planned(folder: OutputFolder) -> dict[str, str]:
    """Return the node of every planned run, or nothing before the tree of results is made."""
    if not folder.results.is_dir():
        return {}
    index = TreeIndex(locate(folder.path))
    return {run_id: node for run_id, (node, _) in index.places.items()}


def _failed_run(records: RecordStore, run_id: str, node: str) -> FailedRun:
    record = records.read(run_id)
    if record is None:
        return FailedRun(run_id, node, -1, {}, "its record is damaged: it will be run again")
    return FailedRun(run_id, node, record.split, record.params, record.error)
