"""Progress of a sweep: bars with rates and remaining times on a terminal, timed lines elsewhere."""

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
    """Numbers of runs, blocks and bytes that a call has to do and has done.

    Parameters
    ----------
    runs, runs_done, runs_failed : int
        Runs of this call, recorded runs (including failed ones), and failed runs.
    bytes, bytes_done : int
        Bytes of Gram matrices found to be missing so far, and bytes built.
    blocks_done : int
        Blocks of Gram matrices built.
    """

    runs: int = 0
    runs_done: int = 0
    runs_failed: int = 0
    bytes: int = 0
    bytes_done: int = 0
    blocks_done: int = 0


class Progress(Protocol):
    """Display of a sweep's progress."""

    def __enter__(self) -> Progress:
        """Begin the display."""

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


def make_progress(console: Console | None) -> Progress:
    """Return bars for a terminal, lines for any other console, silence for none."""
    if console is None:
        return SilentProgress()
    return BarProgress(console) if console.is_terminal else LineProgress(console)


class SilentProgress:
    """Show nothing."""

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
    """Print a line with the counts every few seconds and at the end.

    Parameters
    ----------
    console : Console
        Console that the lines go to.
    every : float
        Seconds between lines.
    clock : callable
        Monotonic clock, in seconds.
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
        """Print the counts, unless they are those of the line before."""
        self._last = self.clock()
        line = describe(self._counts, self._last - self._start)
        if line and line != self._shown:
            self.note(f"[{duration(self._last - self._start)}] {line}")
        self._shown = line


def describe(counts: Counts, seconds: float) -> str:
    """Return counts, rate and remaining time as text.

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
    """Return a time as minutes and seconds, with hours if there are any.

    Examples
    --------
    >>> duration(61), duration(3600)
    ('01:01', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


class BarProgress:
    """Show two bars: one of the banks' bytes, one of runs.

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
        """Move a bar; add it when it is first needed."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, status=status)
        self._bars.update(self._tasks[name], total=total, completed=done, status=status)
