"""Progress of a sweep: its runs by state, the errors of failed runs, and its process."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mkldist.errors import StoreError
from mkldist.results.manifest import MANIFEST, manifest_name
from mkldist.results.notes import AtWork, read_work_note
from mkldist.results.output import Claim, OutputFolder, claim_on, no_folder
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.schema import MOST_RUNS
from mkldist.results.snapshot import Snapshot
from mkldist.results.state import RunState
from mkldist.results.tree import RESULTS, locate
from mkldist.results.tree_index import TreeIndex
from mkldist.results.zarr_documents import read_root


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
        Its hyperparameters.
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
    at_work : tuple of AtWork
        Runs that are being done, and banks that are being built, as that process last said; empty
        if it has ended.
    others : int
        Recorded runs that are not in the plan of the last call.
    most_runs : int
        As many runs as a search may have, of which it has planned some; 0 without a search.
    held : Snapshot or None
        What the folder holds, from which this is told; None without a tree.
    without_tree : int or None
        Recorded runs of a folder without a tree, which no other number counts; None with a tree.
        A sweep makes its tree before its first run.
    """

    name: str
    path: Path
    counts: Mapping[RunState, int]
    by_node: Mapping[str, Mapping[RunState, int]]
    failed: tuple[FailedRun, ...]
    claim: Claim | None
    at_work: tuple[AtWork, ...] = ()
    others: int = 0
    most_runs: int = 0
    held: Snapshot | None = field(default=None, repr=False, compare=False)
    without_tree: int | None = None

    @property
    def n_runs(self) -> int:
        """Number of planned runs."""
        return sum(self.counts.values())


def sweep_status(path: str | Path) -> SweepStatus:
    """Return the progress of the sweep in an output folder, running or not.

    Outcomes are taken from the records, which are ahead of the tree of results.

    Raises
    ------
    mkldist.errors.StoreError
        If no sweep wrote there, or its files are damaged.
    """
    given = Path(path)
    folder = OutputFolder(given.parent if given.name == RESULTS else given)
    if not os.path.lexists(folder.manifest):
        raise StoreError(
            str(given),
            f"no {MANIFEST} here" if given.is_dir() else no_folder(given),
            "the output folder of a sweep",
        )
    # The tree is made after the manifest: a sweep that is still planning has no runs.
    held = Snapshot.of(locate(folder.path)) if folder.results.is_dir() else None
    index, recorded = (held.index, held.recorded) if held else (None, {})
    places = index.places if index else {}
    by_node: dict[str, Counter[RunState]] = {}
    failed = []
    records = RecordStore(folder.records)
    for run_id, (node, place) in places.items():
        state = recorded.get(run_id, RunState.WAITING)
        by_node.setdefault(node, Counter())[state] += 1
        if state is RunState.FAILED:
            error, params = _failure(records.read(run_id), _varied(index, node))
            failed.append(FailedRun(run_id, node, place[0], params, error))
    total: Counter[RunState] = sum(by_node.values(), Counter())
    claim = claim_on(folder.path)
    ended = claim is None or claim.is_live is False
    return SweepStatus(
        name=manifest_name(folder.path),
        path=folder.path,
        counts=dict(total),
        by_node={node: dict(counts) for node, counts in sorted(by_node.items())},
        failed=tuple(sorted(failed, key=lambda run: (run.node, run.split, run.id))),
        claim=claim,
        at_work=() if ended else tuple(read_work_note(folder.path)),
        others=held.n_others if held else 0,
        most_runs=_most_runs(index),
        held=held,
        without_tree=None if held else len(records.ids()),
    )


def _most_runs(index: TreeIndex | None) -> int:
    """Return how many runs a search may have; 0 without a search."""
    return 0 if index is None else int(read_root(index.path)["attributes"].get(MOST_RUNS, 0))


def _varied(index: TreeIndex | None, node: str) -> list[str]:
    """Return the dims of a node, and its coordinates, which for trials are hyperparameters."""
    return [] if index is None else [*index.nodes[node], *index.coordinates(node)]


def _failure(record: RunRecord | None, names: Collection[str]) -> tuple[str, dict[str, object]]:
    """Return the error of a failed run, and those of its parameters that vary."""
    if record is None:
        return "its record is damaged: it will be run again", {}
    return record.error, {name: record.params[name] for name in names if name in record.params}
