"""What consoles print, and signals that interrupt."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.table import Table

import mkldist
from mkldist.core.terminal import (
    HANDLED,
    as_text,
    delayed_interrupts,
    interrupt_by_all_signals,
    standard_error,
    standard_output,
)

WORDS = "[/red] [bold]a[0] :warning: \\[b]"


def test_brackets_and_colons_are_no_markup(capsys):
    table = Table(WORDS)
    table.add_row(WORDS)
    for content in (WORDS, table):
        standard_output().print(content)
        standard_error().print(content)
        printed = capsys.readouterr()
        for said in (printed.out, printed.err, as_text(content, 80)):
            assert WORDS in said


def test_no_other_module_makes_a_console():
    package = Path(mkldist.__file__).parent
    makers = {file for file in package.rglob("*.py") if "Console(" in file.read_text("utf-8")}
    assert makers == {package / "core" / "terminal.py"}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Handlers as a program has them that nobody has changed."""
    before = {each: signal.getsignal(each) for each in HANDLED}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def interrupted(signs, done, error=None):
    with delayed_interrupts():
        for sign in signs:
            signal.raise_signal(sign)
        done.append("the rest")
        if error is not None:
            raise error


@pytest.mark.parametrize(
    ("signs", "rest"),
    [
        *([[sign], ["the rest"]] for sign in HANDLED),
        ([signal.SIGINT, signal.SIGINT], []),
        ([signal.SIGTERM, signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGINT],
         ["the rest"]),
        ([signal.SIGINT, signal.SIGHUP, signal.SIGINT], []),
    ],
)  # fmt: skip
def test_an_interrupt_waits_for_the_end_and_a_second_ctrl_c_does_not(signs, rest):
    interrupt_by_all_signals()
    done = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(signs, done)
    assert done == rest
    assert {signal.getsignal(each) for each in HANDLED} == {signal.default_int_handler}


def test_signals_that_are_ignored_or_handled_stay_so():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def own(*_: object) -> None:
        pass

    signal.signal(signal.SIGTERM, own)
    interrupt_by_all_signals()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is own
    with delayed_interrupts():
        assert signal.getsignal(signal.SIGTERM) is own


def test_an_error_is_told_rather_than_an_interrupt():
    with pytest.raises(ValueError, match="mine"):
        interrupted([signal.SIGINT], [], ValueError("mine"))
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
