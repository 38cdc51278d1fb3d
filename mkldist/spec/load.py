"""Reading a sweep file: TOML, overrides, and one clear message for every mistake."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mkldist.errors import SpecError, nearest
from mkldist.spec.expectations import expected
from mkldist.spec.model import SweepSpec


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
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SpecError(str(path), "no such file", "a sweep file", _nearby(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(str(path), f"cannot be read: {error}", "a TOML file") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(str(path), f"not TOML: {error}", "a valid TOML file") from error
    for override in overrides:
        _apply(document, override)
    return parse_sweep(document, str(path))


def parse_sweep(document: dict[str, Any], where: str) -> SweepSpec:
    """Return a parsed document as a sweep.

    Parameters
    ----------
    document : dict
        What the TOML file holds.
    where : str
        Name of the file, for messages.

    Raises
    ------
    mkldist.errors.SpecError
        For the first mistake.
    """
    try:
        return SweepSpec.model_validate(document)
    except ValidationError as error:
        raise _spec_error(_most_telling(error.errors()), where) from None


def _apply(document: dict[str, Any], override: str) -> None:
    """Set one value in a document."""
    key, equals, text = override.partition("=")
    where = f"--set {override}"
    if not equals or not key.strip():
        raise SpecError(where, "no '='", "path.to.key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = key.strip().split(".")
    node: Any = document
    for part in parents:
        node = _child(node, part, where)
    if isinstance(node, list):
        raise SpecError(where, f"{parents[-1]} is a list", f"{parents[-1]}.NAME.{last}=value")
    node[last] = value


def _child(node: Any, part: str, where: str) -> Any:
    """Return the table or list called `part`, made if it is not there."""
    if isinstance(node, list):
        if part.isdigit() and int(part) < len(node):
            return node[int(part)]
        for item in node:
            if part in (item.get("label"), item.get("name"), item.get("family")):
                return item
        names = [str(i.get("label") or i.get("name") or i.get("family")) for i in node]
        raise SpecError(
            where, f"no item {part!r}", f"one of {', '.join(names)}", nearest(part, names)
        )
    child = node.setdefault(part, {})
    if not isinstance(child, dict | list):
        raise SpecError(where, f"{part} is the value {child!r}", "a table")
    return child


def _most_telling(errors: Sequence[ErrorDetails]) -> ErrorDetails:
    """Return the first error; where a value may be of several kinds, that of the nearest kind."""
    place = _place(errors[0])
    same = [error for error in errors if _place(error)[: len(place)] == place]
    return next((error for error in same if error["type"] in _TELLING), errors[0])


def _place(error: ErrorDetails) -> list[int | str]:
    """Return where an error is, without the names of union members that pydantic puts in."""
    return [part for part in error["loc"] if not _is_type_tag(part)]


def _spec_error(error: ErrorDetails, where: str) -> SpecError:
    """Return one error of pydantic in the words of the sweep file."""
    location = _place(error)
    place = f"{where}: {_spelled(location)}" if location else where
    name, found = str(location[-1]) if location else "", error["input"]
    match error["type"]:
        case "extra_forbidden":
            known = _known_keys(location[:-1])
            return SpecError(
                place, "unknown key", f"one of {', '.join(known)}", nearest(name, known)
            )
        case "missing":
            return SpecError(place, "missing", _wanted_entry(name))
        case "too_short":
            return SpecError(place, "empty", _wanted_entry(name))
        case "literal_error":
            allowed = str(error["ctx"]["expected"])
            names = [one.strip(" '") for one in allowed.replace(" or ", ",").split(",")]
            hint = nearest(found, names) if isinstance(found, str) else ""
            return SpecError(place, f"found {found!r}", f"one of {', '.join(names)}", hint)
        case "value_error":
            said, _, wanted = error["msg"].removeprefix("Value error, ").partition("; ")
            return SpecError(place, said, wanted.removeprefix("expected "))
        case _:
            return SpecError(place, f"found {_short(found)}", expected(error))


_TELLING = ("value_error", "extra_forbidden", "missing", "literal_error")


def _wanted_entry(name: str) -> str:
    return f"at least one [[{name}]] entry" if name in _LISTS else "a value"


def _is_type_tag(part: int | str) -> bool:
    return isinstance(part, str) and (part[:1].isupper() or "[" in part or part in _TAGS)


_LISTS = ("datasets", "banks", "methods")
_TAGS = ("float", "str", "int", "constrained-str", "literal")


def _spelled(location: Iterable[int | str]) -> str:
    """Write a location as a path, items of lists by index."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _known_keys(location: Sequence[int | str]) -> list[str]:
    """Return the keys that a table may have, by following the models."""
    model: type[BaseModel] = SweepSpec
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            inner = _model_in(model.model_fields[part].annotation)
            if inner is not None:
                model = inner
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation holds, however deep."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(
        (found for part in get_args(annotation) if (found := _model_in(part)) is not None), None
    )


def _short(value: Any, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _nearby(path: Path) -> str:
    """Name a sweep file that may have been meant."""
    folder = path.parent if path.parent.is_dir() else Path()
    return nearest(path.name, [file.name for file in folder.glob("*.toml")])
