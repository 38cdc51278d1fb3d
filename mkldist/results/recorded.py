"""Runs of a plan in an output folder: how many are recorded, and which lack what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mkldist.planning.model import Plan
from mkldist.results.output import OutputFolder
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.schema import COEFFICIENTS, DECISION_VALUES
from mkldist.results.state import RunState
from mkldist.results.zarr_documents import read_root


@dataclass(frozen=True)
class Recorded:
    """Numbers of recorded runs.

    Parameters
    ----------
    path : Path
        The output folder.
    total, failed : int
        Runs of the plan that are recorded, and those of them that failed.
    others : int
        Recorded runs that are not in the plan.
    changed : tuple of str
        Lines on files of data that changed since the runs.
    """

    path: Path
    total: int
    failed: int
    others: int
    changed: tuple[str, ...] = ()


def recorded_runs(plan: Plan, path: Path) -> Recorded:
    """Count the recorded runs of a plan in a folder, if any, by the names of records; read none."""
    states = RecordStore(OutputFolder(path).records).ids()
    planned = {run.id for run in plan.runs}
    own = [state for run_id, state in states.items() if run_id in planned]
    return Recorded(path, len(own), own.count(RunState.FAILED), len(states) - len(own))


def lacking_runs(plan: Plan, store: RecordStore, tree: Path) -> list[str]:
    """Return the complete runs whose predictions or coefficients are asked for and were not kept.

    A tree, if there is one, that has a place for them was made when they were asked for: only then
    are records not read.
    """
    outputs = plan.spec.outputs
    if not (outputs.predictions or outputs.coefficients):
        return []
    places = _variables(tree)
    lacks: list[Callable[[RunRecord], bool]] = []
    if outputs.predictions and DECISION_VALUES.name not in places:
        lacks.append(lambda record: not record.test_rows.size)
    if outputs.coefficients and COEFFICIENTS.name not in places:
        lacks.append(lambda record: not record.train_rows.size)
    if not lacks:
        return []
    recorded = store.ids()
    records = (store.read(run.id) for run in plan.runs if run.id in recorded)
    return [
        record.id
        for record in records
        if record is not None
        and record.state is RunState.COMPLETE
        and any(lack(record) for lack in lacks)
    ]


def _variables(tree: Path) -> set[str]:
    """Return the names of the arrays of a tree; none if it is missing or damaged."""
    try:
        documents = read_root(tree)["consolidated_metadata"]["metadata"]
    except (ValueError, OSError, KeyError):
        return set()
    return {path.rpartition("/")[2] for path in documents}
