"""What a sweep does differently where its workers are on other machines.

It uses the workers that the roster admits.  If they share no folder with its process, their records
and data go through the scheduler; if they share no place of banks, each machine builds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.counted import counted
from mkldist.devices import CPU
from mkldist.memory import readable_bytes
from mkldist.resolve.code_check import code_of
from mkldist.run.bank_refs import BankKey
from mkldist.run.post_box import PostBox
from mkldist.run.roster import Needs, Roster, Sharing
from mkldist.run.wall_time import WallTime
from mkldist.spec.model import SweepSpec
from mkldist.worker.bank_refs import BankRef
from mkldist.worker.tasks import BatchSettings

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class OtherMachines:
    """Workers on other machines, and how they and the coordinator reach each other.

    Parameters
    ----------
    roster : Roster
        The workers that may do tasks.
    post_box : PostBox, optional
        Takes their records if they do not see the output folder.
    """

    roster: Roster
    post_box: PostBox | None = None

    def reached(self, banks: Mapping[BankKey, BankRef]) -> dict[BankKey, BankRef]:
        """Return banks as the workers find them; let workers fetch the data that they do not see.

        Parameters
        ----------
        banks : mapping of BankKey to BankRef
            The banks as this process sees them.
        """
        found = dict[BankKey, BankRef]()
        for key, ref in banks.items():
            root = ref.root if self.roster.sharing.banks else ""
            found[key] = replace(ref, root=root, post=self.post_box.name if self.post_box else "")
        if self.post_box is not None:
            for snapshot, root in dict.fromkeys((r.snapshot, r.root) for r in found.values()):
                self.post_box.publish(Path(snapshot), root)
        return found

    def settings(self, settings: BatchSettings) -> BatchSettings:
        """Return settings of batches by which their records come here."""
        return replace(settings, post=self.post_box.name) if self.post_box else settings


def needs_of(spec: SweepSpec, output: Path, banks: str, code: str) -> Needs:
    """Return what workers of a sweep need.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    output : Path
        Its output folder.
    banks : str
        Folder or URL of its banks; empty if none is stored.
    code : str
        Folder of the user's kernel functions; empty if the sweep has none.
    """
    functions = dict.fromkeys(function for _, function in code_of(spec)) if code else ()
    devices = dict.fromkeys(bank.device for bank in spec.banks if bank.device != CPU)
    return Needs(str(output.absolute()), banks, code, tuple(functions), tuple(devices))


@contextmanager
def other_machines(
    client: Client, needs: Needs, note: Callable[[str], None], wall_time: WallTime
) -> Iterator[OtherMachines]:
    """Wait for a worker that may do tasks, and find out what it shares with this process.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.
    needs : Needs
        What workers need.
    note : callable
        Takes lines for the user.
    wall_time : WallTime
        Time at whose end the waiting ends.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        If workers are there and none of them may do tasks.
    mkldist.errors.MkldistError
        If this process cannot write to the places that it would share, or the scheduler is lost.
    """
    with ExitStack() as stack:
        roster = Roster(client, needs)
        for line in roster.first(wall_time):
            note(line)
        box = None
        if not roster.sharing.output:
            box = PostBox(client, Path(needs.output))
            stack.callback(_tell, box, note)
            stack.callback(box.close)
        note(sharing_line(roster.sharing, needs))
        yield OtherMachines(roster, box)


def sharing_line(sharing: Sharing, needs: Needs) -> str:
    """Return a line on what workers share with this process, and what is done instead."""
    if sharing.output:
        words = f"workers write their records to {needs.output}"
    else:
        where = needs.banks if "://" in needs.banks else "the scheduler"
        words = (
            f"workers do not share {needs.output}: they send records through the scheduler, and "
            f"fetch the data from {where}"
        )
    if needs.banks and not sharing.banks:
        words += f"; they do not share {needs.banks}: each machine builds banks for itself"
    return words


def _tell(box: PostBox, note: Callable[[str], None]) -> None:
    """Tell the bytes that were moved."""
    records = f"{counted(box.n_records, 'record')} ({readable_bytes(box.received)})"
    snapshots = f"{counted(box.n_fetches, 'time')} ({readable_bytes(box.fetched)})"
    note(f"{records} came through the scheduler; data were fetched {snapshots}")
