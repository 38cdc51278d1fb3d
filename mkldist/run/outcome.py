"""Outcome of a call that runs a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mkldist.planning.model import Plan
from mkldist.results.state import RunState


@dataclass(frozen=True)
class SweepOutcome:
    """State of a sweep after a call of :func:`run_sweep`.

    Parameters
    ----------
    plan : Plan
        Plan of the whole sweep; with a search, of the runs that it has decided on.
    path : Path
        Its output folder.
    counts : mapping of RunState to int
        Runs of the plan by state.
    computed : int
        Runs that this call recorded.
    skipped : int
        Runs that were recorded before.
    figures : tuple of Path
        Paths of the figures, without the suffixes of their files.
    others : int
        Recorded runs in the output folder that are not in the plan; they are kept.
    mended : tuple of str
        Lines that say what was damaged in the folder, and what became of it.
    """

    plan: Plan
    path: Path
    counts: Mapping[RunState, int]
    computed: int
    skipped: int
    figures: tuple[Path, ...] = ()
    others: int = 0
    mended: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """Number of failed runs."""
        return self.counts.get(RunState.FAILED, 0)

    @property
    def waiting(self) -> int:
        """Number of runs without a record; 0 unless records have been lost meanwhile."""
        return self.counts.get(RunState.WAITING, 0)
