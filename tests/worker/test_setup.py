"""What workers of this machine begin with: they ignore Ctrl-C, and watch for lost threads."""

from __future__ import annotations

import signal
import threading

import pytest

from mkldist.worker.setup import WorkerSetup


@pytest.fixture(autouse=True)
def handler():
    """Return the handler of Ctrl-C, which is restored afterwards."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_worker_of_this_machine_ignores_it():
    before = set(threading.enumerate())
    WorkerSetup().setup(None)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert [one.name for one in set(threading.enumerate()) - before] == ["mkldist-lost-threads"]
    signal.raise_signal(signal.SIGINT)  # would be a KeyboardInterrupt


def test_a_worker_in_a_thread_leaves_its_process_alone(handler):
    failures = []

    def set_up() -> None:
        try:
            WorkerSetup().setup(None)
        except ValueError as error:  # signal only works in the main thread
            failures.append(error)

    thread = threading.Thread(target=set_up)
    thread.start()
    thread.join()
    assert not failures
    assert signal.getsignal(signal.SIGINT) is handler
