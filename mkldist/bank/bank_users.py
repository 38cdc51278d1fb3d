"""Locks that keep banks where they are while somebody uses them.

Whoever uses a folder of banks shares its lock with other users; whoever removes banks holds it
alone.  The system releases a lock when its process ends, however it ends.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.durable import make_folder, output_error
from mkldist.errors import OutputError

if TYPE_CHECKING:
    from filelock import ReadWriteLock

LOCK = ".in-use"
TURN = ".removing"
"""Who wants to be alone holds its lock first: an attempt gives up the use for a moment."""


class BankUse:
    """The use of a folder of banks by this process.

    Parameters
    ----------
    turn : Path, optional
        The file of :data:`TURN`; None for a URL and a folder that cannot be written.
    lock : ReadWriteLock, optional
        The shared lock, where there is one.
    """

    def __init__(self, turn: Path | None = None, lock: ReadWriteLock | None = None) -> None:
        self._turn, self._lock = turn, lock

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield True, and keep others from using the folder meanwhile, if nobody else uses it.

        Where nothing can be locked, nobody else is known, and the answer is True.
        """
        if self._turn is None or self._lock is None:
            yield True
            return
        with ExitStack() as held:
            try:
                held.enter_context(held_lock(self._turn))
                self._lock.release()
                held.callback(self._lock.acquire_read)
                self._lock.acquire_write(blocking=False)
                held.callback(self._lock.release)
                alone = True
            except OSError:
                alone = False
            yield alone


@contextmanager
def using_banks(root: str | None) -> Iterator[BankUse]:
    """Keep the banks below a folder from being removed while the context lasts.

    A URL has no locks, and a folder that cannot be written needs none.

    Parameters
    ----------
    root : str or None
        Folder of banks, made if it is missing; None if nothing is stored.
    """
    with ExitStack() as held:
        use = BankUse()
        if root is not None and "://" not in root:
            with suppress(OSError):
                make_folder(Path(root))
                shared = held.enter_context(held_lock(Path(root) / LOCK, shared=True, wait=True))
                use = BankUse(Path(root) / TURN, shared)
        yield use


@contextmanager
def removing_banks(root: Path) -> Iterator[None]:
    """Keep others from using the banks below a folder while the context lasts.

    Raises
    ------
    mkldist.errors.OutputError
        If somebody uses them now, or the folder cannot be written or locked.
    """
    with ExitStack() as held:
        try:
            make_folder(root)
            for name in (TURN, LOCK):
                held.enter_context(held_lock(root / name))
        except BlockingIOError:
            raise OutputError(
                str(root),
                "banks that a sweep at work uses",
                "a folder of banks that nobody uses",
                "Wait until the sweep ends; 'mkldist status' shows whether it is at work",
            ) from None
        except OSError as error:
            raise output_error(str(root), error) from error
        yield


@contextmanager
def held_lock(path: Path, *, shared: bool = False, wait: bool = False) -> Iterator[ReadWriteLock]:
    """Hold the lock of a file, made if it is missing, while the context lasts.

    Parameters
    ----------
    path : Path
        The file; its folder is there.
    shared : bool
        True to hold it together with others who share it.
    wait : bool
        True to wait for others who hold it.

    Raises
    ------
    BlockingIOError
        If it is held by others, and `wait` is False.
    OSError
        If the file cannot be opened or locked.
    """
    from filelock import ReadWriteLock, Timeout

    lock = ReadWriteLock(path, is_singleton=False)
    try:
        (lock.acquire_read if shared else lock.acquire_write)(blocking=wait)
    except Timeout as error:
        lock.close()
        raise BlockingIOError(errno.EAGAIN, "in use", str(path)) from error
    except sqlite3.Error as error:  # of its file
        lock.close()
        raise OSError(errno.ENOLCK, str(error), str(path)) from error
    try:
        yield lock
    finally:
        lock.close()
