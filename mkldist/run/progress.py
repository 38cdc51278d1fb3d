"""Progress of a sweep: a line that changes on a terminal or in a notebook, lines elsewhere."""

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
UPDATE_SECONDS = 1.0  # least time between two changes of a line that changes in place
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

    def of_next_round(self, n_banks: int) -> Counts:
        """Return the counts with which another round begins, that needs some stored banks."""
        return replace(self, banks=n_banks, built=set(), bytes=0, bytes_done=0, blocks_done=0)

    def note_bank(self, bank: str, *, complete: bool) -> None:
        """Count a bank as complete, or as damaged again."""
        (self.built.add if complete else self.built.discard)(bank)


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


class Progress:
    """Display of a sweep's progress as lines on a console; without one it shows nothing."""

    every = LINE_EVERY_SECONDS

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._clock = console, clock
        self._start = self._last = clock()
        self._counts, self._pace = Counts(), Pace()
        self._doing = self._line = ""  # as they were shown last

    def __enter__(self) -> Self:
        self._start = self._clock()
        # What changes in place is shown at once.
        self._last = self._start + self.every - LINE_EVERY_SECONDS
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the display with the last counts; without them if an error ended the work."""
        if kind is None:
            self._draw(describe(self._counts))

    def note(self, text: str) -> None:
        """Show one line that stays."""
        if self._console is not None:
            self._console.print(text, highlight=False, soft_wrap=True, markup=False)

    def show(self, counts: Counts) -> None:
        """Show some counts; called often."""
        self._counts, now = counts, self._clock()
        rate, since = self._pace.rate(counts, now), now - self._last
        if since >= self.every or (counts.doing != self._doing and since >= NEWS_AFTER_SECONDS):
            self._last, self._doing = now, counts.doing
            self._draw(describe(counts, rate))

    def _draw(self, line: str) -> None:
        """Show a line, unless it is the one before."""
        if line and line != self._line:
            self.note(self._timed(line))
        self._line = line

    def _timed(self, line: str) -> str:
        return f"[{duration(self._clock() - self._start)}] {line}"


class TerminalProgress(Progress):
    """Show one line below the notes, which changes in place."""

    every = UPDATE_SECONDS

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._status = console.status("")

    def __enter__(self) -> Self:
        self._status.start()
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, *details: Any) -> None:
        with suppress(OSError):  # of a closed terminal, which would hide what ended the work
            self._status.stop()
        self._line = ""
        if kind is None:
            self.note(self._timed(describe(self._counts)))

    def _draw(self, line: str) -> None:
        from rich.text import Text

        self._status.update(Text(self._timed(line)))


class NotebookProgress(Progress):
    """Show notes below the cell of a notebook, and under them one line that changes in place."""

    every = UPDATE_SECONDS

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock=clock)
        self._notes: list[str] = []
        self._display: Any = None

    def __exit__(self, *details: object) -> None:
        self._draw(describe(self._counts))

    def note(self, text: str) -> None:
        """See :meth:`Progress.note`."""
        self._notes.append(text)
        self._draw(self._line)

    def _draw(self, line: str) -> None:
        from IPython.display import display

        self._line = line
        lines = [*self._notes, *([self._timed(line)] if line else ())]
        content = {"text/plain": "\n".join(lines)}
        if self._display is None:
            self._display = display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)


def make_progress(console: Console | None) -> Progress:
    """Return the display for a console: in a notebook, on a terminal, elsewhere; None for none."""
    shell = sys.modules.get("IPython")
    if console is not None and shell and hasattr(shell.get_ipython(), "kernel"):
        return NotebookProgress()
    if console is not None and console.is_terminal:
        return TerminalProgress(console)
    return Progress(console)


def describe(counts: Counts, rate: float | None = None) -> str:
    """Return counts as text, with what is being done, and the rate and remaining time if known."""
    parts = []
    if counts.bytes and len(counts.built) < counts.banks:
        parts.append(f"{len(counts.built)} of {counts.banks} banks built")
    if counts.runs:
        most = "at most " * counts.may_be_fewer
        parts.append(f"{counts.runs_done} of {most}{counts.runs} runs")
    left = counts.runs - counts.runs_done
    if rate and left:
        parts.append(f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute")
        at_work = counts.runs_done - counts.runs_of_ended_batches  # batches do quick ones first
        least = "at least " if at_work > counts.runs_of_ended_batches else ""
        parts.append(f"{least}{duration(left / rate)} left")
    if counts.runs_failed:
        parts.append(f"{counts.runs_failed} failed")
    doing = f"{counts.doing}: " if counts.doing and parts else ""
    return doing + ", ".join(parts)


def duration(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
