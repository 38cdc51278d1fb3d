"""Errors of tasks: which of them end a run, and how they read."""

from __future__ import annotations

from collections.abc import Sequence

from mkldist.counted import counted
from mkldist.errors import DataError, GramError, SpecError, UnreadableError


def is_final(error: BaseException) -> bool:
    """Return True for an error of data or kernels, which every attempt would meet again."""
    return isinstance(error, DataError | GramError | SpecError)


def unread_error(errors: Sequence[UnreadableError]) -> UnreadableError:
    """Return the error of the runs whose bank or data could not be read, one for each run."""
    last, runs = errors[-1], counted(len(errors), "run")
    hint = last.hint or "Repeat the command"
    return UnreadableError(last.where, f"{last.found}; {runs} left to do", last.expected, hint)


def error_line(error: BaseException) -> str:
    """Return an error in one line; Dask's error for a killed worker in words."""
    if type(error).__name__ == "KilledWorker":
        return (
            "the worker process died again and again while it did this, "
            "for example for lack of memory"
        )
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
