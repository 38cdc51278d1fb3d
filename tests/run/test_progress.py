"""Progress lines: when they come, and their counts, rates and remaining times."""

from __future__ import annotations

import errno
import io
import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console

from mkldist.run.progress import (
    BarProgress,
    Counts,
    LineProgress,
    NotebookProgress,
    Pace,
    Progress,
    describe,
    duration,
    make_progress,
)


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120)


class ClosedTerminal(io.StringIO):
    """A terminal that takes nothing once it is closed."""

    is_closed = False

    def write(self, text: str) -> int:
        if self.is_closed:
            raise OSError(errno.EIO, "Input/output error")
        return super().write(text)


def test_lines_are_timed_and_not_repeated():
    now = [100.0]
    target = console(terminal=False)
    with LineProgress(target, every=10.0, clock=lambda: now[0]) as progress:
        for second in range(25):
            now[0] = 100.0 + second
            progress.show(Counts(runs=50, runs_done=2 * second, doing="solving"))
        progress.show(Counts(runs=50, runs_done=50, runs_failed=3))
    lines = target.file.getvalue().splitlines()
    assert [line[:7] for line in lines] == ["[00:02]", "[00:12]", "[00:22]", "[00:24]"]
    assert lines[0].endswith("] solving: 4 of 50 runs")
    assert lines[1].endswith("] solving: 24 of 50 runs, 2.0 a second, at least 00:13 left")
    assert lines[-1].endswith("3 failed")


@pytest.mark.parametrize("terminal", [True, False])
def test_stale_numbers_are_not_what_an_interruption_leaves(terminal):
    target = console(terminal=terminal)
    progress = make_progress(target)
    progress.__enter__()
    progress.show(Counts(runs=50, runs_done=7))
    progress.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert "7 of 50" not in target.file.getvalue().rpartition("\x1b[2K")[2]


def test_what_is_waited_for_is_news_that_does_not_wait_for_the_next_line():
    now, target = [0.0], console(terminal=False)
    doings = {0: "waiting for workers", 1: "building banks", 3: "compiling", 9: "solving"}
    with LineProgress(target, every=100.0, clock=lambda: now[0]) as progress:
        counts = Counts(runs=4)
        for second in range(12):
            now[0], counts.doing = float(second), doings.get(second, counts.doing)
            progress.show(counts)
        counts.runs_done = 4
    assert target.file.getvalue().splitlines() == [
        "[00:02] building banks: 0 of 4 runs",
        "[00:04] compiling: 0 of 4 runs",
        "[00:09] solving: 0 of 4 runs",
        "[00:11] solving: 4 of 4 runs",
    ]


def rates(*done: int, doing: str = "solving") -> list[float | None]:
    """Return what the pace says each second, given the runs that have ended by then."""
    pace = Pace()
    return [
        pace.rate(Counts(runs=100, runs_done=n, doing=doing), float(second))
        for second, n in enumerate(done)
    ]


def test_a_remaining_time_needs_some_seconds_and_runs():
    assert rates(*range(7)) == [None] * 5 + [1.0, 1.0]
    assert rates(*[0, 0, 0, 0, 0, 0, 0, 4]) == [None] * 8


def test_a_remaining_time_needs_a_steady_rate():
    assert rates(*[0, 20, 20, 20, 20, 20, 20, 20]) == [None] * 8  # a burst, then nothing
    assert rates(*[0, 0, 0, 0, 0, 0, 0, 20]) == [None] * 8  # nothing, then a burst


def test_time_before_the_first_run_is_solved_is_no_part_of_the_rate():
    pace = Pace()
    for second in range(100):
        assert pace.rate(Counts(runs=50, doing="compiling"), float(second)) is None
    found = [
        pace.rate(Counts(runs=50, runs_done=2 * n, doing="solving"), 100.0 + n) for n in range(9)
    ]
    assert found == [None] * 5 + [2.0] * 4


def test_banks_are_shown_while_they_are_built():
    text = describe(Counts(runs=5, bytes=4 * 2**20, bytes_done=2**20, banks=4, built={"a"}))
    assert text == "1 of 4 banks built, 0 of 5 runs"
    assert "banks" not in describe(Counts(runs=5, bytes=10, banks=1, built={"a"}))
    assert "banks" not in describe(Counts(runs=5, banks=1))


@pytest.mark.parametrize(("ended", "least"), [(0, True), (4, True), (5, False), (10, False)])
def test_a_remaining_time_is_a_least_one_while_quick_runs_have_set_the_rate(ended, least):
    said = describe(Counts(runs=100, runs_done=10, runs_of_ended_batches=ended), 2.0)
    assert ("at least 00:45 left" in said) == least


def test_slow_runs_are_counted_by_the_minute():
    half = Counts(runs=10, runs_done=5, runs_of_ended_batches=5)
    assert describe(half, 0.5) == "5 of 10 runs, 30.0 a minute, 00:10 left"
    assert describe(Counts(runs=10, runs_done=10), 0.5) == "10 of 10 runs"
    assert duration(7322) == "2:02:02"


def test_a_terminal_gets_bars_and_a_pipe_lines():
    assert isinstance(make_progress(None), Progress)
    assert isinstance(make_progress(console(terminal=False)), LineProgress)
    target = console(terminal=True)
    with make_progress(target) as progress:
        assert isinstance(progress, BarProgress)
        progress.note("[not markup]")
        progress.show(Counts(runs=8, runs_done=8, bytes=2**20, banks=2, built={"a"}))
    shown = target.file.getvalue()
    assert "[not markup]" in shown
    assert "8 of 8 runs" in shown
    assert "1 of 2 built" in shown


def test_a_notebook_gets_one_display_that_changes_in_place(monkeypatch):
    """A stand-in for IPython, which the tests do not need."""
    shown: list[str] = []

    class Place:
        def update(self, content, *, raw):
            shown[-1] = content["text/plain"]

    def display(content, *, raw, display_id):
        shown.append(content["text/plain"])
        return Place()

    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(kernel=object())
    shell.display = ModuleType("IPython.display")
    shell.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shell.display)
    assert isinstance(make_progress(console(terminal=False)), NotebookProgress)
    now = [10.0]
    with NotebookProgress(clock=lambda: now[0]) as progress:
        progress.note("some: 4 runs to do")
        now[0] = 14.0
        progress.show(Counts(runs=4, runs_done=1, doing="solving"))
        progress.show(Counts(runs=4, runs_done=2, doing="solving"))  # too soon to be shown
        assert shown == ["some: 4 runs to do\n[00:04] solving: 1 of 4 runs"]
        progress.note("a second note")
        now[0] = 90.0
        progress.show(Counts(runs=4, runs_done=4))
    assert shown == ["some: 4 runs to do\na second note\n[01:20] 4 of 4 runs"]
    shell.get_ipython = lambda: None  # a program that has imported IPython
    assert isinstance(make_progress(console(terminal=False)), LineProgress)


def test_a_later_round_goes_on_counting():
    first = Counts(runs=9, runs_done=4, runs_failed=1, banks=3, built={"a"}, bytes=8, bytes_done=8)
    second = first.of_next_round(2)
    assert (second.runs, second.runs_done, second.runs_failed) == (9, 4, 1)
    assert (second.banks, second.built, second.bytes, second.bytes_done) == (2, set(), 0, 0)
    assert describe(replace(second, may_be_fewer=True)) == "4 of at most 9 runs, 1 failed"


def test_a_terminal_that_is_closed_does_not_hide_what_ended_the_work():
    file = ClosedTerminal()

    def work() -> None:
        with BarProgress(Console(file=file, force_terminal=True, width=120)) as bars:
            bars.show(Counts(runs=4, runs_done=1))
            file.is_closed = True
            raise KeyboardInterrupt("of the terminal")

    with pytest.raises(KeyboardInterrupt, match="of the terminal"):
        work()
