"""Turns of isolated sweeps on a machine: one task at a time, of all isolated sweeps of a user.

The system frees a turn when the process that has it ends, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.bank.cache import default_directory
from mkldist.core.durable import machine_id, make_folder

if TYPE_CHECKING:
    from filelock import BaseFileLock


def turn_file() -> Path:
    """Return the file whose lock is the turn on this machine.

    It lies in the user's cache folder, which several machines may share; its name tells them apart.
    """
    return default_directory() / "turns" / f"{machine_id()}.lock"


@contextmanager
def machine_turn(on_wait: Callable[[], object]) -> Iterator[bool]:
    """Have the turn on this machine while the context lasts; wait for it first.

    Parameters
    ----------
    on_wait : callable
        Called if another process or thread has the turn, before this one waits for it.

    Yields
    ------
    bool
        False where a file in the cache folder could not be locked, as on some network file systems:
        others may then have the turn, too.
    """
    from filelock import FileLock

    lock = FileLock(turn_file())
    has_turn = _locked(lock, 0.0)
    if has_turn is False:
        on_wait()
        has_turn = _locked(lock, -1.0)
    try:
        yield has_turn is True
    finally:
        lock.release()


def _locked(lock: BaseFileLock, seconds: float) -> bool | None:
    """Return whether a lock is held within some seconds, -1 for any; None if it cannot be."""
    from filelock import Timeout

    try:
        make_folder(Path(lock.lock_file).parent, durable=False)
        lock.acquire(timeout=seconds)
    except Timeout:
        return False
    except (OSError, NotImplementedError):
        return None
    return True
