"""Arguments of functions of Python: paths, and what is to be True or False."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from mkldist.errors import SpecError


def given_path(name: str, value: object) -> Path:
    """Return a path that an argument gives.

    Raises
    ------
    mkldist.errors.SpecError
        For anything but text and paths, and for a path that no system has.
    """
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
    """Refuse anything but True and False, such as ``"no"``, which Python takes for True.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first that is neither.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise SpecError(name, f"{value!r:.60}", "True or False")
