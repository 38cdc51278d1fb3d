"""Values of a sweep file: TOML texts, kinds, unions of kinds, and checks of what else is given."""

from __future__ import annotations

import errno
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from mkldist.core.memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory
from mkldist.core.wording import SHOWN_PASSWORD, has_password
from mkldist.errors import SpecError

MOST_PARTS = 100  # of a key; the time that TOML's parser takes grows with their square
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:["']?[\w-]+["']?[ \t]*\.[ \t]*){{{MOST_PARTS}}}""")


class TooLongError(ValueError):
    """Raised for a text of a key, a number or a depth beyond all use."""

    def __init__(self, found: str, expected: str = "") -> None:
        super().__init__(found)
        self.found, self.expected = found, expected


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML text."""
    if _LONG_KEY.search(text):
        raise TooLongError(f"a key of over {MOST_PARTS} parts", "keys such as splits.folds")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise TooLongError("lists or tables in each other too deep to read") from None
    except ValueError:  # Python bounds the digits of whole numbers
        raise TooLongError(
            "a whole number of more than 4000 digits", "a number that a computer holds"
        ) from None


LONGEST = 60


def spelled(value: Any, longest: int | None = LONGEST) -> str:
    """Return a value as TOML spells it, shortened to so many characters unless that is None.

    >>> spelled({"start": 1, "log": True})
    '{start = 1, log = true}'
    >>> spelled(["a", 1.5])
    '["a", 1.5]'
    """
    text = _spelled(value)
    return text if longest is None or len(text) <= longest else f"{text[: longest - 3]}..."


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_spelled(item)}" for k, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_spelled, value)) + "]"
    if isinstance(value, bool | str):
        return _quoted(value)
    try:
        return str(value)
    except ValueError:  # Python bounds the digits of a whole number in base 10
        return f"a whole number of {value.bit_length()} bits"


def _quoted(value: bool | str) -> str:
    """Return text in quotes; TOML wants one character escaped that JSON leaves."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_text(document: Mapping[str, Any]) -> str:
    """Return a document as a TOML file: values first, then tables and lists of tables.

    >>> print(toml_text({"name": "a", "banks": [{"family": "xu2008"}], "splits": {"folds": 3}}))
    name = "a"
    <BLANKLINE>
    [[banks]]
    family = "xu2008"
    <BLANKLINE>
    [splits]
    folds = 3
    <BLANKLINE>
    """
    return "\n".join([*_lines(document, ""), ""])


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the lines of a table whose header has been written."""
    inner = {key: value for key, value in table.items() if _is_table(value) or _are_tables(value)}
    yield from (
        f"{_key(key)} = {_spelled(value)}" for key, value in table.items() if key not in inner
    )
    for key, value in inner.items():
        below = f"{path}.{_key(key)}" if path else _key(key)
        for item in value if _are_tables(value) else [value]:
            yield f"\n[[{below}]]" if _are_tables(value) else f"\n[{below}]"
            yield from _lines(item, below)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    """Return a key, in quotes where TOML wants them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


class Model(BaseModel):
    """Base of all models: unknown keys are refused, "5" is no number, and 1 is not true.

    The reference shows the text below each field.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **settings: Any) -> None:
        for field in cls.model_fields.values():
            if field.description:
                field.description = " ".join(field.description.split())


def check_kind(table: Any, kinds_of: Mapping[str, tuple[str, ...]], instead: str = "") -> None:
    """Refuse keys that have an effect with other values of the table's `kind` alone."""
    for name, kinds in kinds_of.items():
        has_value = name in table.model_fields_set and getattr(table, name) is not None
        if has_value and table.kind not in kinds:
            choice = " or ".join(f'"{kind}"' for kind in kinds)
            wanted = instead or f"kind = {choice}, or no {name}"
            raise ValueError(f'found {name} with kind = "{table.kind}"; expected {wanted}')


TEXT, NUMBER, LIST, TABLE = SHAPES = ("<text>", "<number>", "<list>", "<table>")
"""Tags of the kinds that a union may hold.  No key of a sweep file is spelled like them."""


def shape_of(value: Any) -> str | None:
    """Return the kind of a value, None if it has none.

    The message about a mistake then names the kind that the user meant, not all of a union.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return TEXT
    if isinstance(value, int | float):
        return NUMBER
    return LIST if isinstance(value, list | tuple) else TABLE


def series_shape(value: Any) -> str | None:
    """Return the kind of a value where "chi2" is the only permitted text."""
    return None if isinstance(value, str) and value != "chi2" else shape_of(value)


def argument_shape(value: Any) -> str | None:
    """Return the kind of an argument of a function of the user; true and false count as texts."""
    kind = TEXT if isinstance(value, bool) else shape_of(value)
    return None if kind == TABLE else kind


def either(expected: str, shape: Callable[[Any], str | None] = shape_of) -> Discriminator:
    """Choose the member of a union by the kind of the value; `expected` is for any other."""
    return Discriminator(shape, custom_error_type="shape", custom_error_message=expected)


def _class_name(value: Any) -> Any:
    """Return the name of a class, which the sweep file may give as a whole number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def several(value: Any) -> Any:
    """Return a list of classes unless it has fewer than two."""
    if isinstance(value, list | tuple) and len(value) < 2:
        raise ValueError(f"found {spelled(value)}; expected two classes or more")
    return value


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=100)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Task = Literal["classification", "regression"]
MissingView = Literal["zero", "impute"]
Imputation = Literal["median", "mean", "most_frequent"]
Indefinite = Literal["clip", "flip", "shift"]
Finite = Annotated[float, Field(allow_inf_nan=False)]
ClassName = Annotated[str, BeforeValidator(_class_name, json_schema_input_type=str | int)]
NameOrNumber = Annotated[
    Annotated[str, Tag(TEXT)] | Annotated[int, Tag(NUMBER)],
    either("a name in quotes or a whole number"),
]


def _distinct(sizes: list[int]) -> list[int]:
    """Return sizes unless one stands twice."""
    for place, size in enumerate(sizes):
        if size in sizes[:place]:
            raise ValueError(f"found {size} twice; expected sizes that differ")
    return sizes


_Count = Annotated[int, Field(ge=1)]
Counts = Annotated[
    Annotated[_Count, Tag(NUMBER)] | Annotated[list[_Count], Field(min_length=1), Tag(LIST)],
    either("a whole number or a list of them"),
]
Sizes = Annotated[
    Annotated[_Count, Tag(NUMBER)]
    | Annotated[list[_Count], Field(min_length=1), AfterValidator(_distinct), Tag(LIST)],
    either("a whole number or a list of them"),
]
"""One size, or those of a scaling study."""


def size_name(name: str, size: int) -> str:
    """Return the name in the results of one size of a bank or a data set: ``NAME-100``."""
    return f"{name}-{size}"


ClassWeights = Annotated[
    Annotated[Literal["balanced"], Tag(TEXT)] | Annotated[dict[str, Positive], Tag(TABLE)],
    either('"balanced" or a table of weights by class'),
]
"""Weights of classes: as scikit-learn balances them, or each by its name."""


Option = Annotated[
    Annotated[str, Tag(TEXT)] | Annotated[int | float, Tag(NUMBER)],
    either("a number or a text in quotes"),
]


LINKED = "C"
"""The parameter whose values another method may give."""

SOURCE_PREFIX = "source_"
"""Begins the names of dims of the results that are those of the other method."""

TRIAL = "trial"
"""Dimension of the results along which the trials of a search lie."""


def _path(text: str) -> str:
    """Refuse a text that no system takes for a path, and one with a password."""
    if "\0" in text:
        raise ValueError("found a text with the character NUL; expected a path")
    if has_password(text):
        found, expected, hint = SHOWN_PASSWORD
        raise ValueError(f"found {found}; expected {expected}. {hint}")
    return text


PathText = Annotated[str, AfterValidator(_path)]


def as_path(name: str, value: object) -> Path:
    """Return a path that an argument gives."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        found = " ".join(repr(value).split())  # in one line, of an array or a table too
        raise SpecError(name, f"{found:.60}", "a path")
    if has_password(str(value)):
        raise SpecError(name, *SHOWN_PASSWORD)
    path = Path(value)
    try:
        path.lstat()
    except ValueError as error:
        raise SpecError(name, f"{value!r:.60} ({error})", "a path") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            found = f"{value!r:.60}..., a name that is too long"
            raise SpecError(name, found, "a path") from None
    return path


def check_flags(**flags: object) -> None:
    """Refuse anything but True and False, such as ``"no"``, which Python takes for True."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise SpecError(name, f"{value!r:.60}", "True or False")


MOST_WORKERS = 100_000
"""Workers of a forecast at most."""
COUNTABLE = 10**15
"""Numbers above it are not written out: they may have thousands of digits."""


def check_fits(
    number: int,
    bytes_each: float,
    where: str,
    noun: str,
    hint: str = "",
    *,
    most: int | None = None,
) -> None:
    """Raise unless so many things fit into half of this machine's memory."""
    limit = SHARE_OF_MEMORY * physical_memory()
    too_many = most is not None and number > most
    if not too_many and number <= limit / bytes_each:
        return
    if number > COUNTABLE:
        found = f"more than {COUNTABLE:,} {noun}"
    else:
        found = f"{number:,} {noun}, which need {number * bytes_each / GIB:,.1f} GiB of memory"
    expected = f"at most {most:,}" if too_many else at_most_half(limit)
    raise SpecError(where, found, expected, hint)
