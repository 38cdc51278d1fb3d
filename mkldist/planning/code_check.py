"""Check that a sweep file runs code of the user, or of other packages, only where it may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mkldist.errors import SpecError
from mkldist.kernel_functions.custom import search_first
from mkldist.methods.block_norm.written_regularizers import imported_by
from mkldist.spec.model import SweepSpec


def check_code(spec: SweepSpec, folder: Path, *, allowed: bool) -> str:
    """Let the user's functions be imported from the folder of a sweep file, if that is allowed.

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
        If a bank or a method has such a function and that is not allowed.
    """
    functions = ((f"{place}.function", function) for place, function in code_of(spec))
    found = [*functions, *code_of_methods(spec)]
    check_allowed(found, allowed=allowed)
    if not found:
        return ""
    search_first(str(folder.absolute()))
    return str(folder.absolute())


def check_allowed(code: Iterable[tuple[str, str]], *, allowed: bool) -> None:
    """Refuse the first of some places and names of code, unless code is allowed."""
    for place, function in code:
        if not allowed:
            raise SpecError(
                place,
                f"{function!r}, code that would run on this machine and on all workers",
                "what mkldist has, or --allow-code",
                "Repeat the command with --allow-code if you trust this code",
            )


def code_of(spec: SweepSpec) -> Iterator[tuple[str, str]]:
    """Yield place and name of every kernel function that a sweep would import.

    Functions that Python code puts into a sweep itself are at hand already.
    """
    for bank in spec.banks:
        for number, function in bank.imported.items():
            yield f"banks.{bank.label}.kernels[{number}]", function


def code_of_methods(spec: SweepSpec) -> Iterator[tuple[str, str]]:
    """Yield place and name of all that regularisers of a sweep would import, but those at hand."""
    for entry in spec.methods:
        for settings in (entry.settings, *entry.on.values()):
            yield from code_of_settings(f"methods.{entry.key}", settings)


def code_of_settings(where: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield place and name of all that parameters of a method would import."""
    for parameter, given in settings.items():
        for value in given if isinstance(given, list) else [given]:
            yield from ((f"{where}.{parameter}", name) for name in imported_by(value))


def code_lines(spec: SweepSpec) -> Iterator[str]:
    """Yield a line on each function whose code a sweep runs."""
    found = (*code_of(spec), *code_of_methods(spec))
    for function in dict.fromkeys(function for _, function in found):
        yield f"runs code that is not mkldist's: {function}"
