"""Ctrl-C that is delayed while something is started or closed."""

from __future__ import annotations

import signal
import threading

import pytest

from mkldist.run.interrupts import delayed_interrupts


def interrupted(times, done, error=None):
    with delayed_interrupts():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        done.append("the rest")
        if error is not None:
            raise error


@pytest.mark.parametrize(("times", "rest"), [(1, ["the rest"]), (2, [])])
def test_an_interrupt_waits_for_the_end_and_the_next_one_does_not(times, rest):
    done = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(times, done)
    assert done == rest
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_is_told_rather_than_an_interrupt():
    with pytest.raises(ValueError, match="mine"):
        interrupted(1, [], ValueError("mine"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_other_handlers_keep_theirs():
    seen = []

    def look():
        with delayed_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        look()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler, signal.SIG_IGN]
