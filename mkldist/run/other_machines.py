"""What a sweep does differently where its workers are on other machines.

It uses the workers that the roster admits.  If they share no folder with its process, they fetch
data from the store of banks or through the scheduler; if they share no place of banks, each machine
builds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.data.snapshot import HEADER, snapshot_header
from mkldist.devices import CPU
from mkldist.gram.blob_places import SNAPSHOTS, open_blobs
from mkldist.resolve.code_check import code_of
from mkldist.run.bank_refs import BankKey
from mkldist.run.record_receiver import queue_name, reaching
from mkldist.run.roster import Needs, Roster, Sharing
from mkldist.run.wall_time import WallTime
from mkldist.spec.model import SweepSpec
from mkldist.worker.bank_refs import BankRef, published_name

if TYPE_CHECKING:
    from distributed import Client


class SnapshotPublisher:
    """Publisher of the data that workers fetch which do not see the output folder.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.
    output : Path
        Output folder of the sweep.
    """

    def __init__(self, client: Client, output: Path) -> None:
        self._client: Any = client
        self._prefix = queue_name(output)
        self._published: set[str] = set()

    def publish(self, snapshot: Path, banks: str) -> str:
        """Let workers fetch a snapshot; return where they find it.

        A file that the store of banks has already is read back, and put anew if it is damaged.

        Parameters
        ----------
        snapshot : Path
            Its folder.
        banks : str
            Folder or URL of the banks.  A URL takes the snapshot, too; otherwise the scheduler
            keeps it.

        Raises
        ------
        mkldist.errors.StoreError
            If it is damaged.
        mkldist.errors.OutputError
            If the store refuses it.
        """
        blobs = open_blobs(banks, f"{SNAPSHOTS}/{snapshot.name}") if "://" in banks else None
        for file in sorted({HEADER, *snapshot_header(snapshot)["files"].values()}):
            content = (snapshot / file).read_bytes()
            if blobs is not None:
                if blobs.get(file) != content:
                    blobs.put(file, [content])
                continue
            name = published_name(self._prefix, snapshot.name, file)
            if name not in self._published:
                with reaching():
                    self._client.publish_dataset(content, name=name, override=True)
                self._published.add(name)
        return self._prefix if blobs is None else banks

    def close(self) -> None:
        """Take back what was published."""
        with suppress(Exception):  # a scheduler that is gone keeps nothing
            for name in self._published:
                self._client.unpublish_dataset(name)


@dataclass(frozen=True)
class OtherMachines:
    """Workers on other machines, and how they reach the data.

    Parameters
    ----------
    roster : Roster
        The workers that may do tasks.
    publisher : SnapshotPublisher, optional
        Publishes data for them if they do not see the output folder.
    """

    roster: Roster
    publisher: SnapshotPublisher | None = None

    def reached(self, banks: Mapping[BankKey, BankRef]) -> dict[BankKey, BankRef]:
        """Return banks as the workers find them; let workers fetch the data that they do not see.

        Parameters
        ----------
        banks : mapping of BankKey to BankRef
            The banks as this process sees them.
        """
        found, origins = dict[BankKey, BankRef](), dict[tuple[str, str], str]()
        for key, ref in banks.items():
            root, snapshot = ref.root if self.roster.sharing.banks else "", ref.snapshot
            if self.publisher is not None and (snapshot, root) not in origins:
                origins[snapshot, root] = self.publisher.publish(Path(snapshot), root)
            origin = origins.get((snapshot, root), "")
            found[key] = replace(ref, root=root, fetched_from=origin)
        return found


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
        publisher = None
        if not roster.sharing.output:
            publisher = SnapshotPublisher(client, Path(needs.output))
            stack.callback(publisher.close)
        note(sharing_line(roster.sharing, needs))
        yield OtherMachines(roster, publisher)


def sharing_line(sharing: Sharing, needs: Needs) -> str:
    """Return a line on what workers share with this process, and what is done instead."""
    if sharing.output:
        words = f"workers read data from {needs.output}"
    else:
        where = needs.banks if "://" in needs.banks else "the scheduler"
        words = f"workers do not share {needs.output}: they fetch the data from {where}"
    if needs.banks and not sharing.banks:
        words += f"; they do not share {needs.banks}: each machine builds banks for itself"
    return words
