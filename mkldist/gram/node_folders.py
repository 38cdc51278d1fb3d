"""Folders in the cache of this machine, of which those used longest ago make room for others.

What a folder held is made or fetched again.  While a task uses a folder, it shares the lock of the
folder, and nobody removes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mkldist.durable import make_folder, output_error
from mkldist.errors import OutputError
from mkldist.gram.bank_users import held_lock
from mkldist.gram.blobs import open_blobs
from mkldist.gram.cache import DEFAULT_BUDGET, default_directory, locked


@dataclass(frozen=True)
class NodeFolders:
    """Folders of one kind, beside the files of the node cache.

    Parameters
    ----------
    kind : str
        What they hold, the name of the folder that they lie in.
    budget_bytes : int
        Bytes that all of them may take together, as far as tasks do not use more at once.
    """

    kind: str
    budget_bytes: int = DEFAULT_BUDGET

    @property
    def root(self) -> Path:
        """The folder that they lie in."""
        return default_directory() / self.kind

    @contextmanager
    def used(self, name: str) -> Iterator[Path]:
        """Yield a folder that stays while the context lasts, marked as used now.

        Parameters
        ----------
        name : str
            Name of the folder, made if it is missing.

        Raises
        ------
        mkldist.errors.OutputError
            If it cannot be written, or its file system has no locks.
        """
        with ExitStack() as held:
            folder = self.root / name
            try:
                make_folder(self.root, durable=False)
                held.enter_context(held_lock(self._lock(name), shared=True, wait=True))
                make_folder(folder, durable=False)
                os.utime(folder)
            except OSError as error:
                raise output_error(str(folder), error) from error
            yield folder

    @contextmanager
    def alone(self, name: str) -> Iterator[Path]:
        """Yield a folder as :meth:`used` does, which no other process has taken by this method.

        Parameters and errors are those of :meth:`used`.
        """
        with self.used(name) as folder, locked(self.root / f".{name}.lock"):
            yield folder

    def make_room(self, n_bytes: int, keep: str) -> None:
        """Remove the folders used longest ago until `n_bytes` more fit the budget.

        A folder that somebody uses stays.  If those in use leave too little room, the budget is
        exceeded.

        Parameters
        ----------
        n_bytes : int
            Bytes that are to be written.
        keep : str
            Name of the folder that takes them; it stays.
        """
        used: list[tuple[float, int, str]] = []
        for folder in self.root.iterdir() if self.root.is_dir() else ():
            if folder.is_dir() and folder.name != keep and not folder.name.startswith("."):
                with suppress(OSError):  # another process removes it
                    used.append((folder.stat().st_mtime, _size(folder), folder.name))
        left = sum(size for _, size, _ in used) + n_bytes
        for _, size, name in sorted(used):
            if left <= self.budget_bytes:
                return
            with suppress(OSError, OutputError):  # somebody uses it, or it cannot be removed
                with held_lock(self._lock(name)):
                    open_blobs(self.root, name).clear()
                left -= size

    def _lock(self, name: str) -> Path:
        """Return the file whose lock the users of a folder share."""
        return self.root / f".{name}.in-use"


def _size(folder: Path) -> int:
    """Return the bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
