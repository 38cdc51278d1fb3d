"""Errors that a user can act on: place, what was found, what was expected, what to do.

Their messages read alike: ``mine.csv: found no rows; expected at least one point. Add some.``

Every error that a user can cause derives from :class:`MkldistError` and carries the exit code of
the command line.  Any other exception is a defect of mkldist and exits with 1.  Errors in values
that a user passes to a function of Python are ``ValueError`` too, as other packages expect.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

EXIT_INTERNAL = 1
EXIT_BAD_INPUT = 2
EXIT_FAILED_RUNS = 3
EXIT_OUT_OF_TIME = 4
EXIT_INTERRUPTED = 130


class MkldistError(Exception):
    """Base of all errors of mkldist.

    Parameters
    ----------
    where : str
        The place: a path in the sweep file, a file, a data set, a parameter.
    found : str
        What is there, as a noun phrase without the word "found", which the message adds.
    expected : str, optional
        What is right there, likewise without the word "expected".
    hint : str, optional
        Remedy, as an imperative sentence without its full stop, which the message adds.
    """

    kind = "error"
    exit_code = EXIT_INTERNAL

    def __init__(self, where: str, found: str, expected: str = "", hint: str = "") -> None:
        self.where, self.found, self.expected, self.hint = where, found, expected, hint
        super().__init__(self._message())

    def _message(self) -> str:
        text = f"{self.where}: found {self.found}"
        if self.expected:
            text += f"; expected {self.expected}"
        if self.hint:
            text += f". {self.hint}" if self.hint.endswith((".", "?")) else f". {self.hint}."
        return text

    def __reduce__(self) -> tuple[type[MkldistError], tuple[str, str, str, str]]:
        """Pickle by the four fields, so that errors from workers arrive unchanged."""
        return type(self), (self.where, self.found, self.expected, self.hint)


class InputError(MkldistError):
    """A mistake in the user's input.  Nothing was written."""

    kind = "bad input"
    exit_code = EXIT_BAD_INPUT


class SpecError(InputError, ValueError):
    """A mistake in a sweep file, an override or a method's parameters."""

    kind = "bad sweep"


class DataError(InputError, ValueError):
    """A data set that cannot be read or used as asked."""

    kind = "bad data"


class GramError(InputError, ValueError):
    """A Gram matrix that is not square, symmetric, finite or positive semi-definite."""

    kind = "bad Gram matrix"


class StoreError(InputError):
    """A store that is missing, truncated, corrupt or of another layout."""

    kind = "bad store"


class UnreadableError(StoreError):
    """A store that the system failed to read; its content may be sound."""

    kind = "store cannot be read"


class OutputError(InputError):
    """An output folder that cannot be written or that belongs to another sweep."""

    kind = "bad output"


class ClusterError(MkldistError):
    """Lost workers or a lost scheduler.  Recorded runs stay and the same command resumes."""

    kind = "cluster"
    exit_code = EXIT_INTERNAL


class WorkerError(ClusterError):
    """A worker's machine that fails, such as its disk or a library, and not the method on it."""

    @classmethod
    def of(cls, error: OSError | ImportError) -> WorkerError:
        """Return the error of a worker on which the system, or a library, raised an error."""
        found = " ".join(f"{type(error).__name__}: {error}".split())
        return cls("a worker", found, "a machine on which methods run", "Mend it")


class UnfitClusterError(ClusterError, InputError):
    """A scheduler, its address or its workers that no sweep may use: repeating helps nobody."""

    kind = "unfit cluster"
    exit_code = EXIT_BAD_INPUT


class OutOfTimeError(MkldistError):
    """The end of a sweep's wall time.  Recorded runs stay and the same command resumes."""

    kind = "out of time"
    exit_code = EXIT_OUT_OF_TIME


class ConvergenceWarning(UserWarning):
    """A solver stopped before its tolerance; its bounds and gap hold all the same."""


class FailedRunsWarning(UserWarning):
    """Runs of a sweep failed; the results of the others hold all the same."""


class UnknownCategoryWarning(UserWarning):
    """New rows have categories that a model was not fitted on; they count as none of the known."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``"Did you mean 'x'?"`` for the known name nearest to `name` in any case, or ``""``.

    >>> nearest("simplmkl", ["level", "simplemkl"])
    "Did you mean 'simplemkl'?"
    >>> nearest("zzz", ["level"])
    ''
    """
    folded = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f"Did you mean '{folded[close[0]]}'?" if close else ""


def ending_words(ending: str, thing: str = "name") -> str:
    """Return what is wrong with a name by its ending, as a noun phrase for a message."""
    return f"a {thing} ending in {ending!r}" if ending else "a name without an ending"
