"""Turns of isolated sweeps on a machine: one task at a time, of all isolated sweeps of a user.

The system frees a turn when the process that has it ends, however it ends.
"""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path

from mkldist.durable import make_folder
from mkldist.gram.bank_users import held_lock
from mkldist.gram.cache import default_directory

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def turn_file() -> Path:
    """Return the file whose lock is the turn on this machine.

    It lies in the user's cache folder, which several machines may share; its name tells them apart.
    """
    try:
        machine = BOOT_ID.read_text()
    except OSError:
        machine = socket.gethostname()
    name = blake2b(machine.encode(), digest_size=6).hexdigest()
    return default_directory() / "turns" / f"{name}.lock"


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
    with ExitStack() as held:
        path = turn_file()
        has_turn = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB, held)
        if has_turn is False:
            on_wait()
            has_turn = _locked(path, fcntl.LOCK_EX, held)
        yield has_turn is True


def _locked(path: Path, operation: int, held: ExitStack) -> bool | None:
    """Return whether a file is locked now, until the stack ends; None if it could not be."""
    try:
        make_folder(path.parent, durable=False)
        held.enter_context(held_lock(path, operation))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
