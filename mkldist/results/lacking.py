"""Complete runs whose records lack what a sweep asks for now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mkldist.planning.model import Plan
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.schema import COEFFICIENTS, DECISION_VALUES
from mkldist.results.state import RunState
from mkldist.results.zarr_documents import read_root


def lacking_runs(plan: Plan, store: RecordStore, tree: Path) -> list[str]:
    """Return the complete runs whose predictions or coefficients are asked for and were not kept.

    A tree that has a place for them was made when they were asked for: only then are records not
    read.

    Parameters
    ----------
    plan : Plan
        The plan.
    store : RecordStore
        The records.
    tree : Path
        The tree of results, which may be missing.
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
