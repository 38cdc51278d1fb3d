"""The states of a run."""

from __future__ import annotations

import enum


class RunState(enum.StrEnum):
    """State of a run: planned, or recorded with an outcome.

    The name of a record file holds one of the last two.  A recorded run changes only when it is
    run again.
    """

    WAITING = "waiting"
    COMPLETE = "complete"
    FAILED = "failed"

    @property
    def is_recorded(self) -> bool:
        """True if the run has an outcome in storage."""
        return self in (RunState.COMPLETE, RunState.FAILED)
