"""Progress of a sweep: its runs by state, the errors of failed runs, and its process."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mkldist.errors import StoreError
from mkldist.results.journal import Journal
from mkldist.results.layout_file import LAYOUT
from mkldist.results.manifest import MANIFEST, manifest_name
from mkldist.results.notes import AtWork, read_work_note
from mkldist.results.output import Claim, OutputFolder, claim_on, no_folder
from mkldist.results.schema import MOST_RUNS
from mkldist.results.state import RunState
from mkldist.results.tree import Snapshot


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
        What the folder holds, from which this is told; None without a layout.
    without_layout : int or None
        Recorded runs of a folder without a layout, which no other number counts; None with one.
        A sweep writes its layout before its first run.
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
    without_layout: int | None = None

    @property
    def n_runs(self) -> int:
        """Number of planned runs."""
        return sum(self.counts.values())


def sweep_status(path: str | Path) -> SweepStatus:
    """Return the progress of the sweep in an output folder, running or not.

    Raises
    ------
    mkldist.errors.StoreError
        If no sweep wrote there, or its files are damaged.
    """
    folder = OutputFolder(Path(path))
    if not os.path.lexists(folder.manifest):
        raise StoreError(
            str(path),
            f"no {MANIFEST} here" if folder.path.is_dir() else no_folder(folder.path),
            "the output folder of a sweep",
        )
    # The layout is written after the manifest: a sweep that is still planning has no runs.
    held = Snapshot.of(folder.path) if (folder.path / LAYOUT).exists() else None
    by_node: dict[str, Counter[RunState]] = {}
    failed = []
    for node in held.layout.nodes if held else ():
        counts = by_node.setdefault(node.path, Counter())
        varied = [*node.dims, *node.coordinates]
        for place, run_id in node.places():
            record = held.records.get(run_id) if held else None
            counts[RunState.WAITING if record is None else record.state] += 1
            if record is not None and record.state is RunState.FAILED:
                params = {name: record.params[name] for name in varied if name in record.params}
                failed.append(FailedRun(run_id, node.path, place[0], params, record.error))
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
        most_runs=int(held.layout.attributes.get(MOST_RUNS, 0)) if held else 0,
        held=held,
        without_layout=None if held else len(Journal(folder.records).states()),
    )
