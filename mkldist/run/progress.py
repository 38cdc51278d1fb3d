"""Progress of a sweep: bars with rates and times left on a terminal, timed lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY_SECONDS = 10.0
MIB = 2**20


@dataclass
class Counts:
    """How far a sweep is.

    Parameters
    ----------
    runs, runs_done, runs_failed : int
        Runs of this call, those that are recorded (failed ones among them), and failed ones.
    bytes, bytes_done : int
        Gram matrices to be built as far as is known, and built so far.
    blocks_done : int
        Blocks of Gram matrices built so far.
    """

    runs: int = 0
    runs_done: int = 0
    runs_failed: int = 0
    bytes: int = 0
    bytes_done: int = 0
    blocks_done: int = 0


class Progress(Protocol):
    """What the coordinator reports to."""

    def __enter__(self) -> Progress:
        """Begin to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Show the last state, unless an error ended the work and says more, and stop."""

    def note(self, text: str) -> None:
        """Show one line that stays."""

    def show(self, counts: Counts) -> None:
        """Show how far the sweep is; called often."""


def make_progress(console: Console | None) -> Progress:
    """Return bars for a terminal, lines for any other console, silence for none."""
    if console is None:
        return SilentProgress()
    return BarProgress(console) if console.is_terminal else LineProgress(console)


class SilentProgress:
    """Says nothing."""

    def __enter__(self) -> SilentProgress:
        return self

    def __exit__(self, *details: object) -> None:
        pass

    def note(self, text: str) -> None:
        """See :meth:`Progress.note`."""

    def show(self, counts: Counts) -> None:
        """See :meth:`Progress.show`."""


@dataclass
class LineProgress:
    """One line at the start, every few seconds, and at the end.

    Parameters
    ----------
    console : Console
        Where the lines go.
    every : float
        Seconds between lines.
    clock : callable
        Seconds, monotonic.
    """

    console: Console
    every: float = LINE_EVERY_SECONDS
    clock: Callable[[], float] = time.monotonic
    _start: float = field(init=False, default=0.0)
    _last: float = field(init=False, default=0.0)
    _counts: Counts = field(init=False, default_factory=Counts)
    _shown: str = field(init=False, default="")

    def __enter__(self) -> LineProgress:
        self._start = self._last = self.clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self._print()

    def note(self, text: str) -> None:
        """See :meth:`Progress.note`."""
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def show(self, counts: Counts) -> None:
        """See :meth:`Progress.show`."""
        self._counts = counts
        if self.clock() - self._last >= self.every:
            self._print()

    def _print(self) -> None:
        self._last = self.clock()
        line = describe(self._counts, self._last - self._start)
        if line and line != self._shown:
            self.note(f"[{duration(self._last - self._start)}] {line}")
        self._shown = line


def describe(counts: Counts, seconds: float) -> str:
    """Return counts, rates and the time left in words.

    Examples
    --------
    >>> describe(Counts(runs=80, runs_done=20, runs_failed=1), 10.0)
    '20 of 80 runs, 2.0 a second, 00:30 left, 1 failed'
    """
    parts = []
    if counts.bytes_done < counts.bytes:
        parts.append(f"banks {counts.bytes_done / MIB:.0f} of {counts.bytes / MIB:.0f} MiB")
    if counts.runs:
        parts.append(f"{counts.runs_done} of {counts.runs} runs")
    if counts.runs_done and seconds > 0:
        rate = counts.runs_done / seconds
        parts.append(f"{rate:.1f} a second" if rate >= 1 else f"{60 * rate:.1f} a minute")
        if counts.runs_done < counts.runs:
            parts.append(f"{duration((counts.runs - counts.runs_done) / rate)} left")
    if counts.runs_failed:
        parts.append(f"{counts.runs_failed} failed")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Return seconds as minutes and seconds, with hours if there are any.

    Examples
    --------
    >>> duration(61), duration(3600)
    ('01:01', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


class BarProgress:
    """Two bars: bytes of banks and runs.

    Parameters
    ----------
    console : Console
        A terminal.
    """

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._start = time.monotonic()
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> BarProgress:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is not None:
            for task in self._tasks.values():
                self._bars.remove_task(task)
        self._bars.stop()

    def note(self, text: str) -> None:
        """See :meth:`Progress.note`."""
        self._bars.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def show(self, counts: Counts) -> None:
        """See :meth:`Progress.show`."""
        if counts.bytes:
            status = f"{counts.bytes_done / MIB:.0f}/{counts.bytes / MIB:.0f} MiB"
            self._update("banks", counts.bytes, counts.bytes_done, status)
        if counts.runs:
            runs_only = Counts(counts.runs, counts.runs_done, counts.runs_failed)
            status = describe(runs_only, time.monotonic() - self._start)
            self._update("runs", counts.runs, counts.runs_done, status)

    def _update(self, name: str, total: int, done: int, status: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, status=status)
        self._bars.update(self._tasks[name], total=total, completed=done, status=status)
