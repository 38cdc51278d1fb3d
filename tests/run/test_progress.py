"""Progress lines: when they come, and their counts, rates and remaining times."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mkldist.run.progress import (
    BarProgress,
    Counts,
    LineProgress,
    SilentProgress,
    describe,
    duration,
    make_progress,
)


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120)


def test_lines_are_timed_and_not_repeated():
    now = [100.0]
    target = console(terminal=False)
    with LineProgress(target, every=10.0, clock=lambda: now[0]) as progress:
        for second in range(25):
            now[0] = 100.0 + second
            progress.show(Counts(runs=50, runs_done=2 * second))
        progress.show(Counts(runs=50, runs_done=50, runs_failed=3))
    lines = target.file.getvalue().splitlines()
    assert [line[:7] for line in lines] == ["[00:10]", "[00:20]", "[00:24]"]
    assert lines[0].endswith("20 of 50 runs, 2.0 a second, 00:15 left")
    assert lines[-1].endswith("3 failed")


@pytest.mark.parametrize("terminal", [True, False])
def test_stale_numbers_are_not_what_an_interruption_leaves(terminal):
    target = console(terminal=terminal)
    progress = make_progress(target)
    progress.__enter__()
    progress.show(Counts(runs=50, runs_done=7))
    progress.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert "7 of 50" not in target.file.getvalue().rpartition("\x1b[2K")[2]


def test_banks_are_shown_while_they_are_built():
    text = describe(Counts(runs=5, bytes=4 * 2**20, bytes_done=2**20), 1.0)
    assert text == "banks 1 of 4 MiB, 0 of 5 runs"
    assert "banks" not in describe(Counts(runs=5, bytes=10, bytes_done=10), 1.0)


def test_slow_runs_are_counted_by_the_minute():
    assert "30.0 a minute" in describe(Counts(runs=10, runs_done=5), 10.0)
    assert duration(7322) == "2:02:02"


def test_a_terminal_gets_bars_and_a_pipe_lines():
    assert isinstance(make_progress(None), SilentProgress)
    assert isinstance(make_progress(console(terminal=False)), LineProgress)
    target = console(terminal=True)
    with make_progress(target) as progress:
        assert isinstance(progress, BarProgress)
        progress.note("[not markup]")
        progress.show(Counts(runs=8, runs_done=8, bytes=2**20, bytes_done=2**20))
    shown = target.file.getvalue()
    assert "[not markup]" in shown
    assert "8 of 8 runs" in shown
    assert "1/1 MiB" in shown
