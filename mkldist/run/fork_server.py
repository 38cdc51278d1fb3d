"""Process that workers of this machine are forked from, after it has imported their modules.

A spawned worker would spend a second or two on imports of its own, after the coordinator has done
the same.  The server imports the modules once, while the coordinator still prepares the sweep, and
its workers share the memory of them.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mkldist.run.interrupts import children_without_interrupts

# On macOS system libraries fail in a forked process.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"
PRELOADED = ["distributed", "mkldist.worker.tasks"]
PATHS = ("PYTHONPATH", "PYTHONSAFEPATH")


def start_fork_server(environ: Mapping[str, object]) -> None:
    """Start the server, unless it runs or this system has none, and return at once.

    Parameters
    ----------
    environ : mapping of str to object
        Environment variables of the workers that libraries read when a process starts; variables
        that the user has set keep their values.
    """
    if METHOD != "forkserver":
        return
    from multiprocessing import resource_tracker
    from multiprocessing.forkserver import ensure_running

    multiprocessing.set_forkserver_preload(PRELOADED)
    wanted = {name: str(value) for name, value in environ.items() if name not in os.environ}
    # The server must find the modules that this process finds, and none in the current folder.
    searched = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    wanted |= dict(zip(PATHS, (searched, "1"), strict=True))
    # Started below with the server, the tracker would unblock Ctrl-C before the server starts.
    resource_tracker.ensure_running()
    with _environment(wanted), children_without_interrupts():
        ensure_running()


def workers_environment() -> dict[str, str]:
    """Return the environment of workers: that of this process now, not of the server.

    The server may have been started when this process had another environment.
    """
    return dict.fromkeys(PATHS, "") | dict(os.environ)


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set some environment variables of this process; restore them at the end."""
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
