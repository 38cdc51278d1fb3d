"""The states that a run goes through."""

from __future__ import annotations

import enum


class RunState(enum.StrEnum):
    """What is known of a run: planned, being computed, or recorded with an outcome.

    Only the last two are ever on disk; a recorded run changes only when it is run again.
    """

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"

    @property
    def is_recorded(self) -> bool:
        """Whether the run has an outcome in storage."""
        return self in (RunState.COMPLETE, RunState.FAILED)
