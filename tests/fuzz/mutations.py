"""Seeded mistakes in documents, and in the bytes of files."""

import datetime
import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

Draw = np.random.Generator

NASTY: tuple[Any, ...] = (
    0, -1, 1, 2, 3.5, 0.0, -0.0, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan,
    10**9, 10**18, -(10**18), 2**63, 10**30, True, False, "", " ", "a", "all", "none", "auto",
    "train", "1e400", "-5GiB", "9" * 400, "x" * 3000, "\x00", "../../etc/passwd", "/dev/null",
    "/dev/zero", "~nouser/x", "~", ".", "/", "http://127.0.0.1:9/x", "é\u2028", "[1, 2]", "%s{}",
    [], {}, [[]], [{}], [0], ["all", "all"], [math.nan], [1e300, 1e300], list(range(50)),
    {"start": 0, "stop": 1, "num": 10**9}, {"start": -1, "stop": 10, "num": 3, "scale": "log"},
    {"base": 2.0, "exponents": [400.0]}, {"low": 1, "high": 0}, {"low": 1e-300, "high": 1e300},
    {"count": 10**9, "size": 10**9}, {"": ""}, datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1, 1, 2),
)  # fmt: skip
TOKENS = (
    b"", b"\x00", b"\n", b"\r\n", b"\r", b",", b",,", b'"', b"'", b";", b"\t", b" ", b"=", b"[",
    b"]", b"[[", b"{", b"}", b":", b"-", b"#", b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"NaN",
    b"999999999999999999999999", b"0x1F", b"1_000", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80", b"\xc3(",
    b"&a *a", b"<<:", b"!!python/object:os.system", b"%", b"2020-01-01", b"2020-13-45",
    b"!!timestamp x", b"1:00:00.0", b"true", b"null", b"~",
    b"x" * 300, b"[" * 300, b"{a:" * 100, b"1:" * 50, b"PK\x03\x04", b"\x1f\x8b", b"\x93NUMPY",
)  # fmt: skip
Path = tuple[str | int, ...]


def changed(document: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """Return a document with one to three mistakes."""
    document = deepcopy(document)
    for _ in range(int(draw.integers(1, 4))):
        places = list(_places(document))
        if places:
            _change(document, places[int(draw.integers(len(places)))], draw)
    return document


def damaged(content: bytes, draw: Draw) -> bytes:
    """Return bytes with one to four mistakes."""
    for _ in range(int(draw.integers(1, 5))):
        change = _OF_BYTES[int(draw.integers(len(_OF_BYTES)))]
        place = int(draw.integers(len(content) + 1))
        content = change(content, place, draw)
    return content


def _places(value: Any, path: Path = ()) -> Any:
    """Yield the paths of all values in a document."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        yield (*path, key)
        yield from _places(item, (*path, key))


def _change(document: dict[str, Any], path: Path, draw: Draw) -> None:
    """Make a mistake at a place."""
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    key = path[-1]
    kind = int(draw.integers(10))
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = [holder[key]]
    elif kind == 2 and isinstance(holder, dict):
        holder[f"{key}x" if draw.integers(2) else _nasty_text(draw)] = holder.pop(key)
    elif kind == 3:
        other = [place for place in _places(document) if place[: len(path)] != path]
        holder[key] = deepcopy(_at(document, other[int(draw.integers(len(other)))])) if other else 0
    elif kind == 4 and isinstance(holder, list):
        holder.append(deepcopy(holder[key]))
    else:
        holder[key] = deepcopy(NASTY[int(draw.integers(len(NASTY)))])


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def _nasty_text(draw: Draw) -> str:
    texts = [value for value in NASTY if isinstance(value, str)]
    return texts[int(draw.integers(len(texts)))]


def _flip(content: bytes, place: int, draw: Draw) -> bytes:
    if place == len(content):
        return content
    changed = content[place] ^ (1 << int(draw.integers(8)))
    return content[:place] + bytes([changed]) + content[place + 1 :]


def _cut(content: bytes, place: int, draw: Draw) -> bytes:
    return content[:place]


def _drop(content: bytes, place: int, draw: Draw) -> bytes:
    return content[:place] + content[place + int(draw.integers(1, 40)) :]


def _repeat(content: bytes, place: int, draw: Draw) -> bytes:
    end = place + int(draw.integers(1, 200))
    return content[:end] + content[place:]


def _put(content: bytes, place: int, draw: Draw) -> bytes:
    return content[:place] + TOKENS[int(draw.integers(len(TOKENS)))] + content[place:]


def _replace(content: bytes, place: int, draw: Draw) -> bytes:
    token = TOKENS[int(draw.integers(len(TOKENS)))]
    return content[:place] + token + content[place + int(draw.integers(1, 9)) :]


def _swap(content: bytes, place: int, draw: Draw) -> bytes:
    length = int(draw.integers(1, 60))
    first, second = content[place : place + length], content[place + length : place + 2 * length]
    return content[:place] + second + first + content[place + 2 * length :]


def _nest(content: bytes, place: int, draw: Draw) -> bytes:
    """Return lists or objects that no reader ends, as a file made by hand may hold."""
    opened = (b"[", b'{"a":', b"[[", b"- ")[int(draw.integers(4))]
    return opened * int(draw.integers(1000, 20_000))


_OF_BYTES: tuple[Callable[[bytes, int, Draw], bytes], ...] = (
    _flip, _cut, _drop, _repeat, _put, _put, _replace, _replace, _swap, _nest,
)  # fmt: skip
