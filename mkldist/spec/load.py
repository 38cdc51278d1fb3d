"""Read a sweep file: TOML, overrides, and one message for the first mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mkldist.core.consoles import command_line
from mkldist.errors import DataError, GramError, SpecError, nearest
from mkldist.spec.mistakes import location_of, most_telling, spec_error
from mkldist.spec.model import SweepSpec
from mkldist.spec.overrides import Location, apply_override, item_at, spelled_location
from mkldist.spec.shipped import shipped_sweeps
from mkldist.spec.toml_texts import TooLongError, parsed_toml

PATHS = ("file", "grams", "labels", "group_file")  # keys of data sets whose values are paths

DATA_ENDINGS = (
    ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".npz", ".svm", ".svm.gz", ".svmlight",
    ".libsvm",
)  # fmt: skip
"""Endings of files for which ``mkldist init`` writes a sweep file."""
_OTHER_FILES = {
    ".model": "It is called as models are: mkldist predict applies one to new rows",
    ".html": "It is called as pages of results are; name the sweep file of which it tells",
    ".zarr": "It is called as results are: mkldist status shows them",
}


@dataclass(frozen=True)
class _Source:
    """The content of a sweep file with overrides applied, and the origin of each value."""

    path: Path | None  # None for words given in Python
    document: dict[str, Any]
    written: dict[str, Any]  # the content without overrides
    places: dict[Location, str]  # options, by the location of the value that each gave

    def where(self, location: Location) -> str:
        """Return words for a location: the option that set it, or the file and a path of keys."""
        given = [said for place, said in self.places.items() if self._gave(place, location)]
        if given:
            return given[-1]
        if not location:
            return str(self.path or "spec")
        return f"{self.path}: {self.spelled(location)}" if self.path else self.spelled(location)

    def _gave(self, place: Location, location: Location) -> bool:
        """Return True if an option for `place` gave the value at `location` or made its table."""
        if place == location[: len(place)]:
            return True
        on_the_way = bool(location) and location == place[: len(location)]
        return on_the_way and item_at(self.written, location) is None

    def spelled(self, location: Location) -> str:
        """Return a location as a path of keys."""
        return spelled_location(location, self.document)

    def within(self, where: str) -> str:
        """Return words for a place that an error named without its file."""
        for place, said in self.places.items():
            path = self.spelled(place)
            if where == path or where.startswith((f"{path}.", f"{path}[")):
                return said
        outside = self.path is None or where.startswith(("--", str(self.path)))
        return where if outside else f"{self.path}: {where}"


def load_sweep(
    path: Path | Mapping[str, Any], overrides: Sequence[str] = (), memory: str | None = None
) -> SweepSpec:
    """Read a sweep file.

    Parameters
    ----------
    path : Path or mapping
        A TOML file, or the content of one.
    overrides : sequence of str
        Values that replace those of the file, as ``path.to.key=value``.  A path names items of
        lists by their name or index, as in ``methods.level.C=[1, 10]``.
    memory : str, optional
        Value of ``memory`` from the option of this name.

    Raises
    ------
    mkldist.errors.SpecError
        If the file is missing or is not TOML, or a key or value is wrong.
    """
    source = _source(path, overrides, memory)
    try:
        return SweepSpec.model_validate(source.document)
    except ValidationError as error:
        first = most_telling(error.errors())
        raise spec_error(first, source.where(location_of(first))) from None


@contextmanager
def naming(
    path: Path | Mapping[str, Any], overrides: Sequence[str] = (), memory: str | None = None
) -> Iterator[None]:
    """Add the file or the option to the place that errors raised in this context name.

    Some mistakes in a sweep file show only when its data are read.

    Parameters
    ----------
    path, overrides, memory
        As for :func:`load_sweep`.

    Raises
    ------
    mkldist.errors.InputError
        The error raised within, with the file or the option in front of its place.
    """
    try:
        yield
    except (SpecError, DataError, GramError) as error:
        where = _source(path, overrides, memory).within(error.where)
        raise type(error)(where, error.found, error.expected, error.hint) from error.__cause__


def _source(
    path: Path | Mapping[str, Any], overrides: Sequence[str], memory: str | None
) -> _Source:
    written = dict(path) if isinstance(path, Mapping) else document_of(path)
    document = deepcopy(written)
    places: dict[Location, str] = {
        apply_override(document, override): f"--set {override}" for override in overrides
    }
    for location in places:
        _start_here(document, location)
    if memory is not None:
        document["memory"] = memory
        places["memory",] = f"--memory {memory}"
    return _Source(None if isinstance(path, Mapping) else path, document, written, places)


def _start_here(document: dict[str, Any], location: Location) -> None:
    """Let the path of a data file that the command line gives start at the command's folder."""
    if location[:1] != ("datasets",) or location[-1] not in PATHS:
        return
    value = item_at(document, location)
    if isinstance(value, str) and Path(value).exists():
        item_at(document, location[:-1])[location[-1]] = str(Path(value).absolute())


def document_of(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises
    ------
    mkldist.errors.SpecError
        If the file is missing or is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(str(path), "no such file", "a sweep file", _nearby(path)) from None
    except OSError as error:
        said = "a folder" if path.is_dir() else f"a file that gives {error.strerror or error}"
        raise SpecError(str(path), said, "a sweep file that can be read") from None
    except UnicodeDecodeError:
        raise SpecError(
            str(path), "bytes that are not UTF-8 text", "a sweep file in TOML", _for_data(path)
        ) from None
    try:
        return parsed_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, str(error)) from None
    except TooLongError as error:
        raise SpecError(str(path), error.found, error.expected) from None


def _not_toml(path: Path, text: str, message: str) -> SpecError:
    """Return the error of a file that is not TOML, with the line at which reading stopped."""
    said, _, position = message.rpartition(" (at ")
    found = re.match(r"line (\d+), column", position)
    lines = text.splitlines()
    if found is None or int(found[1]) > len(lines):
        return SpecError(str(path), f"text that is not TOML: {message}", hint=_for_data(path))
    line = lines[int(found[1]) - 1].strip()
    hint = "Write text in quotes" if said == "Invalid value" else _for_data(path)
    if said == "Cannot overwrite a value":
        hint = "Give each key once; begin every entry of a list with its own header, [[like.this]]"
    said = said[:1].lower() + said[1:]
    return SpecError(
        f"{path}, line {found[1]}", f"text that is not TOML: {said}, in {line!r}", hint=hint
    )


def _for_data(path: Path) -> str:
    """Return a hint for a file that is called otherwise than sweep files are."""
    ending = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if ending in DATA_ENDINGS:
        return f"If it holds data, {command_line('init', path.name)} writes a sweep file for them"
    return _OTHER_FILES.get(ending, "")


def _nearby(path: Path) -> str:
    """Return a hint at the sweep file that the user probably meant."""
    folders = {folder for folder in (path.parent, Path("sweeps")) if folder.is_dir()}
    known = {str(file): file.name for folder in folders for file in folder.glob("*.toml")}
    same = [file for file, name in known.items() if name == path.name]
    if same:
        return f"Did you mean {same[0]!r}?"
    hint = nearest(str(path), [*known, *shipped_sweeps()])
    return hint or "List sweep files by 'mkldist list sweeps'"
