"""Workers of this machine: Dask's local cluster in a process of its own, or a thread of this one.

Workers import the main module of the process that starts them, and not that of the user's program,
which may be a script without ``if __name__ == "__main__"`` or come from standard input.  The
process and its workers are a session of their own, so that Ctrl-C and the end of a terminal reach
the coordinator alone.  They end when the coordinator does, however that ends: its end of a pipe
closes, or, where processes that it forked hold that end too, another process adopts its child.

:class:`ThreadWorker` is for sweeps of so little work that processes would not pay.  It has the part
of Dask's client that the loop of a sweep uses.  The thread ends with the process: an interrupt does
not wait for its task.  There is one thread, because several would wait for each other in the
interpreter while the clocks of their runs go on.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from mkldist.core.durable import remove_temporaries, temporary_folder, temporary_path, writing
from mkldist.run.record_queue import Message

LOCAL_HOST = "127.0.0.1"
CLOSE_SECONDS = 10.0  # after which processes that do not close are killed
LOOK_SECONDS = 1.0  # between looks at whether the coordinator is there
# The search path comes first, so that no module of the current folder is taken for another one.
PROGRAM = (
    "import sys, json; order = json.loads(sys.stdin.readline()); sys.path[:] = order['path']; "
    "from mkldist.run.local_workers import serve; serve(order)"
)
END = "end\n"
MOST_LETTERS = 75  # of a folder in which the name of a socket, of 108 letters at most, has room


@contextmanager
def local_workers(n_workers: int, threads: int, environ: Mapping[str, object]) -> Iterator[str]:
    """Start a scheduler and workers with Dask's settings, yield its address, and stop them."""
    import dask

    started = {name: str(value) for name, value in environ.items()} | dict(os.environ)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if _has_errors_output() else subprocess.DEVNULL,
        text=True,
        env=started,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    order = {
        "path": [os.path.abspath(path) for path in sys.path],  # noqa: PTH100, of strings
        "options": {
            "n_workers": n_workers,
            "threads_per_worker": threads,
            "dashboard_address": f"{LOCAL_HOST}:0",
        },
        "settings": dask.config.config,
        "environ": {name: started[name] for name in environ},
    }
    try:
        answer = _answer(process, order)
        if "address" not in answer:
            raise RuntimeError(answer.get("error", "a process that ended"))
        yield answer["address"]
    finally:
        _end(process)


def _has_errors_output() -> bool:
    """Return False for a program without standard error output, as one begun with ``2>&-``.

    A file that took its number since is not for the processes that the program starts.
    """
    try:
        return os.get_inheritable(2)
    except OSError:
        return False


def _answer(process: subprocess.Popen[str], order: Mapping[str, Any]) -> dict[str, str]:
    """Give a process its order; return what it replies, nothing if it has ended."""
    with suppress(OSError, ValueError):
        print(json.dumps(order, default=str), file=process.stdin, flush=True)
        answer: dict[str, str] = json.loads(process.stdout.readline() if process.stdout else "")
        return answer
    return {}


def _end(process: subprocess.Popen[str]) -> None:
    """Have a process close its workers; kill all that do not end."""
    try:
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            process.communicate(END, timeout=CLOSE_SECONDS)
    finally:
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)  # the workers too
            else:
                process.kill()
        process.wait()


def serve(order: Mapping[str, Any]) -> None:
    """Start a cluster in this process; keep it until the process that ordered it wants its end."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what workers print goes to the terminal
    ends, coordinator = threading.Event(), os.getppid()

    def wait_for_end() -> None:
        if sys.stdin.readline() != END:
            os._exit(1)  # the coordinator was killed; workers end with their parent
        ends.set()

    def wait_for_adoption() -> None:
        while os.getppid() == coordinator:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    for wait in (wait_for_end, wait_for_adoption):
        threading.Thread(target=wait, daemon=True).start()
    import dask

    settings = order["settings"] | {"distributed.nanny.pre-spawn-environ": order["environ"]}
    if sys.platform == "linux" and len(settings["temporary-directory"]) <= MOST_LETTERS:
        own = {name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}
        os.environ["TMPDIR"] = settings["temporary-directory"]  # what is left there is removed
        tempfile.gettempdir()  # and remembered: workers have the user's folder again
        del os.environ["TMPDIR"]
        os.environ.update(own)
        threading.Thread(target=import_once, daemon=True).start()
        settings["distributed.worker.multiprocessing-method"] = "forkserver"
    with dask.config.set(settings):
        from distributed import LocalCluster

        try:
            cluster = LocalCluster(
                processes=True, memory_limit=0, silence_logs="CRITICAL", **order["options"]
            )
        except Exception as error:
            print(
                json.dumps({"error": f"{type(error).__name__}: {error}"}), file=replies, flush=True
            )
            return
        with cluster:
            answer = {"address": cluster.scheduler_address}
            print(json.dumps(answer), file=replies, flush=True)
            ends.wait()
            with suppress(Exception):
                cluster.close(timeout=CLOSE_SECONDS)


def import_once() -> None:
    """Start the process that workers fork from; it imports what they need, for all of them."""
    context = multiprocessing.get_context("forkserver")
    used = ["distributed", "mkldist.run.tasks", "numba", "zarr", "sklearn.preprocessing"]
    context.set_forkserver_preload(used)
    first = context.Process(target=os.getpid)
    first.start()
    first.join()


@contextmanager
def scratch_of_workers() -> Iterator[str]:
    """Make a folder for the scratch files of workers, and remove it at the end."""
    folder = temporary_path(temporary_folder())
    with writing(folder.parent):
        folder.mkdir()
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned() -> int:
    """Remove the folders that killed processes left, and return their number."""
    return remove_temporaries(temporary_folder())


class ThreadTask(Future[Any]):
    """A task of the thread, with what the loop uses of Dask's futures."""

    def __init__(self, key: str, work: Callable[[], Any]) -> None:
        super().__init__()
        self.key, self._work = key, work

    @property
    def status(self) -> str:
        """``"pending"``, ``"finished"``, ``"error"`` or ``"cancelled"``."""
        if self.cancelled() or not self.done():
            return "cancelled" if self.cancelled() else "pending"
        return "finished" if self.exception() is None else "error"

    def run(self) -> None:
        """Do the work in this thread, unless it was cancelled."""
        if self.set_running_or_notify_cancel():
            try:
                self.set_result(self._work())
            except BaseException as error:  # the coordinator decides what an error means
                self.set_exception(error)

    def release(self) -> None:
        """Do nothing: the outcome goes with the task."""


class ThreadWorker:
    """Thread of this process that does tasks in the order in which they are submitted."""

    dashboard_link = ""

    def __init__(self) -> None:
        self.status = "running"
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._tasks: queue.SimpleQueue[ThreadTask | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="mkldist-worker", daemon=True)
        self._thread.start()

    def nthreads(self) -> dict[str, int]:
        """Return the number of threads by the address of their worker."""
        return {"inproc://here": 1}

    def submit(
        self, function: Callable[[Any], Any], task: Any, *, key: str, pure: bool
    ) -> ThreadTask:
        """Have the thread call ``function(task)``."""
        submitted = ThreadTask(key, lambda: function(task))
        self._tasks.put(submitted)
        return submitted

    def cancel(self, tasks: Sequence[ThreadTask], *, force: bool) -> None:
        """Cancel those of some tasks that have not begun."""
        for task in tasks:
            task.cancel()

    def close(self, *, wait: bool) -> None:
        """End the thread after its task; wait for that if asked to."""
        self.status = "closed"
        self._tasks.put(None)
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        """Do tasks until the end."""
        while (task := self._tasks.get()) is not None:
            task.run()


@contextmanager
def thread_worker() -> Iterator[ThreadWorker]:
    """Start the thread, yield its client, and end it."""
    worker = ThreadWorker()
    try:
        yield worker
    except BaseException:
        worker.close(wait=False)
        raise
    worker.close(wait=True)
