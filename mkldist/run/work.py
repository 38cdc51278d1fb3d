"""Work of a sweep: its banks as workers name them, its batches, and the time that it may take."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mkldist.bank.cache import BankUse
from mkldist.core.durable import writing
from mkldist.core.identity import content_id
from mkldist.data.snapshot import save_snapshot
from mkldist.errors import OutOfTimeError, SpecError
from mkldist.planning.model import BatchPlan, Plan, RunPlan
from mkldist.planning.resolved import Resolved
from mkldist.run.bank_refs import BankRef

if TYPE_CHECKING:
    from mkldist.run.tasks import BatchSettings


def parse_wall_time(text: str | None) -> float:
    """Return the seconds that words such as ``90m`` stand for; infinity for None.

    Raises
    ------
    mkldist.errors.SpecError
        For anything else.
    """
    if text is None:
        return math.inf
    from dask.utils import parse_timedelta

    try:
        seconds = float(parse_timedelta(text, default=False))
    except (ValueError, KeyError, IndexError, OverflowError):
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise SpecError("wall_time", f"{text!r}", "a time such as '90m' or '2h'")
    return seconds


@dataclass(frozen=True)
class WallTime:
    """Time that a call of a sweep may take.

    Parameters
    ----------
    words : str
        The time, as the sweep file gives it.
    end : float
        When it is over, by :func:`time.monotonic`.
    """

    words: str = ""
    end: float = math.inf

    @classmethod
    def from_now(cls, words: str | None) -> WallTime:
        """Return the time that begins now; one without end for None."""
        return cls(words or "", time.monotonic() + parse_wall_time(words))

    def check(self) -> None:
        """Raise if the time is over.

        Raises
        ------
        mkldist.errors.OutOfTimeError
            Without words on what is recorded, which the sweep adds.
        """
        if time.monotonic() >= self.end:
            raise OutOfTimeError("wall_time", f"{self.words} to be over")


class BankKey(NamedTuple):
    """Key of a bank among those of a sweep.

    The id alone is not enough: banks that differ in normalisation alone have one id and share one
    store, and so have those of data sets that differ in their splits alone.

    Parameters
    ----------
    id : str
        Id of the bank.
    label : str
        Label of the bank in the sweep file.
    dataset : str
        Name of the data set.
    """

    id: str
    label: str
    dataset: str

    @classmethod
    def of(cls, run: RunPlan) -> BankKey:
        """Return the key of a run's bank."""
        return cls(run.bank, run.bank_label, run.dataset)


def bank_refs(
    plan: Plan, resolved: Resolved, wanted: Collection[str], root: str, snapshots: Path
) -> dict[BankKey, BankRef]:
    """Write the data sets that workers are to read, and return the banks made from them.

    Raises
    ------
    mkldist.errors.OutputError
        When a snapshot cannot be written.
    """
    banks: dict[BankKey, BankRef] = {}
    for bank in plan.banks:
        if bank.id not in wanted:
            continue
        dataset, splits = resolved.datasets[bank.dataset]
        name = content_id(data=dataset.fingerprint, splits=[s.fingerprint for s in splits])
        path = (snapshots / name).absolute()
        with writing(path):
            save_snapshot(path, dataset, splits)
        key = BankKey(bank.id, bank.spec.label, bank.dataset)
        code = resolved.code
        kernels = resolved.kernels[bank.dataset, bank.spec.label].fingerprint if code else ""
        banks[key] = BankRef(bank, root, str(path), dataset.fingerprint, code, kernels)
    return banks


@dataclass(frozen=True)
class Work:
    """Banks to build and batches to do.

    Parameters
    ----------
    banks : mapping of BankKey to BankRef
        The banks.  Several may have one id, and share its store.
    batches : tuple of BatchPlan
        Batches, holding only the runs that are to be done; without batches, the loop builds banks.
    settings : BatchSettings
        Settings of the runs.
    keep_banks : bool
        True to keep Gram matrices after their runs are recorded.
    own_banks : bool
        True if the folder of the banks is this sweep's.  Otherwise the loop deletes only banks that
        it has built itself.
    use : BankUse
        The use of the folder of the banks: the loop deletes none while others use it.
    expected_threads : int
        Number of threads that all workers will have once they have joined; 0 if unknown.
    later_banks : container of str
        Ids of banks that later rounds of a search need, which the loop keeps.
    built : set of str
        Ids of the banks that this sweep has built; the loop adds to it.
    wall_time : WallTime
        Time at whose end the loop stops.
    """

    banks: Mapping[BankKey, BankRef]
    batches: tuple[BatchPlan, ...]
    settings: BatchSettings
    keep_banks: bool = True
    own_banks: bool = False
    use: BankUse = field(default_factory=BankUse)
    expected_threads: int = 0
    later_banks: Container[str] = ()
    built: set[str] = field(default_factory=set)
    wall_time: WallTime = field(default_factory=WallTime)

    @cached_property
    def banks_by_id(self) -> dict[str, BankRef]:
        """Banks by id, one of those that share it: one that is stored, if any is."""
        stored = {key.id: ref for key, ref in self.banks.items() if ref.plan.stored}
        return {key.id: ref for key, ref in self.banks.items()} | stored
