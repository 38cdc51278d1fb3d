"""Checks of what users give: paths and flags of Python, and numbers of things that memory holds."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from mkldist.core.memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory
from mkldist.errors import SpecError


def as_path(name: str, value: object) -> Path:
    """Return a path that an argument gives."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        found = " ".join(repr(value).split())  # in one line, of an array or a table too
        raise SpecError(name, f"{found:.60}", "a path")
    path = Path(value)
    try:
        path.lstat()
    except ValueError as error:
        raise SpecError(name, f"{value!r:.60} ({error})", "a path") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            found = f"{value!r:.60}..., a name that is too long"
            raise SpecError(name, found, "a path") from None
    return path


def check_flags(**flags: object) -> None:
    """Refuse anything but True and False, such as ``"no"``, which Python takes for True."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise SpecError(name, f"{value!r:.60}", "True or False")


MOST_WORKERS = 100_000
"""Workers that a forecast simulates in seconds."""
COUNTABLE = 10**15
"""Numbers above it are not written out: they may have thousands of digits."""


def check_fits(
    number: int,
    bytes_each: float,
    where: str,
    noun: str,
    hint: str = "",
    *,
    most: int | None = None,
) -> None:
    """Raise unless so many things fit into half of this machine's memory."""
    limit = SHARE_OF_MEMORY * physical_memory()
    too_many = most is not None and number > most
    if not too_many and number <= limit / bytes_each:
        return
    if number > COUNTABLE:
        found = f"more than {COUNTABLE:,} {noun}"
    else:
        found = f"{number:,} {noun}, which need {number * bytes_each / GIB:,.1f} GiB of memory"
    expected = f"at most {most:,}" if too_many else at_most_half(limit)
    raise SpecError(where, found, expected, hint)
