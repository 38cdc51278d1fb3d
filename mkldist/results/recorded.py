"""Runs of a plan in an output folder: how many are recorded, and which lack what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.wording import pluralize
from mkldist.errors import StoreError
from mkldist.results.journal import Journal
from mkldist.results.layout_file import read_layout
from mkldist.results.output import OutputFolder
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import COEFFICIENTS, DECISION_VALUES
from mkldist.results.state import RunState

if TYPE_CHECKING:
    from mkldist.planning.model import Plan


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
    places = _variables(folder)
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


def _variables(folder: Path) -> set[str]:
    """Return the names of the variables of runs; none if the layout is missing or damaged."""
    try:
        return {variable.name for node in read_layout(folder).nodes for variable in node.variables}
    except StoreError:
        return set()


def other_runs(folder: Path) -> int:
    """Return how many recorded runs have no place in the results.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    """
    nodes = read_layout(folder).nodes
    placed = {run_id for node in nodes for run_id in node.run_ids.ravel().tolist()}
    return len(Journal(OutputFolder(folder).records).states().keys() - placed)


def others_words(count: int) -> str:
    """Return a sentence on recorded runs that have no place in the results; nothing without any.

    Examples
    --------
    >>> others_words(0)
    ''
    """
    if not count:
        return ""
    runs = pluralize(count, "more run is", "more runs are")
    return (
        f"{runs} recorded, and left out here: the last call of the sweep did not ask for them. "
        "A call that does shows them again, and repeats none."
    )
