"""Locks that keep banks where they are while somebody uses them.

Whoever uses a folder of banks shares its lock with other users; whoever removes banks holds it
alone.  The system releases a lock when its process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mkldist.durable import make_folder, output_error
from mkldist.errors import OutputError

ALONE = fcntl.LOCK_EX | fcntl.LOCK_NB
LOCK = ".in-use"
TURN = ".removing"
"""Who wants to be alone holds its lock first: an attempt gives up the use for a moment."""


class BankUse:
    """The use of a folder of banks by this process.

    Parameters
    ----------
    turn : Path, optional
        The file of :data:`TURN`; None for a URL and a folder that cannot be written.
    descriptor : int
        The shared lock, where there is one.
    """

    def __init__(self, turn: Path | None = None, descriptor: int = -1) -> None:
        self._turn, self._descriptor = turn, descriptor

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield True, and keep others from using the folder meanwhile, if nobody else uses it.

        Where nothing can be locked, nobody else is known, and the answer is True.
        """
        if self._turn is None:
            yield True
            return
        with ExitStack() as held:
            try:
                held.enter_context(held_lock(self._turn, ALONE))
                held.callback(fcntl.flock, self._descriptor, fcntl.LOCK_SH)
                fcntl.flock(self._descriptor, ALONE)
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
                shared = held.enter_context(held_lock(Path(root) / LOCK, fcntl.LOCK_SH))
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
                held.enter_context(held_lock(root / name, ALONE))
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
def held_lock(path: Path, kind: int) -> Iterator[int]:
    """Hold the lock of a file, made if it is missing, while the context lasts; yield the file.

    Parameters
    ----------
    path : Path
        The file; its folder is there.
    kind : int
        ``fcntl.LOCK_SH`` or ``fcntl.LOCK_EX``, with ``fcntl.LOCK_NB`` not to wait.

    Raises
    ------
    BlockingIOError
        If it is held by others, and `kind` says not to wait.
    OSError
        If the file cannot be opened or locked.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, kind)
        yield descriptor
    finally:
        os.close(descriptor)
