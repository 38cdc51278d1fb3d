"""Files of feature groups, such as gene sets: names of groups, and the features of each."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkldist.counted import counted
from mkldist.data.csv_rows import LONG_TEXTS, csv_rows
from mkldist.data.listing import first_of
from mkldist.data.opening import REWRITE, opened
from mkldist.errors import DataError, ending_words
from mkldist.spec.toml_texts import parsed_toml

SHOWN = 5
EXAMPLES = "such as NAME<tab>description<tab>feature<tab>feature in a .gmt file"

NamedGroups = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class FoundGroups:
    """Groups of a file as far as the data have their features.

    Parameters
    ----------
    columns : dict of str to tuple of int
        Groups of at least one feature.
    said : str
        What was found and what was left out, in words.
    """

    columns: dict[str, tuple[int, ...]]
    said: str


def read_groups(path: Path, where: str) -> NamedGroups:
    """Read a file of groups.

    Parameters
    ----------
    path : Path
        ``.gmt``: a line for each group, its name, a description and its features, separated by
        tabs; ``.csv``: a header and lines of a group and a feature; ``.json`` or ``.toml``: a table
        of lists.
    where : str
        The place to name in a message.

    Returns
    -------
    dict of str to tuple of str
        Groups in the order of the file, each feature once.

    Raises
    ------
    DataError
        If the file cannot be read, is of another kind, or names no group, or one twice.
    """
    extension = path.suffix.lower()
    if extension not in READERS:
        raise DataError(
            where,
            ending_words(extension, "file"),
            f"groups in one of {', '.join(READERS)}",
            "Rename or convert the file",
        )
    with opened(path, where) as stream:
        found = READERS[extension](stream.read().decode("utf-8-sig"), where)
    if not found:
        raise DataError(where, "no groups", f"names of groups and features, {EXAMPLES}", REWRITE)
    return {name: tuple(dict.fromkeys(members)) for name, members in found.items()}


def known_groups(
    groups: Mapping[str, Sequence[str]], names: Sequence[str], where: str
) -> FoundGroups:
    """Return groups as column indices; features that the data lack are counted and left out.

    Parameters
    ----------
    groups : mapping of str to sequence of str
        Features by the name of their group.
    names : sequence of str
        Features of the data.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If no group has a feature of the data.
    """
    positions = {name: position for position, name in enumerate(names)}
    columns = {
        group: tuple(positions[member] for member in members if member in positions)
        for group, members in groups.items()
    }
    kept = {group: members for group, members in columns.items() if members}
    wanted = list(dict.fromkeys(member for members in groups.values() for member in members))
    unknown = [member for member in wanted if member not in positions]
    if not kept:
        raise DataError(
            where,
            f"{counted(len(groups), 'group')} of features such as {first_of(wanted, SHOWN)}",
            f"features of the data, such as {first_of(list(names), SHOWN)}",
            "Check that both are of one nomenclature",
        )
    said = counted(len(kept), "group")
    if unknown:
        said += (
            f"; {len(unknown)} of their {len(wanted)} features are not in the data and left out "
            f"({first_of(unknown, SHOWN)})"
        )
    if len(kept) < len(groups):
        empty = [group for group in groups if group not in kept]
        said += f"; without any, and left out: {first_of(empty, SHOWN)}"
    return FoundGroups(kept, said)


def _read_gmt(text: str, where: str) -> NamedGroups:
    found: NamedGroups = {}
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [field.strip() for field in line.split("\t")]
        if not any(fields):
            continue
        if len(fields) < 3 or not fields[0]:
            raise DataError(
                f"{where}, line {number}",
                counted(len(fields), "field"),
                "a name, a description and features, separated by tabs",
                "Separate the fields of this line by tabs",
            )
        _add(found, fields[0], [field for field in fields[2:] if field], f"{where}, line {number}")
    return found


def _read_csv(text: str, where: str) -> NamedGroups:
    found: dict[str, list[str]] = {}
    with LONG_TEXTS:
        rows = ((n, row) for n, row in csv_rows(io.StringIO(text, newline=""), ",", where) if row)
        for place, (number, fields) in enumerate(rows):
            if len(fields) != 2:
                raise DataError(
                    f"{where}, line {number}",
                    counted(len(fields), "field"),
                    "two: a group and a feature, after a header",
                    "Write a line for each feature of each group",
                )
            if place:  # not the header
                found.setdefault(fields[0].strip(), []).append(fields[1].strip())
    return {name: tuple(members) for name, members in found.items()}


def _read_table(text: str, where: str) -> NamedGroups:
    try:
        table: Any = json.loads(text) if text.lstrip().startswith("{") else parsed_toml(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            where, f"text that cannot be parsed ({error})", "a table of lists", REWRITE
        ) from error
    found: NamedGroups = {}
    for name, members in table.items():
        if not isinstance(members, list) or not all(isinstance(m, str) for m in members):
            raise DataError(
                f"{where}: {name}",
                f"{members!r:.60}",
                "a list of names of features",
                f'Write "{name}": ["feature", "feature"]',
            )
        _add(found, name, members, where)
    return found


def _add(found: NamedGroups, name: str, members: Sequence[str], place: str) -> None:
    """Add a group, whose name must be new."""
    if name in found:
        raise DataError(place, f"group {name!r} twice", "a name for each group", "Rename one")
    found[name] = tuple(members)


READERS: dict[str, Callable[[str, str], NamedGroups]] = {
    ".gmt": _read_gmt,
    ".csv": _read_csv,
    ".json": _read_table,
    ".toml": _read_table,
}
