"""Work of a sweep: the banks that it builds and the batches that it does."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mkldist.gram.bank_users import BankUse
from mkldist.planning.model import BatchPlan
from mkldist.run.bank_refs import BankKey
from mkldist.run.wall_time import WallTime
from mkldist.worker.bank_refs import BankRef
from mkldist.worker.tasks import BatchSettings


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
