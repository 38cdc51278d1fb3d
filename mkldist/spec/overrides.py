"""Overrides of a sweep file: ``path.to.key=value``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from mkldist.errors import SpecError, nearest
from mkldist.spec.toml_texts import TooLongError, parsed_toml
from mkldist.spec.values import LONGEST, spelled

Location = tuple[int | str, ...]
"""Keys and indices on the way from a document to one of its values."""

NAMES = ("label", "name", "family")
"""Keys that name an item of a list; the first that an item has counts."""
NAMES_OF = {"datasets": ("name",)}  # whose label is a column
"""The same for items of a list in which other keys name them, by the key of the list."""


def apply_override(document: dict[str, Any], override: str) -> Location:
    """Set one value of a document.

    Parameters
    ----------
    document : dict
        Content of the file; it is changed in place.
    override : str
        ``path.to.key=value``.  The path names items of lists by their name or their index from 0,
        and quotes keys that contain dots, as TOML does.  A value that is not TOML is a text.

    Returns
    -------
    tuple of int and str
        Location of the value.

    Raises
    ------
    mkldist.errors.SpecError
        If the path leads nowhere.
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

    Examples
    --------
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
