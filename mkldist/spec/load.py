"""Read a sweep file: TOML, overrides, and one message for the first mistake."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mkldist.core.terminal import command_line
from mkldist.errors import DataError, GramError, SpecError, nearest
from mkldist.spec.datasets import TableFormat
from mkldist.spec.kinds import LONGEST, SHAPES, TooLongError, parsed_toml, spelled
from mkldist.spec.model import SweepSpec

_PACKAGE = Path(__file__).parents[1]
FOLDERS = (_PACKAGE / "sweeps", _PACKAGE.parent / "sweeps")
"""Folders of the sweep files of mkldist: in an installation, and in a clone of the repository."""


def shipped_sweeps() -> dict[str, Path]:
    """Return the sweep files that come with mkldist, those of papers among them, by name."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        return {}
    files = [*folder.glob("*.toml"), *(folder / "papers").glob("*.toml")]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


def sweep_file(given: Path) -> Path:
    """Return the sweep file of a path or name: ``NAME.toml`` here, in ``sweeps/``, or ours."""
    if given.is_file() or len(given.parts) != 1:
        return given
    name = f"{given.name.removesuffix('.toml')}.toml"
    here = next((file for file in (Path(name), Path("sweeps", name)) if file.is_file()), None)
    return here or shipped_sweeps().get(given.name.removesuffix(".toml"), given)


Location = tuple[int | str, ...]
"""Keys and indices on the way from a document to one of its values."""

NAMES = ("label", "name", "family")
"""Keys that name an item of a list; the first that an item has counts."""
NAMES_OF = {"datasets": ("name",)}  # whose label is a column
"""The same for items of a list in which other keys name them, by the key of the list."""


def apply_override(document: dict[str, Any], override: str) -> Location:
    """Set one value of a document by ``path.to.key=value``, and return its location.

    The path names items of lists by their name or their index from 0, and quotes keys that contain
    dots, as TOML does.  A value that is not TOML is a text.
    """
    key, equals, text = override.partition("=")
    where = f"--set {override}"
    if not equals:
        raise SpecError(where, "no '='", "path.to.key=value")
    try:
        value = parsed_toml(f"value = {text}")["value"]
    except TooLongError as error:
        raise SpecError(f"--set {key[:LONGEST]}", error.found, error.expected) from None
    except tomllib.TOMLDecodeError:
        value = text.strip()
        if value.startswith(("[", "{")):
            raise SpecError(
                where,
                f"{value!r}, which is not TOML",
                "a value as in a sweep file, such as [1, 1000]",
                "Write text within lists in quotes, and the whole option in the shell's quotes: "
                "--set 'methods.level.C=[1,1000]'",
            ) from None
    *parents, last = _parts(key, where)
    node: Any = document
    location: list[int | str] = []
    for place, part in enumerate(parents):
        step = _step(node, part, where, ".".join(parents[:place]))
        if isinstance(node, dict):
            node.setdefault(step, {})
        node = node[step]
        location.append(step)
    step = _step(node, last, where, ".".join(parents))
    node[step] = value
    return (*location, step)


def _parts(key: str, where: str) -> list[str]:
    """Split a path as TOML splits a dotted key; ``[0]`` means ``.0``."""
    try:
        node: Any = parsed_toml(re.sub(r"\[(\d+)\]", r".\1", key) + " = 0")
    except TooLongError as error:
        raise SpecError(f"--set {key[:LONGEST]}...", error.found, error.expected) from None
    except tomllib.TOMLDecodeError:
        raise SpecError(
            where, f"the path {key!r}", "keys with dots between them, as in splits.repeats=5"
        ) from None
    parts = []
    while isinstance(node, dict):
        ((part, node),) = node.items()
        parts.append(part)
    return parts


def _step(node: Any, part: str, where: str, path: str) -> int | str:
    """Return the key or index that a part of a path means in a table or list."""
    if isinstance(node, dict):
        return part
    if not isinstance(node, list):
        raise SpecError(where, f"the value {spelled(node)} at {path}", "a table or list")
    if part.isdigit() and int(part) < len(node):
        return int(part)
    for called in (
        [i for i, item in enumerate(node) if name_of(item, path) == part],
        [i for i, item in enumerate(node) if isinstance(item, dict) and part in _names(item, path)],
    ):
        if len(called) == 1:
            return called[0]
        if called:
            items = " and ".join(f"{path}[{i}]" for i in called)
            raise SpecError(
                where, f"{items}, both called {part!r}", "the index instead of the name"
            )
    names = [str(name) for item in node if (name := name_of(item, path))]
    raise SpecError(
        where,
        f"no item {part!r} in {path}",
        f"one of {', '.join(names)}" if names else f"an index below {len(node)}",
        nearest(part, names),
    )


def _names(item: dict[str, Any], key: str) -> list[Any]:
    return [item.get(name) for name in NAMES_OF.get(key, NAMES)]


def name_of(item: Any, key: str = "") -> Any:
    """Return the name of an item of the list that has a key, None if it has none."""
    if not isinstance(item, dict):
        return None
    return next((name for name in _names(item, key) if isinstance(name, str)), None)


def spelled_location(location: Sequence[int | str], document: dict[str, Any]) -> str:
    """Return a location as a path that an override accepts.

    >>> document = {"methods": [{"name": "level"}], "banks": [{"kernels": [{}]}]}
    >>> spelled_location(("methods", 0, "C"), document)
    'methods.level.C'
    >>> spelled_location(("banks", 0, "kernels", 0), document)
    'banks[0].kernels[0]'
    """
    text, node = "", document
    for part in location:
        items, node = node, _item(node, part)
        if not isinstance(part, int):
            text += f".{part}" if text else part
            continue
        names: list[Any] = []
        if isinstance(items, list):
            names = [name_of(item, text) for item in items]
        name = names[part] if part < len(names) else None
        plain = name is not None and re.fullmatch(r"[A-Za-z0-9_-]+", name)
        text += f".{name}" if plain and names.count(name) == 1 else f"[{part}]"
    return text


def item_at(document: Any, location: Sequence[int | str]) -> Any:
    """Return the value at a location, None if there is none."""
    for part in location:
        document = _item(document, part)
    return document


def _item(node: Any, part: int | str) -> Any:
    try:
        return node[part]
    except (KeyError, IndexError, TypeError):
        return None


_TABLES = ("preprocessing", "splits", "graph", "selection", "search", "outputs")
_SECTIONS = {name: f"[{name}]" for name in _TABLES}
_ENTRIES = {name: f"[[{name}]]" for name in ("datasets", "banks", "methods")}
_MOVE = "to the top of the file, above the first [section]"
_WORDS = {
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text in quotes",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "tuple_type": "a list",
    "list_type": "a list",
    "too_short": "at least one entry",
    "finite_number": "a finite number",
    "string_pattern_mismatch": "a name of letters, digits and _ . + - without blanks",
    "string_too_long": "a name of at most 100 letters",
}
_LIMITS = {
    "greater_than": ("a number above", "gt"),
    "greater_than_equal": ("a number of at least", "ge"),
    "less_than": ("a number below", "lt"),
    "less_than_equal": ("a number of at most", "le"),
}


def location_of(error: ErrorDetails) -> Location:
    """Return the location of an error in the document, without pydantic's tags of unions."""
    return tuple(part for part in error["loc"] if part not in SHAPES)


def most_telling(errors: Sequence[ErrorDetails]) -> ErrorDetails:
    """Return the first error, or an unknown key in the same table if the first is a missing key."""
    first = errors[0]
    if first["type"] == "missing":
        table = location_of(first)[:-1]
        for error in errors:
            if error["type"] == "extra_forbidden" and location_of(error)[:-1] == table:
                return error
    return first


def spec_error(error: ErrorDetails, where: str, model: type[BaseModel] = SweepSpec) -> SpecError:
    """Return an error of pydantic, raised by `model`, as one of mkldist at the place `where`."""
    location = location_of(error)
    match error["type"]:
        case "extra_forbidden":
            known = [*_model_at(location[:-1], model).model_fields]
            known.sort(key=lambda key: key in TableFormat.model_fields)  # the model's own first
            unknown = unknown_key(where, "key", str(location[-1]), known)
            if model is not SweepSpec and _MOVE in unknown.hint:
                return SpecError(where, unknown.found, unknown.expected, "Leave it out")
            return unknown
        case "missing":
            key = str(location[-1])
            wanted = f"at least one {_ENTRIES[key]} entry" if key in _ENTRIES else f"{key} = ..."
            return SpecError(where, "nothing", wanted)
        case "literal_error":
            words, found = re.findall(r"'([^']*)'", str(error["ctx"]["expected"])), error["input"]
            wanted = ("one of " if len(words) > 1 else "") + ", ".join(map(spelled, words))
            hint = nearest(found, words) if isinstance(found, str) else ""
            return SpecError(where, spelled(found), wanted, hint)
        case "model_type" if isinstance(error["input"], str) and "kernels" in location:
            function = json.dumps(error["input"])
            entry = f"{{function = {function}, widths = [1]}}"
            if model is not SweepSpec:
                entry = f'{{"function": {function}, "widths": [1]}}'
            return SpecError(where, spelled(error["input"]), f"a table such as {entry}")
        case "value_error":
            said, _, wanted = (
                error["msg"].removeprefix("Value error, found ").partition("; expected ")
            )
            return SpecError(where, said, wanted)
        case _:
            return SpecError(where, spelled(error["input"]), expected(error, location))


def expected(error: ErrorDetails, location: Location = ()) -> str:
    """Return the words that follow "expected" in the message of a validation error."""
    kind, key = error["type"], str(location[-1]) if location else ""
    if key in _ENTRIES and len(location) == 1:
        return f"at least one {_ENTRIES[key]} entry"
    if key in _SECTIONS:
        return f"one table, {_SECTIONS[key]}"
    if kind == "model_type" and isinstance(error["input"], str):
        return f"a table such as {{name = {spelled(error['input'])}}}"
    if kind in _LIMITS and isinstance(error["input"], float) and isnan(error["input"]):
        return _WORDS["finite_number"]
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return f"{words} {error['ctx'][limit]:.15g}"
    message = error["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return _WORDS.get(kind, message)


def unknown_key(where: str, what: str, name: str, known: Sequence[str]) -> SpecError:
    """Return the error of a key that is unknown in its table.

    If another table knows the key, the hint names that table: the key most likely stands under
    the wrong header.
    """
    hint = nearest(name, known)
    if name in SweepSpec.model_fields:
        hint = f"Move {name!r} {_MOVE}"
        if name in _SECTIONS or name in _ENTRIES:
            hint = f"Write it as {(_SECTIONS | _ENTRIES)[name]}"
    elif not hint:
        tables = [key for key in _TABLES if name in _model_at((key,), SweepSpec).model_fields]
        hint = f"Move {name!r} under [{tables[0]}]" if tables else ""
    return SpecError(where, f"an unknown {what}", f"one of {', '.join(known)}", hint)


def _model_at(location: Location, model: type[BaseModel]) -> type[BaseModel]:
    """Return the model of the table at a location in a table of `model`."""
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            model = next(_models_in(model.model_fields[part].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models within an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


# Keys of data sets and of graphs whose values are paths
PATHS = ("file", "grams", "labels", "group_file", "distances")


@dataclass(frozen=True)
class _Source:
    """The content of a sweep file with overrides applied, and the origin of each value."""

    path: Path | None  # None for words given in Python
    document: dict[str, Any]
    written: dict[str, Any]  # the content without overrides
    options: dict[Location, str]  # by the location of the value that each sets

    def where(self, location: Location) -> str:
        """Return words for a location: the option that set it, or the file and a path of keys."""
        for place, option in reversed(self.options.items()):
            gave = place == location[: len(place)]
            made_table = location and location == place[: len(location)]
            if gave or (made_table and item_at(self.written, location) is None):
                return option
        if not location:
            return str(self.path or "spec")
        path = spelled_location(location, self.document)
        return f"{self.path}: {path}" if self.path else path

    def within(self, where: str) -> str:
        """Return words for a place that an error named without its file."""
        for place, option in self.options.items():
            path = spelled_location(place, self.document)
            if where == path or where.startswith((f"{path}.", f"{path}[")):
                return option
        outside = self.path is None or where.startswith(("--", str(self.path)))
        return where if outside else f"{self.path}: {where}"


def load_sweep(
    path: Path | Mapping[str, Any], overrides: Sequence[str] = (), memory: str | None = None
) -> SweepSpec:
    """Read a sweep file, or its content, with the values of overrides and of ``--memory``."""
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
    options: dict[Location, str] = {}
    for override in overrides:
        location = apply_override(document, override)
        options[location] = f"--set {override}"
        value = item_at(document, location)
        of_data = location[0] in ("datasets", "graph")
        is_path = of_data and location[-1] in PATHS and isinstance(value, str)
        if is_path and Path(value).exists():  # it starts at the command's folder
            item_at(document, location[:-1])[location[-1]] = str(Path(value).absolute())
    if memory is not None:
        document["memory"] = memory
        options["memory",] = f"--memory {memory}"
    return _Source(None if isinstance(path, Mapping) else path, document, written, options)


def document_of(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
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
    """Return a hint for a file that is not called as sweep files are."""
    if path.suffix == ".toml":
        return ""
    init, predict = command_line("init", path.name), command_line("predict", path.name, "DATA")
    return f"If it holds data, {init} writes a sweep file for them; a model answers to {predict}"


def _nearby(path: Path) -> str:
    """Return a hint at the sweep file that the user probably meant."""
    folders = {folder for folder in (path.parent, Path("sweeps")) if folder.is_dir()}
    known = {str(file): file.name for folder in folders for file in folder.glob("*.toml")}
    same = [file for file, name in known.items() if name == path.name]
    if same:
        return f"Did you mean {same[0]!r}?"
    hint = nearest(str(path), [*known, *shipped_sweeps()])
    return hint or "List sweep files by 'mkldist list sweeps'"
