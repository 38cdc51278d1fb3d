"""Views: blocks of features, and Gram matrices, of the points of a data set, joined by their ids.

The rows have the order of the data set's own file.  A point whose id a view's file lacks has no
value of that view: NaN among its features, zero rows in its Gram matrices.  Rows that match no
point are left out, and the summary says how many.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats, Ints
from mkldist.core.wording import pluralize, truncate
from mkldist.data.assemble import feature_position
from mkldist.data.columns import ColumnChoice
from mkldist.data.csv_rows import LONG_TEXTS, csv_rows
from mkldist.data.dataset import GivenGrams, View
from mkldist.data.files import is_table, read_file
from mkldist.data.grams import read_view
from mkldist.data.npz_files import IDS
from mkldist.data.opening import REWRITE, opened
from mkldist.data.raw import RawData, check_fits
from mkldist.data.source_columns import SourceColumns
from mkldist.data.texts import JoinedTexts
from mkldist.errors import DataError, ending_words
from mkldist.spec.datasets import DatasetSpec, ViewSpec
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
            f"{pluralize(len(groups), 'group')} of features such as {truncate(wanted, SHOWN)}",
            f"features of the data, such as {truncate(list(names), SHOWN)}",
            "Check that both are of one nomenclature",
        )
    said = pluralize(len(kept), "group")
    if unknown:
        said += (
            f"; {len(unknown)} of their {len(wanted)} features are not in the data and left out "
            f"({truncate(unknown, SHOWN)})"
        )
    if len(kept) < len(groups):
        empty = [group for group in groups if group not in kept]
        said += f"; without any, and left out: {truncate(empty, SHOWN)}"
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
                pluralize(len(fields), "field"),
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
                    pluralize(len(fields), "field"),
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


ABSENT = -1
SEVERAL_ROWS = (
    "Correct these rows; or, for several samples of one patient or so, name the same column by id "
    "and by groups of [splits]: they then share its row of each view"
)

Texts = npt.NDArray[np.str_]


def with_views(
    spec: DatasetSpec, raw: RawData, located: Callable[[str], Path], where: str
) -> RawData:
    """Return the raw data of a data set with those of its views and its file of groups.

    Parameters
    ----------
    spec : DatasetSpec
        The entry of the sweep file.
    raw : RawData
        The data set's own source.
    located : callable
        Returns the path of a file that the entry names.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If a view cannot be read, or its rows are not those of the data set.
    GramError
        If a view's matrices are not Gram matrices.
    """
    if not spec.views and spec.group_file is None:
        return raw
    if raw.sparse is not None and spec.group_file is not None:
        raise DataError(
            where, "group_file for sparse features", "groups in the sweep file", "Remove group_file"
        )
    if raw.x is None:
        raise DataError(
            where, "views or group_file for Gram matrices alone", "features", "Remove them"
        )
    joining = _Joining(raw, raw.x, spec.id, where)
    if spec.group_file is not None:
        joining.add_groups(located(spec.group_file), raw.feature_names, 0, where)
    for view in spec.views:
        joining.add(view, located, f"{where}, view {view.name!r}")
    return joining.joined()


@dataclass(eq=False)
class _Joining:
    """A data set to which views are being joined."""

    raw: RawData
    x: Floats
    id: str | None  # the column of ids
    where: str  # the place to name in a message
    blocks: list[Floats] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    file_groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    given: dict[str, GivenGrams] = field(default_factory=dict)
    texts: JoinedTexts = field(init=False)
    notes: list[str] = field(default_factory=list)
    columns: dict[str, SourceColumns] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = list(self.raw.feature_names)
        self.texts = JoinedTexts(self.raw.texts)

    def add(self, view: ViewSpec, located: Callable[[str], Path], where: str) -> None:
        """Read a view and join it; graphs follow when the points are known."""
        if view.graphs is not None:
            return
        if view.grams is not None:
            self._add_grams(view, located(view.grams), where)
            return
        if view.file is None:
            columns = _own_columns(self.texts.add_own(view), self.raw.feature_names, where)
            names, first = [self.names[column] for column in columns], 0
        else:
            names, first = self._add_file(view, located(view.file), where)
            columns = tuple(range(first, first + len(names)))
        if columns or view.name not in self.texts.views:
            self.views[view.name] = View(columns, view.missing)
            self.groups[view.name] = columns
        if view.group_file is not None:
            own = names if view.file is not None else self.raw.feature_names
            self.add_groups(located(view.group_file), own, first, where)

    def add_groups(self, path: Path, names: Sequence[str], first: int, where: str) -> None:
        """Read a file of groups of features; those of these names are columns from `first` on."""
        place = f"{where}, group_file {path.name}"
        found = known_groups(read_groups(path, place), names, place)
        for group, columns in found.columns.items():
            if group in self.file_groups:
                raise DataError(
                    place, f"group {group!r} in two files", "a name for each", "Rename one"
                )
            self.file_groups[group] = tuple(first + column for column in columns)
        self.notes.append(f"{path.name}: {found.said}")

    def joined(self) -> RawData:
        """Return the data set with all views."""
        raw, d = self.raw, len(self.names)
        check_fits(8 * len(self.x) * d, self.where, "Select features first")
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise DataError(
                self.where, f"two features {twice[0]!r}", "a name for each", "Rename one column"
            )
        return replace(
            raw,
            x=np.hstack([self.x, *self.blocks]) if self.blocks else self.x,
            feature_names=tuple(self.names),
            groups={**raw.groups, **self.groups},
            file_groups=self.file_groups,
            views=self.views,
            given=self.given,
            texts=self.texts.joined(),
            summary=replace(raw.summary, notes=(*raw.summary.notes, *self.notes)),
            columns=self._source_columns(),
            view_columns=self.columns,
        )

    def _source_columns(self) -> SourceColumns:
        """Return the columns of the data set's own source."""
        columns = self.raw.columns or SourceColumns.of_features(self.raw.feature_names)
        named = self.raw.ids is not None and not columns.id
        return replace(columns, id=self.id or IDS) if named else columns

    def _add_file(self, view: ViewSpec, path: Path, where: str) -> tuple[list[str], int]:
        """Join a file of features; return their names there, and the first one's column."""
        place = f"{where} ({path})"
        id = view.id or (self.id if is_table(path, place) else None)
        choice = ColumnChoice.of_view(view, id)
        read = read_file(path, choice, place)
        if read.x is None:
            raise DataError(place, "no features", "a file of features", "Name it by grams")
        rows = self._rows(read.ids, len(read.x), view.name, place)
        block = np.full((len(rows), read.x.shape[1]), np.nan)
        block[rows != ABSENT] = read.x[rows[rows != ABSENT]]
        first = len(self.names)
        self._refuse_labels(read.feature_names, place)
        self.texts.add(view, read.texts, rows)
        self.blocks.append(block)
        self.names += [f"{view.name}.{name}" for name in read.feature_names]
        for group, columns in read.groups.items():
            self.groups[f"{view.name}.{group}"] = tuple(first + column for column in columns)
        source = read.columns or SourceColumns.of_features(read.feature_names)
        if read.ids is not None and not source.id:
            source = replace(source, id=view.id or IDS)
        self.columns[view.name] = source
        return list(read.feature_names), first

    def _add_grams(self, view: ViewSpec, path: Path, where: str) -> None:
        """Join a file of Gram matrices."""
        place = f"{where} ({path})"
        grams, ids = read_view(path, view.id, place)
        rows = self._rows(ids, grams.shape[1], view.name, place)
        present = rows != ABSENT
        if not np.array_equal(rows, np.arange(grams.shape[1])):
            n = len(rows)
            check_fits(grams.itemsize * len(grams) * n * n, place, "Give fewer matrices")
            spread = np.zeros((len(grams), n, n), dtype=grams.dtype)
            kept, own = np.flatnonzero(present), rows[present]
            spread[:, kept[:, None], kept] = grams[:, own[:, None], own]
            grams = spread
        self.given[view.name] = GivenGrams(grams, present, view.missing)

    def _rows(self, ids: Texts | None, n_rows: int, view: str, where: str) -> Ints:
        """Return the view's row of each point, -1 for those that it lacks; note rows left over."""
        n = len(self.x)
        if ids is None:
            if n_rows != n:
                raise DataError(
                    where,
                    f"{pluralize(n_rows, 'row')} for {n} points, and no ids",
                    "the points of the data set in their order, or ids",
                    "Set id = the column that names the rows, here and under the data set",
                )
            self.notes.append(f"view {view!r} has no ids: its rows are taken in their order")
            return np.arange(n)
        if self.raw.ids is None:
            raise DataError(
                where,
                "ids, but the data set has none",
                "ids in both",
                "Set id = the column of the data set that names its rows",
            )
        names = self._own_ids(self.raw.ids)
        own = dict.fromkeys(names)
        found = positions_of_ids(ids, where)
        rows = np.array([found.get(name, ABSENT) for name in names], dtype=np.intp)
        others = [name for name in found if name not in own]
        if len(others) == len(found):
            raise DataError(
                where,
                f"ids such as {truncate(others, SHOWN)}, none of them in the data set",
                f"ids such as {truncate(list(own), SHOWN)}",
                "Check that id names the right column in both files",
            )
        if others:
            self.notes.append(
                f"view {view!r}: {len(others)} of its {len(found)} rows are not in the data set "
                f"and left out ({truncate(others, SHOWN)})"
            )
        return rows

    def _own_ids(self, ids: Texts) -> list[str]:
        """Return the id of each point; points of one group may share the rows of views."""
        if self.id is None or self.id not in self.raw.of_splits:
            return list(positions_of_ids(ids, self.where, SEVERAL_ROWS))
        names = list(map(str, ids.tolist()))
        positions_of_ids(np.array(list(dict.fromkeys(names))), self.where)
        return names

    def _refuse_labels(self, names: Sequence[str], where: str) -> None:
        """Refuse a feature that is the label column again: it would give the labels away."""
        label = self.raw.label_name
        if label and label in names:
            raise DataError(
                where,
                f"a column {label!r}, as the label is called",
                "features only",
                f'Set ignore = ["{label}"] for the view, or rename the column',
            )


def positions_of_ids(ids: Texts, where: str, hint: str = "Correct these rows") -> dict[str, int]:
    """Return the row of each id, which must be there once.

    Parameters
    ----------
    ids : (n,) array of str
        The ids.
    where : str
        The place to name in a message.
    hint : str
        What to do about rows without an id of their own.

    Raises
    ------
    DataError
        For rows without an id, and ids that occur more than once.
    """
    found: dict[str, int] = {}
    twice: dict[str, None] = {}
    empty = 0
    for row, name in enumerate(map(str, ids.tolist())):
        empty += not name
        if name in found:
            twice[name] = None
        found[name] = row
    problems = [f"{pluralize(empty, 'row')} without an id"] if empty else []
    named = [repr(name) for name in twice if name]
    if named:
        problems.append(f"ids that occur more than once: {truncate(named, SHOWN)}")
    if problems:
        raise DataError(where, " and ".join(problems), "an id of its own for each row", hint)
    return found


def _own_columns(view: ViewSpec, names: Sequence[str], where: str) -> tuple[int, ...]:
    """Return the columns of a view of the data set's own features; by default all of them."""
    if view.columns is None:
        return tuple(range(len(names)))
    positions = {name: position for position, name in enumerate(names)}
    place = f"{where}: columns"
    return tuple(feature_position(member, positions, place) for member in view.columns)
