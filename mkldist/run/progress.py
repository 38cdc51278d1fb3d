"""Progress of a sweep: bars on a terminal, a line that changes in a notebook, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_SECONDS = 10.0
UPDATE_SECONDS = 1.0  # least time between two changes of a line in a notebook
SOLVING = "solving"
NEWS_AFTER_SECONDS = 2.0  # since the last line, for a line that says what is done now
# A remaining time is shown when so many seconds and runs are behind it, and the rate of the later
# half of that time differs from that of all of it by no more than this factor.
PACE_SECONDS = 5.0
PACE_RUNS = 5
PACE_FACTOR = 1.5


@dataclass
class Counts:
    """Numbers of runs, blocks and bytes that a call has to do and has done."""

    # Runs of this call in all of its rounds, recorded runs (including failed ones), and failed runs
    runs: int = 0
    runs_done: int = 0
    runs_failed: int = 0
    may_be_fewer: bool = False  # True if later rounds may have fewer runs than `runs` counts
    bytes: int = 0  # bytes of Gram matrices found to be missing so far, and bytes built
    bytes_done: int = 0
    blocks_done: int = 0  # blocks of Gram matrices built
    doing: str = ""  # what the workers are doing, such as ``"compiling"``; empty if unknown
    banks: int = 0  # stored banks that the runs need
    built: set[str] = field(default_factory=set)  # those of them that are known to be complete
    runs_of_ended_batches: int = 0  # recorded runs that are of batches that have ended

    @property
    def are_first_of_batches(self) -> bool:
        """True if most recorded runs are of batches at work, whose quick runs end first."""
        return 2 * self.runs_of_ended_batches < self.runs_done

    def of_next_round(self, n_banks: int) -> Counts:
        """Return the counts with which another round begins, that needs some stored banks."""
        return replace(self, banks=n_banks, built=set(), bytes=0, bytes_done=0, blocks_done=0)

    def note_bank(self, bank: str, *, complete: bool) -> None:
        """Count a bank as complete, or as damaged again."""
        (self.built.add if complete else self.built.discard)(bank)


class Progress:
    """Display of a sweep's progress; this one shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the display with the last counts; without them if an error ended the work."""

    def note(self, text: str) -> None:
        """Show one line that stays."""

    def show(self, counts: Counts) -> None:
        """Show some counts; called often."""


@dataclass
class Pace:
    """Rate at which runs end, counted from when the first of them is being solved."""

    _start: float | None = field(init=False, default=None)
    _marks: list[tuple[float, int]] = field(init=False, default_factory=list)

    def rate(self, counts: Counts, now: float) -> float | None:
        """Return the runs that end in a second, or None while that is not steady yet."""
        if self._start is None:
            if not (counts.runs_done or SOLVING in counts.doing):
                return None
            self._start = now
            self._marks.append((now, counts.runs_done))
        if counts.runs_done > self._marks[-1][1]:
            self._marks.append((now, counts.runs_done))
        (start, before), seconds = self._marks[0], now - self._start
        done = counts.runs_done - before
        if seconds < PACE_SECONDS or done < PACE_RUNS:
            return None
        half = start + 0.5 * seconds
        later = counts.runs_done - max(n for at, n in self._marks if at <= half)
        rate, later_rate = done / seconds, 2.0 * later / seconds
        steady = rate <= PACE_FACTOR * later_rate and later_rate <= PACE_FACTOR * rate
        return rate if steady else None


def make_progress(console: Console | None) -> Progress:
    """Return bars for a terminal, a line that changes for a notebook, lines for any other console.

    None shows nothing.
    """
    if console is None:
        return Progress()
    if in_notebook():
        return NotebookProgress()
    return BarProgress(console) if console.is_terminal else LineProgress(console)


def in_notebook() -> bool:
    """Return True in the process of a notebook, which shows what is displayed below a cell."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


@dataclass
class TimedProgress(Progress):
    """Display that says how long the work has taken."""

    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _start: float = field(init=False, default=0.0)
    _last: float = field(init=False, default=float("-inf"))  # time of the last change
    _counts: Counts = field(init=False, default_factory=Counts)
    _pace: Pace = field(init=False, default_factory=Pace)
    _shown: str = field(init=False, default="")

    def __enter__(self) -> Self:
        self._start = self.clock()
        return self

    def _timed(self, line: str) -> str:
        return f"[{duration(self.clock() - self._start)}] {line}"


@dataclass
class LineProgress(TimedProgress):
    """Print a line with the counts every few seconds and at the end."""

    console: Console
    every: float = LINE_EVERY_SECONDS
    _doing: str = field(init=False, default="")

    def __enter__(self) -> Self:
        super().__enter__()
        self._last = self._start
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self._print(None)

    def note(self, text: str) -> None:
        """See :meth:`Progress.note`."""
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def show(self, counts: Counts) -> None:
        """See :meth:`Progress.show`."""
        self._counts, now = counts, self.clock()
        rate = self._pace.rate(counts, now)
        is_news = counts.doing != self._doing and now - self._last >= NEWS_AFTER_SECONDS
        if is_news or now - self._last >= self.every:
            self._last = now
            self._print(rate)

    def _print(self, rate: float | None) -> None:
        """Print the counts, unless they are those of the line before."""
        self._doing = self._counts.doing
        line = describe(self._counts, rate)
        if line and line != self._shown:
            self.note(self._timed(line))
        self._shown = line


@dataclass
class NotebookProgress(TimedProgress):
    """Show notes below the cell of a notebook, and under them one line that changes in place."""

    _notes: list[str] = field(init=False, default_factory=list)
    _display: Any = field(init=False, default=None)

    def __exit__(self, *details: object) -> None:
        self._change(describe(self._counts))

    def note(self, text: str) -> None:
        """See :meth:`Progress.note`."""
        self._notes.append(text)
        self._change(self._shown)

    def show(self, counts: Counts) -> None:
        """See :meth:`Progress.show`."""
        self._counts, now = counts, self.clock()
        rate = self._pace.rate(counts, now)
        if now - self._last >= UPDATE_SECONDS:
            self._last = now
            self._change(describe(counts, rate))

    def _change(self, line: str) -> None:
        """Show the notes and a line, in the place of what was shown before."""
        from IPython.display import display

        self._shown = line
        lines = [*self._notes, *([self._timed(line)] if line else ())]
        content = {"text/plain": "\n".join(lines)}
        if self._display is None:
            self._display = display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)


def describe(counts: Counts, rate: float | None = None) -> str:
    """Return counts as text, with what is being done, and the rate and remaining time if known.

    The remaining time is a least one where the quickest runs of unfinished batches have set the
    rate.

    Examples
    --------
    >>> counts = Counts(runs=80, runs_done=20, runs_failed=1, doing="solving")
    >>> describe(counts, 2.0)
    'solving: 20 of 80 runs, 2.0 a second, at least 00:30 left, 1 failed'
    >>> describe(replace(counts, runs_of_ended_batches=16), 2.0)
    'solving: 20 of 80 runs, 2.0 a second, 00:30 left, 1 failed'
    """
    parts = []
    if counts.bytes and len(counts.built) < counts.banks:
        parts.append(f"{len(counts.built)} of {counts.banks} banks built")
    if counts.runs:
        most = "at most " * counts.may_be_fewer
        parts.append(f"{counts.runs_done} of {most}{counts.runs} runs")
    left = counts.runs - counts.runs_done
    if rate and left:
        parts.append(f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute")
        least = "at least " if counts.are_first_of_batches else ""
        parts.append(f"{least}{duration(left / rate)} left")
    if counts.runs_failed:
        parts.append(f"{counts.runs_failed} failed")
    doing = f"{counts.doing}: " if counts.doing and parts else ""
    return doing + ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if there are any.

    Examples
    --------
    >>> duration(61), duration(3600)
    ('01:01', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


class BarProgress(Progress):
    """Show two bars: one of banks, one of runs."""

    def __init__(self, console: Console) -> None:
        from rich import progress as rich

        self._bars = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.TextColumn("{task.fields[status]}"),
            rich.TimeElapsedColumn(),
            console=console,
        )
        self._pace = Pace()
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self._bars.stop()
            return
        with suppress(OSError):  # of a terminal that is closed, which hides what ended the work
            for task in self._tasks.values():
                self._bars.remove_task(task)
            self._bars.stop()

    def note(self, text: str) -> None:
        """See :meth:`Progress.note`."""
        self._bars.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def show(self, counts: Counts) -> None:
        """See :meth:`Progress.show`."""
        built = len(counts.built)
        if counts.bytes:
            self._update("banks", counts.banks, built, f"{built} of {counts.banks} built")
        if counts.runs:
            rate = self._pace.rate(counts, time.monotonic())
            status = describe(replace(counts, bytes=0), rate)
            self._update("runs", counts.runs, counts.runs_done, status)

    def _update(self, name: str, total: int, done: int, status: str) -> None:
        """Move a bar; add it when it is first needed."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, status=status)
        self._bars.update(self._tasks[name], total=total, completed=done, status=status)
