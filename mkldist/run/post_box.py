"""The coordinator's end of the way through the scheduler, see :mod:`mkldist.worker.post`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.data.snapshot import HEADER, snapshot_header
from mkldist.durable import machine_id
from mkldist.gram.blob_places import SNAPSHOTS, open_blobs
from mkldist.identity import content_id
from mkldist.results.record_format import decode
from mkldist.results.run_record import RunRecord
from mkldist.run.scheduler_address import lost_scheduler
from mkldist.worker.bank_refs import published_name
from mkldist.worker.post import FETCHED, MOST_WAITING, RECORD

if TYPE_CHECKING:
    from distributed import Client


class PostBox:
    """Taker of the records that workers send, and publisher of the data that they fetch.

    Parameters
    ----------
    client : Client
        Connected to the scheduler.
    output : Path
        Output folder of the sweep.

    Attributes
    ----------
    name : str
        Name of the post, that of the output folder: who resumes a sweep takes the records that
        workers sent to a coordinator which was killed.
    n_records, received : int
        Records that came, and their bytes.
    n_fetches, fetched : int
        Snapshots that machines have fetched, and their bytes.
    """

    def __init__(self, client: Client, output: Path) -> None:
        from distributed import Queue

        self._client: Any = client
        self._published: set[str] = set()
        self.n_records = self.received = self.n_fetches = self.fetched = 0
        self.name = f"mkldist-{content_id(output=str(output.absolute()), machine=machine_id())}"
        with _reaching():
            # A record that a killed coordinator took and did not write is to be computed again.
            client.set_metadata([self.name], {})
            self._letters = Queue(self.name, client=client, maxsize=MOST_WAITING)

    def publish(self, snapshot: Path, banks: str) -> None:
        """Let workers fetch a snapshot.

        A file that the store has already is read back, and put anew if it is damaged.

        Parameters
        ----------
        snapshot : Path
            Its folder.
        banks : str
            URL of the store of banks, beside which it is put; otherwise the scheduler keeps it.

        Raises
        ------
        mkldist.errors.StoreError
            If it is damaged.
        mkldist.errors.OutputError
            If the store refuses it.
        """
        files = sorted({HEADER, *snapshot_header(snapshot)["files"].values()})
        in_store = "://" in banks
        blobs = open_blobs(banks, f"{SNAPSHOTS}/{snapshot.name}") if in_store else None
        for file in files:
            name = published_name(self.name, snapshot.name, file)
            if blobs is None and name not in self._published:
                content = (snapshot / file).read_bytes()
                with _reaching():
                    self._client.publish_dataset(content, name=name, override=True)
                self._published.add(name)
            elif blobs is not None:
                content = (snapshot / file).read_bytes()
                if blobs.get(file) != content:
                    blobs.put(file, [content])

    def take(self) -> Iterator[RunRecord]:
        """Yield the records that have come since the last call, without damaged ones.

        Raises
        ------
        mkldist.errors.ClusterError
            If the scheduler is gone.
        """
        with _reaching():
            letters = self._letters.get(batch=True)
        for letter in letters:
            content = letter.get(RECORD)
            if content is None:
                self.n_fetches, self.fetched = self.n_fetches + 1, self.fetched + letter[FETCHED]
                continue
            self.n_records, self.received = self.n_records + 1, self.received + len(content)
            record = decode(content)
            if record is not None:
                yield record

    def forget(self, batch: str) -> None:
        """Have the scheduler forget which records of a batch were sent."""
        with _reaching():
            self._client.set_metadata([self.name, batch], {})

    def close(self) -> None:
        """Take back what was published, and end the post."""
        with suppress(Exception):  # a scheduler that is gone keeps nothing
            for name in self._published:
                self._client.unpublish_dataset(name)
            self._client.set_metadata([self.name], {})
            self._letters.close()


@contextmanager
def _reaching() -> Iterator[None]:
    """Turn the error of a connection that breaks into that of a lost scheduler."""
    try:
        yield
    except OSError as error:
        raise lost_scheduler() from error
