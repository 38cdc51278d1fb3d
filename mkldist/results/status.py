"""Progress of a sweep: its runs by state, the errors of failed runs, and its process."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.compiled import without_garbage_collection
from mkldist.core.wording import pluralize
from mkldist.errors import StoreError
from mkldist.results.folder import (
    MANIFEST,
    AtWork,
    Claim,
    OutputFolder,
    claim_on,
    no_folder,
    read_manifest,
    read_work_note,
)
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import LAYOUT, read_layout
from mkldist.results.schema import COEFFICIENTS, DECISION_VALUES, MOST_RUNS, RunState
from mkldist.results.tree import Snapshot

if TYPE_CHECKING:
    from mkldist.planning.model import Plan


@dataclass(frozen=True)
class FailedRun:
    """A run that is recorded as failed."""

    id: str  # Its id
    node: str  # Path of its method's node in the results
    split: int  # Index of its split
    params: Mapping[str, object]  # Its hyperparameters
    error: str  # The error


@dataclass(frozen=True)
class SweepStatus:
    """Progress of a sweep."""

    name: str  # Name of the sweep
    path: Path  # Its output folder
    # Runs by state. A run waits until its outcome is recorded, also while it is computed
    counts: Mapping[RunState, int]
    by_node: Mapping[str, Mapping[RunState, int]]  # The same for each `<dataset>/<method>`
    failed: tuple[FailedRun, ...]  # The failed runs
    claim: Claim | None  # The process that claimed the folder, which may have ended since
    # Runs that are being done, and banks that are being built, as that process last said;
    # empty if it has ended
    at_work: tuple[AtWork, ...] = ()
    others: int = 0  # Recorded runs that are not in the plan of the last call
    # As many runs as a search may have, of which it has planned some; 0 without a search
    most_runs: int = 0
    # What the folder holds, from which this is told; None without a layout
    held: Snapshot | None = field(default=None, repr=False, compare=False)
    # Recorded runs of a folder without a layout, which no other number counts; None with
    # one. A sweep writes its layout before its first run
    without_layout: int | None = None
    n_damaged: int = 0  # Damaged records, whose runs count as waiting; of bodies `verify` tells

    @property
    def n_runs(self) -> int:
        """Number of planned runs."""
        return sum(self.counts.values())


@without_garbage_collection()
def sweep_status(path: str | Path) -> SweepStatus:
    """Return the progress of the sweep in an output folder, running or not."""
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
            record = held.runs.get(run_id) if held else None
            counts[RunState.WAITING if record is None else record.state] += 1
            if record is not None and record.state is RunState.FAILED:
                params = {name: record.params[name] for name in varied if name in record.params}
                failed.append(FailedRun(run_id, node.path, place[0], params, record.error))
    total: Counter[RunState] = sum(by_node.values(), Counter())
    claim = claim_on(folder.path)
    ended = claim is None or claim.is_live is False
    store = held.store if held else Journal(folder.records)
    return SweepStatus(
        name=read_manifest(folder.path).sweep,
        path=folder.path,
        counts=dict(total),
        by_node={node: dict(counts) for node, counts in sorted(by_node.items())},
        failed=tuple(sorted(failed, key=lambda run: (run.node, run.split, run.id))),
        claim=claim,
        at_work=() if ended else tuple(read_work_note(folder.path)),
        others=held.n_others if held else 0,
        most_runs=int(held.layout.attributes.get(MOST_RUNS, 0)) if held else 0,
        held=held,
        without_layout=None if held else len(store.states()),
        n_damaged=store.n_damaged,
    )


def traceback_of(status: SweepStatus, run: FailedRun) -> str:
    """Return the traceback of a failed run; empty if the record has none or is gone."""
    record = status.held.store.read(run.id) if status.held else None
    return "" if record is None else str(record.provenance.get("traceback", ""))


@dataclass(frozen=True)
class Recorded:
    """Numbers of recorded runs."""

    path: Path  # The output folder
    total: int  # Runs of the plan that are recorded, and those of them that failed
    failed: int
    others: int  # Recorded runs that are not in the plan
    changed: tuple[str, ...] = ()  # Lines on files of data that changed since the runs


def recorded_runs(plan: Plan, path: Path) -> Recorded:
    """Count the recorded runs of a plan in a folder, if any, by the names of records; read none."""
    states = Journal(OutputFolder(path).records).states()
    planned = {run.id for run in plan.runs}
    own = [state for run_id, state in states.items() if run_id in planned]
    return Recorded(path, len(own), own.count(RunState.FAILED), len(states) - len(own))


def lacking_runs(plan: Plan, store: Journal, folder: Path) -> list[str]:
    """Return the complete runs whose predictions or coefficients are asked for and were not kept.

    A layout, if there is one, that has a place for them was made when they were asked for: only
    then are records not read.
    """
    outputs = plan.spec.outputs
    if not (outputs.predictions or outputs.coefficients):
        return []
    places = set()
    with suppress(StoreError):  # of a layout that is missing or damaged
        places = {variable.name for one in read_layout(folder).nodes for variable in one.variables}
    lacks: list[Callable[[RunRecord], bool]] = []
    if outputs.predictions and DECISION_VALUES.name not in places:
        lacks.append(lambda record: not record.test_rows.size)
    if outputs.coefficients and COEFFICIENTS.name not in places:
        lacks.append(lambda record: not record.train_rows.size)
    if not lacks:
        return []
    recorded = store.states()
    records = (store.read(run.id) for run in plan.runs if run.id in recorded)
    return [
        record.id
        for record in records
        if record is not None
        and record.state is RunState.COMPLETE
        and any(lack(record) for lack in lacks)
    ]


def others_words(count: int) -> str:
    """Return a sentence on recorded runs that have no place in the results; nothing without any."""
    if not count:
        return ""
    runs = pluralize(count, "recorded run")
    return (
        f"without {runs} of settings, splits or data that the sweep no longer has; "
        "they count again if it has them again"
    )
