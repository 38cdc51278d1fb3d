"""Ctrl-C in workers of this machine, which ignore it."""

from __future__ import annotations

import asyncio
import signal
import threading
from types import SimpleNamespace

import pytest

from mkldist.worker.setup import WorkerSetup


@pytest.fixture(autouse=True)
def handler():
    """Return the handler of Ctrl-C, which is restored afterwards."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_worker_of_this_machine_ignores_it():
    loop = asyncio.new_event_loop()
    loop.close()
    WorkerSetup().setup(SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop)))
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
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
