"""Reading a sweep file: TOML, overrides, and one clear message for every mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mkldist.errors import SpecError, nearest
from mkldist.spec.mistakes import location_of, most_telling, spec_error
from mkldist.spec.model import SweepSpec
from mkldist.spec.overrides import apply_override, spelled_location


def load_sweep(path: Path, overrides: Sequence[str] = ()) -> SweepSpec:
    """Read a sweep file.

    Parameters
    ----------
    path : Path
        A TOML file.
    overrides : sequence of str
        Values that replace those of the file, as ``path.to.key=value``; items of lists are
        called by their name or index, as in ``methods.level.C=[1, 10]``.

    Raises
    ------
    mkldist.errors.SpecError
        For a file that is not there or not TOML, and for every key or value that is wrong.
    """
    document = _document(path)
    places = {apply_override(document, override): override for override in overrides}
    try:
        return SweepSpec.model_validate(document)
    except ValidationError as error:
        first = most_telling(error.errors())
        location = location_of(first)
        where = f"{path}: {spelled_location(location, document)}" if location else str(path)
        for place, override in places.items():
            if place == location[: len(place)]:
                where = f"--set {override}"
        raise spec_error(first, where) from None


def _document(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(str(path), "no such file", "a sweep file", _nearby(path)) from None
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise SpecError(str(path), said, "a sweep file that can be read") from None
    except UnicodeDecodeError:
        raise SpecError(str(path), "not text in UTF-8", "a sweep file in TOML") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, str(error)) from None


def _not_toml(path: Path, text: str, message: str) -> SpecError:
    """Return what is wrong with a file that is not TOML, with the line where it shows."""
    said, _, position = message.rpartition(" (at ")
    found = re.match(r"line (\d+), column", position)
    lines = text.splitlines()
    if found is None or int(found[1]) > len(lines):
        return SpecError(str(path), f"not TOML: {message}")
    line = lines[int(found[1]) - 1].strip()
    hint = "Write text in quotes" if said == "Invalid value" else ""
    if said == "Cannot overwrite a value":
        hint = (
            "Give each key once; entries of a list each have a header of their own, [[like.this]]"
        )
    said = said[:1].lower() + said[1:]
    return SpecError(f"{path}, line {found[1]}", f"not TOML: {said}, in {line!r}", hint=hint)


def _nearby(path: Path) -> str:
    """Name a sweep file that may have been meant."""
    folders = {folder for folder in (path.parent, Path("sweeps")) if folder.is_dir()}
    known = {str(file): file.name for folder in folders for file in folder.glob("*.toml")}
    same = [file for file, name in known.items() if name == path.name]
    return f"Did you mean {same[0]!r}?" if same else nearest(str(path), known)
