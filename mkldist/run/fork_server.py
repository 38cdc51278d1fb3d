"""Process that workers of this machine are forked from, after it has imported their modules.

A spawned worker would spend a second or two on imports of its own, after the coordinator has done
the same.  The server imports the modules once, while the coordinator still prepares the sweep, and
its workers share the memory of them.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.spawn
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mkldist.durable import temporary_folder, writing
from mkldist.run.interrupts import children_without_interrupts
from mkldist.run.scratch import check_sockets_fit, make_socket_folder, mark_sockets

# On macOS system libraries fail in a forked process.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"
# What tasks import at their first need would be imported anew by every worker.
PRELOADED = ["distributed", "mkldist.worker.tasks", "scipy.linalg", "google_crc32c", "numba"]
START_SECONDS = 10.0  # that the end of a context waits for a process that has not started yet
PATHS = ("PYTHONPATH", "PYTHONSAFEPATH")
BESIDE = "mkldist process beside"
OWN_PROCESSES = (BESIDE, "Dask Worker process")  # the names of processes that run our tasks alone
MAIN_MODULE = ("init_main_from_name", "init_main_from_path")
_lock = threading.Lock()
_contexts_without_main = 0


def start_fork_server(environ: Mapping[str, object]) -> None:
    """Start the server, unless it runs or this system has none, and return at once.

    Parameters
    ----------
    environ : mapping of str to object
        Environment variables of the workers that libraries read when a process starts; variables
        that the user has set keep their values.

    Raises
    ------
    mkldist.errors.OutputError
        If the folder for temporary files cannot hold the server's socket, or has too long a path.
    """
    if METHOD != "forkserver":
        return
    check_sockets_fit()
    from multiprocessing import resource_tracker
    from multiprocessing.forkserver import ensure_running

    multiprocessing.set_forkserver_preload(PRELOADED)
    wanted = {name: str(value) for name, value in environ.items() if name not in os.environ}
    # The server must find the modules that this process finds, and none in the current folder.
    searched = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
    wanted |= dict(zip(PATHS, (searched, "1"), strict=True))
    # Started below with the server, the tracker would unblock Ctrl-C before the server starts.
    with children_without_interrupts():
        resource_tracker.ensure_running()
    with writing(temporary_folder()), _environment(wanted), children_without_interrupts():
        make_socket_folder()
        ensure_running()
        mark_sockets()


@contextmanager
def without_main_module() -> Iterator[None]:
    """Let workers that start in this context leave the main module of this program alone.

    Python has every new process import it.  A script without ``if __name__ == "__main__"`` would
    then run again in each worker, and a program from standard input has no file to import.  Tasks
    need neither, because all that they name stands in modules.
    """
    global _contexts_without_main
    with _lock:
        _contexts_without_main += 1
        if _contexts_without_main == 1:
            multiprocessing.spawn.get_preparation_data = _preparation_data
    try:
        yield
    finally:
        with _lock:
            _contexts_without_main -= 1
            if not _contexts_without_main:
                multiprocessing.spawn.get_preparation_data = _get_preparation_data


_get_preparation_data = multiprocessing.spawn.get_preparation_data


def _preparation_data(name: str) -> dict[str, Any]:
    """Return what a new process is told before it begins; of ours, no main module to import."""
    told = _get_preparation_data(name)
    left_out = MAIN_MODULE if name.startswith(OWN_PROCESSES) else ()
    return {key: value for key, value in told.items() if key not in left_out}


@contextmanager
def process_beside(function: Callable[..., Any], *arguments: Any) -> Iterator[None]:
    """Run a function in a process forked from the server, at most as long as the context lasts.

    Its outcome is lost, and so is its failure.  The context begins at once: the process starts when
    the server has imported its modules.

    Parameters
    ----------
    function : callable
        A function that other processes can import.
    arguments : objects
        Its arguments, after the environment that it is to have.
    """
    context: Any = multiprocessing.get_context(METHOD)
    process = context.Process(
        target=_with_environment,
        args=(workers_environment(), function, arguments),
        name=BESIDE,
        daemon=True,
    )

    def start() -> None:
        with suppress(Exception), children_without_interrupts(), without_main_module():
            process.start()

    starting = threading.Thread(target=start, name="mkldist-process-beside", daemon=True)
    starting.start()
    try:
        yield
    finally:
        starting.join(START_SECONDS)
        if process.pid is not None:
            process.terminate()


def _with_environment(
    environ: Mapping[str, str], function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    """Call a function in an environment."""
    os.environ.update(environ)
    function(*arguments)


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
