"""Check that a sweep file runs code of the user, or of other packages, only where it may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mkldist.errors import SpecError
from mkldist.kernel_functions.custom import search_first
from mkldist.spec.model import SweepSpec


def check_code(spec: SweepSpec, folder: Path, *, allowed: bool) -> str:
    """Let kernel functions be imported from the folder of a sweep file, if that is allowed.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    folder : Path
        Folder of the sweep file, which Python then searches first.
    allowed : bool
        True if the user asked for it.

    Returns
    -------
    str
        The folder, absolute; empty if the sweep has no such function.

    Raises
    ------
    mkldist.errors.SpecError
        If a bank has such a function and that is not allowed.
    """
    for place, function in code_of(spec):
        if not allowed:
            raise SpecError(
                f"{place}.function",
                f"{function!r}, code that would run on this machine and on all workers",
                "a kernel function of mkldist, or --allow-code",
                "Repeat the command with --allow-code if you trust this code",
            )
        search_first(str(folder.absolute()))
        return str(folder.absolute())
    return ""


def code_of(spec: SweepSpec) -> Iterator[tuple[str, str]]:
    """Yield place and name of every kernel function that a sweep would import.

    Functions that Python code puts into a sweep itself are at hand already.
    """
    for bank in spec.banks:
        for number, function in bank.imported.items():
            yield f"banks.{bank.label}.kernels[{number}]", function


def code_lines(spec: SweepSpec) -> Iterator[str]:
    """Yield a line on each function whose code a sweep runs."""
    for function in dict.fromkeys(function for _, function in code_of(spec)):
        yield f"runs code that is not mkldist's: {function}"
