"""One JSON document in place of tables and sentences, for ``--json`` of commands."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Set
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(*keys: str) -> Callable[[Command], Command]:
    """Add ``--json``, which is passed on as ``as_json``."""

    def add(function: Command) -> Command:
        added: Any = click.option(
            "--json",
            "as_json",
            is_flag=True,
            help=f"Print one JSON document in place of text, with the keys {', '.join(keys)}.",
        )(function)
        return cast("Command", added)

    return add


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document of values as :func:`plain` takes them."""
    click.echo(json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: finite numbers, text, truth values, null, lists, objects.

    Data classes and named tuples become objects, arrays lists, paths and members of enumerations
    text; NaN and infinite numbers become null.

    Parameters
    ----------
    value : object
        Any nesting of these.

    Examples
    --------
    >>> plain({"gap": float("nan"), "splits": (0, 1)})
    {'gap': None, 'splits': [0, 1]}
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return plain(value.tolist())
    if isinstance(value, list | tuple | Set):
        return [plain(one) for one in value]
    return str(value)
