"""Ctrl-C at moments when it would leave something half done, and for processes it does not mean."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Have Ctrl-C wait until the context ends; who repeats it does not wait.

    In other threads than the main one, which do not get it, nothing changes.

    Raises
    ------
    KeyboardInterrupt
        At the end if it came meanwhile, and at once if it came twice.
    """
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is not signal.default_int_handler:
        yield
        return
    came = 0

    def note(*_: object) -> None:
        nonlocal came
        came += 1
        if came > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


@contextmanager
def children_without_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, nor those that they start.

    They share the terminal and would die with a traceback before they are told to stop.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
