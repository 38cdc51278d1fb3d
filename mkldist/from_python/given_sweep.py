"""A sweep as it is given in Python: words from a file or a mapping, data from memory or files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from mkldist.data.given import SUFFIX, GivenData, given_data
from mkldist.errors import SpecError, nearest
from mkldist.kernels.families import plain
from mkldist.methods.block_norm.regularizers import Regularizer
from mkldist.methods.block_norm.written_regularizers import written
from mkldist.results.folder import OutputFolder
from mkldist.run.paths import output_path, sweep_file_of
from mkldist.run.saved_inputs import FROM_FILES, SavedInputs, file_name, make_absolute
from mkldist.spec.checks import given_path
from mkldist.spec.load import apply_override, document_of, item_at, load_sweep, name_of, naming
from mkldist.spec.model import SweepSpec
from mkldist.spec.toml_texts import spelled, toml_text

SOURCES = ("source", "file", "openml", "grams")
KINDS = {"groups": ("holdout", "kfold", "leave-one-group-out"), "order": ("time",)}
"""Kinds of splits that use a column of this name."""


@dataclass(frozen=True)
class SweepInputs:
    """A sweep that was given in Python.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    origin : Path
        Its file: the user's, or the one that its output folder is to keep.
    output : Path
        Its output folder.
    words : Path or mapping
        The file or the content that messages about mistakes name.
    kept : SavedInputs
        What the output folder is to keep.
    """

    spec: SweepSpec
    origin: Path
    output: Path
    words: Path | Mapping[str, Any]
    kept: SavedInputs

    @classmethod
    def of(
        cls,
        spec: Any,
        data: Any = None,
        changes: Mapping[str, Any] | None = None,
        output: str | Path | None = None,
    ) -> SweepInputs:
        """Understand the arguments of :func:`mkldist.sweep` and :func:`mkldist.plan`.

        Raises
        ------
        mkldist.errors.InputError
            For words and data that cannot be used.
        """
        file, results = _file_of(spec)
        place = results if output is None else given_path("output", output)
        if file is not None and data is None and not changes:
            model = load_sweep(file)
            return cls(model, file, output_path(model, place), file, FROM_FILES)
        document = document_of(file) if file is not None else _document(spec)
        make_absolute(document, file.absolute().parent if file is not None else Path.cwd())
        if isinstance(methods := document.get("methods"), list):
            document["methods"] = [_as_text(one, f"methods.{name_of(one)}") for one in methods]
        _change(document, changes or {})
        given = _given(data)
        if "datasets" not in document:
            document["datasets"] = [{"name": name} for name in given] or _missing()
        for name, one in given.items():
            _name_in(document, name, one)
        if output is not None and isinstance(document.setdefault("outputs", {}), dict):
            document["outputs"]["path"] = str(Path(output).absolute())  # for the kept sweep file
        model = load_sweep(document)
        path = output_path(model, place)
        return cls(
            model,
            OutputFolder(path).sweep_file,
            path,
            document,
            SavedInputs(toml_text(document), given),
        )

    def naming(self) -> Any:
        """Return the context in which errors name the place in the words of the sweep."""
        return naming(self.words)


def check_count(name: str, value: object, least: int, most: float = math.inf) -> None:
    """Refuse anything but None and whole numbers of at least `least` and at most `most`."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        limits = f"at least {least}" + (f" and at most {most}" if math.isfinite(most) else "")
        raise SpecError(name, f"{value!r:.60}", f"a whole number of {limits}")


def given_folders(name: str, value: object) -> list[Path]:
    """Return the folders that an argument gives: a path, or several.

    Raises
    ------
    mkldist.errors.SpecError
        For anything else.
    """
    if isinstance(value, str | os.PathLike):
        return [given_path(name, value)]
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise SpecError(name, f"{value!r:.60}", 'folders, such as ["data", "/srv/data"]')
    return [given_path(name, one) for one in value]


def check_speed(name: str, value: object) -> None:
    """Refuse anything but None and finite numbers above zero, such as 1e9 bytes a second."""
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and 0 < float(value) < math.inf):  # type: ignore[arg-type]  # a number
        raise SpecError(name, f"{value!r:.60}", "a finite number of bytes a second above 0")


def _file_of(spec: Any) -> tuple[Path | None, Path | None]:
    """Return the sweep file that is meant, and the folder of results if that was given."""
    if not isinstance(spec, str | Path):
        return None, None
    given = given_path("spec", spec)
    file = sweep_file_of(given)
    return file, given if given.is_dir() and file != given else None


def _document(spec: Any) -> dict[str, Any]:
    """Return the content of a sweep file that says the same."""
    if isinstance(spec, SweepSpec):
        document: dict[str, Any] = json.loads(spec.model_dump_json(exclude_defaults=True))
        return document
    if not isinstance(spec, Mapping):
        raise SpecError(
            "spec",
            f"{type(spec).__name__}",
            "a sweep file, the name of a sweep, or a mapping with the keys of a sweep file",
        )
    words: dict[str, Any] = _without_none(plain(deepcopy(dict(spec))))
    return words


def _without_none(value: Any) -> Any:
    """Return words without keys whose value is None: a key that a sweep file leaves out."""
    if isinstance(value, dict):
        return {str(key): _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _as_text(value: Any, where: str) -> Any:
    """Return a value whose regularisers are text."""
    if isinstance(value, dict):
        return {key: _as_text(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item, where) for item in value]
    return written(value, where) if isinstance(value, Regularizer) else value


def _change(document: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Replace values, as ``--set`` does."""
    if not isinstance(changes, Mapping):
        raise SpecError(
            "changes",
            f"{changes!r:.60}",
            "a mapping of keys to values",
            'Write changes={"splits.repeats": 2}',
        )
    for key, given in changes.items():
        where = f"changes[{key!r}]"
        value = plain(given)
        text = _as_text(value, where)
        try:
            location = apply_override(document, f"{key}={spelled(text, None)}")
        except SpecError as error:
            raise SpecError(where, error.found, error.expected, error.hint) from None
        if text != value:
            item_at(document, location[:-1])[location[-1]] = text  # of an object at hand


def _given(data: Any) -> dict[str, GivenData]:
    """Return the data sets of a call by name."""
    if data is None:
        return {}
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise SpecError(
            "data", f"{type(data).__name__}", 'data sets by name, as in {"mine": (X, y)}'
        )
    return {name: given_data(one, f"data[{name!r}]") for name, one in data.items()}


def _name_in(document: dict[str, Any], name: str, data: GivenData) -> None:
    """Let the entry of a data set name the file that keeps it, and the columns of its splits."""
    entry = _entry(document, name)
    there = [key for key in SOURCES if key in entry]
    if there and not str(entry[there[0]]).endswith(SUFFIX):
        raise SpecError(
            f"datasets.{name}",
            f"{there[0]}, beside data[{name!r}]",
            "one source of data",
            f"Remove {there[0]}, or give the data another name",
        )
    entry["file"] = f"data/{file_name(name, data)}"
    if data.weighs_rows:
        entry.setdefault("weights", "weights")
    for column in data.of_splits:
        _divide_by(document, entry, column)
    if "train" in data.arrays and "splits" not in document and "splits" not in entry:
        entry["splits"] = {"kind": "predefined"}


def _entry(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the entry of a data set."""
    entries = document["datasets"]
    tables = [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    for entry in tables:
        if entry.get("name") == name:
            return entry
    names = [str(entry.get("name")) for entry in tables]
    raise SpecError(
        f"data[{name!r}]",
        "a name that no data set of the sweep has",
        f"one of {', '.join(names)}",
        nearest(name, names) or f'Add {{"name": "{name}"}} to datasets',
    )


def _divide_by(document: dict[str, Any], entry: dict[str, Any], column: str) -> None:
    """Let the splits of a data set use a column that was given for that."""
    splits = entry.get("splits") or document.get("splits") or {}
    if not isinstance(splits, dict) or column in splits:
        return
    kind = splits.get("kind", "holdout")
    if kind not in KINDS[column]:
        raise SpecError(
            f"data[{entry['name']!r}]",
            f'{column}, but splits.kind = "{kind}"',
            f"splits that use it: {' or '.join(KINDS[column])}",
            f"Omit {column}, or set splits.kind",
        )
    entry["splits"] = {**splits, column: column}


def _missing() -> NoReturn:
    raise SpecError(
        "datasets",
        "none",
        "at least one data set",
        'Give data={"mine": (X, y)}, or an entry such as {"name": "wdbc"}',
    )
