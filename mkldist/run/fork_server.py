"""The process that workers of this machine are forked from: it imports what they need, once.

A worker that is spawned spends a second or two on imports, as many times as there are workers and
after the coordinator has done its own.  The server begins while the coordinator still prepares
the sweep, and its workers share its memory.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PRELOADED = ["distributed", "mkldist.run.tasks"]


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
    from multiprocessing.forkserver import ensure_running

    multiprocessing.set_forkserver_preload(PRELOADED)
    before = dict(os.environ)
    os.environ.update({name: str(value) for name, value in environ.items() if name not in before})
    try:
        ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
