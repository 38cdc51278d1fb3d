"""The process that workers of this machine are forked from: it imports what they need, once.

A worker that is spawned spends a second or two on imports, as many times as there are workers and
after the coordinator has done its own.  The server begins while the coordinator still prepares
the sweep, and its workers share its memory.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mkldist.run.interrupts import children_without_interrupts

# System libraries of macOS do not survive a fork.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"
PRELOADED = ["distributed", "mkldist.worker.tasks"]
PATHS = ("PYTHONPATH", "PYTHONSAFEPATH")


def start_fork_server(environ: Mapping[str, object]) -> None:
    """Start the server, unless one runs or this system has none, and do not wait for it.

    Parameters
    ----------
    environ : mapping of str to object
        Variables of the workers' environment that count when a process starts; those that the
        user has set stay.
    """
    if METHOD != "forkserver":
        return
    from multiprocessing import resource_tracker
    from multiprocessing.forkserver import ensure_running

    multiprocessing.set_forkserver_preload(PRELOADED)
    wanted = {name: str(value) for name, value in environ.items() if name not in os.environ}
    # It is to find the modules that this process would find, not those of the folder it is in.
    searched = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    wanted |= dict(zip(PATHS, (searched, "1"), strict=True))
    resource_tracker.ensure_running()  # the server asks for it too, and would unblock Ctrl-C
    with _environment(wanted), children_without_interrupts():
        ensure_running()


def workers_environment() -> dict[str, str]:
    """Return the environment that workers are to have, whatever the server's is.

    It is that of this process now: the server may be older.
    """
    return dict.fromkeys(PATHS, "") | dict(os.environ)


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set some variables of this process for a while."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
