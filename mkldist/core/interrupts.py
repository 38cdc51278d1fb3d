"""Signals that end a program: one meaning for all, and delay in critical sections.

Ctrl-C raises KeyboardInterrupt in Python.  The command line has SIGTERM, by which schedulers and
``kill`` end programs, and SIGHUP, which a closed terminal sends, do the same.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HANDLED = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP"):  # Windows has none
    HANDLED.append(signal.SIGHUP)


def interrupt_by_all_signals() -> None:
    """Have SIGTERM and SIGHUP interrupt this program as Ctrl-C does.

    A signal that is ignored, as SIGHUP under ``nohup``, or handled already stays so.
    """
    if threading.current_thread() is threading.main_thread():
        for each in HANDLED:
            if signal.getsignal(each) is signal.SIG_DFL:
                signal.signal(each, signal.default_int_handler)


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Delay Ctrl-C and its like until the context ends; the second Ctrl-C stops at once.

    The other signals may come from several sides when one end is meant, as at a logout.
    Nothing changes in other threads than the main one, since Python delivers signals to that one
    alone, nor where the program has a handler of its own.
    """
    delayed = [one for one in HANDLED if signal.getsignal(one) is signal.default_int_handler]
    if not delayed or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(sign: int, _: object) -> None:
        came.append(sign)
        if came.count(signal.SIGINT) > 1:
            raise KeyboardInterrupt

    for each in delayed:
        signal.signal(each, note)
    try:
        yield
    finally:
        for each in delayed:
            signal.signal(each, signal.default_int_handler)
    if came:
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
