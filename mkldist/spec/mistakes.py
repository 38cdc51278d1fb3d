"""Mistakes that the models find, in the words of the sweep file instead of pydantic's."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isnan
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from mkldist.errors import SpecError, nearest
from mkldist.spec.foreign import SERIES, meant
from mkldist.spec.kinds import SHAPES
from mkldist.spec.model import SweepSpec
from mkldist.spec.overrides import Location
from mkldist.spec.values import spelled

_SECTIONS = {
    "preprocessing": "[preprocessing]",
    "splits": "[splits]",
    "graph": "[graph]",
    "selection": "[selection]",
    "search": "[search]",
    "outputs": "[outputs]",
}
_ENTRIES = {"datasets": "[[datasets]]", "banks": "[[banks]]", "methods": "[[methods]]"}

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
    """Return the first error, or an unknown key in the same table if the first is a missing key.

    An unknown key there is most likely the missing one misspelled.
    """
    first = errors[0]
    if first["type"] == "missing":
        table = location_of(first)[:-1]
        for error in errors:
            if error["type"] == "extra_forbidden" and location_of(error)[:-1] == table:
                return error
    return first


def spec_error(error: ErrorDetails, where: str, model: type[BaseModel] = SweepSpec) -> SpecError:
    """Turn an error of pydantic into one that states the place, what was found and expected.

    Parameters
    ----------
    error : dict
        One of ``ValidationError.errors()``.
    where : str
        Words for the place.
    model : type
        The model that raised it.
    """
    location = location_of(error)
    match error["type"]:
        case "extra_forbidden":
            known = list(_model_at(location[:-1], model).model_fields)
            found = unknown_key(where, "key", str(location[-1]), known)
            if model is not SweepSpec and _MOVE in found.hint:
                return SpecError(where, found.found, found.expected, "Leave it out")
            return found
        case "missing":
            key = str(location[-1])
            wanted = f"at least one {_ENTRIES[key]} entry" if key in _ENTRIES else f"{key} = ..."
            return SpecError(where, "nothing", wanted)
        case "literal_error":
            return _not_among(where, error)
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
            hint = SERIES.get(str(location[-1]), "") if isinstance(error["input"], list) else ""
            return SpecError(where, spelled(error["input"]), expected(error, location), hint)


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
        return f"{words} {error['ctx'][limit]:g}"
    message = error["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return _WORDS.get(kind, message)


def unknown_key(where: str, what: str, name: str, known: Sequence[str]) -> SpecError:
    """Return the error of a key that is unknown in its table.

    If another table knows the key, the hint names that table: the key most likely stands under
    the wrong header.
    """
    hint = _other_case(name, known) or _meant_among(name, known) or nearest(name, known)
    if name in SweepSpec.model_fields:
        hint = f"Move {name!r} {_MOVE}"
        if name in _SECTIONS or name in _ENTRIES:
            hint = f"Write it as {(_SECTIONS | _ENTRIES)[name]}"
    elif not hint:
        homes = [
            header
            for section, header in _SECTIONS.items()
            if name in _model_at((section,), SweepSpec).model_fields
        ]
        hint = f"Move {name!r} under {homes[0]}" if homes else meant(name)
    return SpecError(where, f"an unknown {what}", f"one of {', '.join(known)}", hint)


def _other_case(name: str, known: Sequence[str]) -> str:
    """Return a hint at the key that differs from `name` in upper and lower case alone."""
    folded = {candidate.lower(): candidate for candidate in known}
    return f"Did you mean {folded[name.lower()]!r}?" if name.lower() in folded else ""


def _meant_among(word: str, known: Sequence[str]) -> str:
    """Return a hint at the known word that a word of another package stands for."""
    hint = meant(word)
    return hint if any(re.search(rf"\b{re.escape(one)}\b", hint) for one in known) else ""


def _not_among(where: str, error: ErrorDetails) -> SpecError:
    """Return the error of a text that is none of the permitted ones."""
    words = re.findall(r"'([^']*)'", str(error["ctx"]["expected"]))
    found = error["input"]
    hint = _meant_among(found, words) or nearest(found, words) if isinstance(found, str) else ""
    choice = ", ".join(map(spelled, words))
    wanted = f"one of {choice}" if len(words) > 1 else choice
    return SpecError(where, spelled(found), wanted, hint)


def _model_at(location: Location, model: type[BaseModel]) -> type[BaseModel]:
    """Return the model of the table at a location in a table of `model`."""
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the first model within an annotation, None if it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(
        (found for part in get_args(annotation) if (found := _model_in(part)) is not None), None
    )
