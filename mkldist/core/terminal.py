"""What a terminal shows and what it sends: consoles, commands, and signals that end a program.

Consoles print names as they are: a bracket is no markup.  Ctrl-C raises KeyboardInterrupt in
Python.  The command line has SIGTERM, by which schedulers and ``kill`` end programs, and SIGHUP,
which a closed terminal sends, do the same.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

ENDLESS = 10_000
"""Characters of a line that nothing fills."""


def command_line(*words: object) -> str:
    """Return a command of mkldist as a shell takes it.

    >>> command_line("clean", "results/my sweep")
    "mkldist clean 'results/my sweep'"
    """
    return shlex.join(["mkldist", *map(str, words)])


def standard_output() -> Console:
    """Return the console of standard output.

    Other programs read what is piped: it is as wide as it needs to be, so that names stay whole,
    unless the variable COLUMNS has a width.
    """
    from rich.console import Console

    console = Console(markup=False, emoji=False)
    if not (console.is_terminal or console.is_jupyter or "COLUMNS" in os.environ):
        console.width = ENDLESS
    return console


def standard_error() -> Console:
    """Return the console of standard error."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False)


def as_text(content: RenderableType, width: int) -> str:
    """Return what a console of some width prints, without the last line break."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=width, force_jupyter=False, markup=False, emoji=False)
    console.print(content, crop=False)
    return file.getvalue().rstrip("\n")


def plain_table(headings: Sequence[str], *, left: int = 1, **columns: Any) -> Table:
    """Return a table with these headings: the first so many columns of text, others of numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right", **columns)
    return table


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
