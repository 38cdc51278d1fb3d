"""Folders and stores that all processes of a sweep share, tried from both sides.

The coordinator puts a question into the place.  A worker that reads it there puts an answer beside
it, which the coordinator reads.  Another folder under the same path holds neither.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from mkldist.durable import remove_temporaries, temporary_path
from mkldist.errors import MkldistError
from mkldist.gram.blob_places import open_blobs
from mkldist.gram.blobs import Blobs

QUESTION = "question"
NOTHING_THERE = "it does not see what the coordinator wrote"
NOT_READ_BACK = "the coordinator does not see what it wrote"
NO_LOCK = "its locks do not exclude other machines"


@dataclass(frozen=True)
class SharedPlace:
    """A folder or store, and a folder in it for one question and its answers.

    Parameters
    ----------
    root : str
        Absolute path of an existing folder, or URL.
    token : str
        Name of this question among all that are ever asked, that of a temporary folder.
    """

    root: str
    token: str = field(default_factory=lambda: temporary_path(Path()).name)

    @staticmethod
    def of(root: str) -> SharedPlace:
        """Return the place of a path or URL; a missing folder is tried in the nearest one there."""
        text = root.removeprefix("file://")
        if "://" in text:
            return SharedPlace(text)
        folder = Path(text).absolute()
        return SharedPlace(str(next(one for one in (folder, *folder.parents) if one.is_dir())))

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Put the question for as long as the context lasts, and hold its lock.

        Raises
        ------
        mkldist.errors.MkldistError
            If this process cannot write there.
        """
        blobs = self._blobs
        if self._is_folder:
            remove_temporaries(Path(self.root))  # of a process that was killed while it asked
        try:
            blobs.put(QUESTION, [self.token.encode()])
            with FileLock(self._lock) if self._is_folder else nullcontext():
                yield
        finally:
            with suppress(MkldistError):
                blobs.clear()
            if self._is_folder:
                shutil.rmtree(self._own, ignore_errors=True)

    def answer(self, who: str) -> str:
        """Read the question and put an answer; return what is wrong, empty if nothing is."""
        try:
            if self._blobs.get(QUESTION) != self.token.encode():
                return NOTHING_THERE
            self._blobs.put(who, [who.encode()])
        except MkldistError as error:
            return error.found
        return NO_LOCK if self._is_folder and self._can_lock() else ""

    def is_answered(self, who: str) -> bool:
        """Return True if the coordinator reads the answer of a process."""
        return self._blobs.get(who) == who.encode()

    @property
    def _blobs(self) -> Blobs:
        return open_blobs(self._own, "answers")

    @property
    def _own(self) -> str:
        """Folder or URL of this question alone."""
        return f"{self.root.rstrip('/')}/{self.token}"

    @property
    def _is_folder(self) -> bool:
        return "://" not in self.root

    @property
    def _lock(self) -> Path:
        return Path(self._own) / "lock"

    def _can_lock(self) -> bool:
        """Return True if this process gets the lock that the coordinator holds."""
        try:
            with FileLock(self._lock).acquire(timeout=0):
                return True
        except (Timeout, OSError, NotImplementedError):
            return False
