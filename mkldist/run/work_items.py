"""Items of the work queue of a sweep: what a task is to do, and runs that no task does."""

from __future__ import annotations

from dataclasses import dataclass

from mkldist.planning.model import RunPlan
from mkldist.worker.record_sender import build_key


@dataclass(frozen=True)
class BuildItem:
    """Some blocks of one bank, to be built.

    Parameters
    ----------
    bank : str
        Id of the bank.
    blocks : tuple of int
        Indices of the blocks.
    attempt : int
        Number of this attempt, from 1.
    """

    bank: str
    blocks: tuple[int, ...]
    attempt: int = 1

    @property
    def key(self) -> str:
        """Name of the task among those in flight, that of its ``BuildTask``."""
        return build_key(self.bank, self.blocks)


@dataclass(frozen=True)
class BatchItem:
    """Some runs on one bank, to be done together.

    Parameters
    ----------
    bank : str
        Id of the bank.
    runs : tuple of RunPlan
        The runs.
    attempt : int
        Number of this attempt, from 1; runs that are tried alone begin with 2.
    repairs : int
        Repairs that the bank has had when the batch begins.
    is_share : bool
        True for a share of one of the last batches, which is not divided further.
    builds : bool
        True if the batch builds the blocks that the bank lacks.
    """

    bank: str
    runs: tuple[RunPlan, ...]
    attempt: int = 1
    repairs: int = 0
    is_share: bool = False
    builds: bool = False

    @property
    def key(self) -> str:
        """Name of the batch among those in flight, see ``BatchTask.key``."""
        return self.runs[0].id


Item = BuildItem | BatchItem


@dataclass(frozen=True)
class AbandonedRun:
    """A run that is recorded as failed although no solver has returned an error.

    Parameters
    ----------
    run : RunPlan
        The run.
    error : str
        Error of the last task that was to do it.
    """

    run: RunPlan
    error: str
