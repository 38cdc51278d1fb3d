"""Delay Ctrl-C in critical sections, and start processes that it does not reach."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the context ends; a second Ctrl-C stops at once.

    Nothing changes in other threads than the main one, since Python delivers Ctrl-C to that one
    alone, nor where the program has a handler of its own.

    Raises
    ------
    KeyboardInterrupt
        At the end if Ctrl-C came meanwhile, and at once if it came twice.
    """
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is not signal.default_int_handler:
        yield
        return
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if count:
        raise KeyboardInterrupt


@contextmanager
def own_handlers() -> Iterator[None]:
    """Restore the handlers of signals at the end of the context.

    Modules of others may set handlers when they are imported, as dask-jobqueue does for Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in HANDLED}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def children_without_interrupts() -> Iterator[None]:
    """Shield processes that are started in this context, and their children, from Ctrl-C.

    They share the terminal with this process.  Ctrl-C would end them with a traceback before this
    process tells them to stop.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
