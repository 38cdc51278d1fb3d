"""How much of a plan is recorded in an output folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mkldist.planning.model import Plan
from mkldist.results.output import OutputFolder
from mkldist.results.records import RecordStore
from mkldist.results.state import RunState


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
    """Count the recorded runs of a plan by the names of the records; read none.

    Parameters
    ----------
    plan : Plan
        The plan.
    path : Path
        The output folder, which may be missing.
    """
    states = RecordStore(OutputFolder(path).records).ids()
    planned = {run.id for run in plan.runs}
    own = [state for run_id, state in states.items() if run_id in planned]
    return Recorded(path, len(own), own.count(RunState.FAILED), len(states) - len(own))
