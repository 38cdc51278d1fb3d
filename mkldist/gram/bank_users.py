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

LOCK = ".in-use"


@contextmanager
def using_banks(root: str | None) -> Iterator[None]:
    """Keep the banks below a folder from being removed while the context lasts.

    A URL has no locks, and a folder that cannot be written needs none.

    Parameters
    ----------
    root : str or None
        Folder of banks, made if it is missing; None if nothing is stored.
    """
    with ExitStack() as held:
        if root is not None and "://" not in root:
            with suppress(OSError):
                make_folder(Path(root))
                held.enter_context(held_lock(Path(root) / LOCK, fcntl.LOCK_SH))
        yield


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
            held.enter_context(held_lock(root / LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB))
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
def held_lock(path: Path, kind: int) -> Iterator[None]:
    """Hold the lock of a file, made if it is missing, while the context lasts.

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
        yield
    finally:
        os.close(descriptor)
