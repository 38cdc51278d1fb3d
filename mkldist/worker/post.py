"""Way from a task to the coordinator and back through Dask's scheduler, which both can reach.

The coordinator's end is :mod:`mkldist.run.post_box`.  The scheduler passes on what is sent and
keeps none of it: a sender waits while the coordinator takes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mkldist.errors import ClusterError, StoreError

MOST_WAITING = 32  # records that the scheduler holds
WAIT_SECONDS = 120.0  # for a coordinator that takes none

RECORD, FETCHED = "record", "fetched"
"""Kinds of letters: the bytes of a record, and the number of bytes that were fetched."""


class Post:
    """The worker's end, for one task.

    Parameters
    ----------
    name : str
        Name of the post of a sweep.
    """

    def __init__(self, name: str) -> None:
        from distributed import Queue, get_client

        self.name, self._client = name, get_client()
        self._letters = Queue(name, client=self._client, maxsize=MOST_WAITING)

    def send(self, letter: Mapping[str, Any]) -> None:
        """Send the coordinator a letter; return when the scheduler has it.

        Raises
        ------
        mkldist.errors.ClusterError
            If the coordinator has taken no letter for two minutes, as one that has ended.
        """
        try:
            self._letters.put(dict(letter), timeout=WAIT_SECONDS)
        except (OSError, TimeoutError) as error:
            found = f"no coordinator that takes records ({type(error).__name__})"
            raise ClusterError("scheduler", found, "the process that began the sweep") from error

    def send_record(self, batch: str, run_id: str, content: bytes) -> None:
        """Send a record of a batch, and have the scheduler remember that it was sent."""
        self.send({RECORD: content})
        self._client.set_metadata([self.name, batch, run_id], True)

    def sent(self, batch: str) -> set[str]:
        """Return the runs of a batch whose records were sent, by workers that have died too."""
        return set(self._client.get_metadata([self.name, batch], {}))

    def file(self, name: str) -> bytes:
        """Return a file that the coordinator has published.

        Raises
        ------
        mkldist.errors.StoreError
            If there is none of this name any more.
        """
        content: bytes | None = self._client.get_dataset(name, default=None)
        if content is None:
            raise StoreError(name, "no such file at the scheduler", "one of a sweep that goes on")
        return content

    def close(self) -> None:
        """Tell the scheduler that this task sends no more."""
        self._letters.close()
