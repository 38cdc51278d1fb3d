"""Views: blocks of features, and Gram matrices, of the points of a data set, joined by their ids.

The rows have the order of the data set's own file.  A point whose id a view's file lacks has no
value of that view: NaN among its features, zero rows in its Gram matrices.  Rows that match no
point are left out, and the summary says how many.  Files of groups name sets of features.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats, Ints
from mkldist.core.wording import pluralize, truncate
from mkldist.data.checks import check_fits, feature_position, positions_of_ids
from mkldist.data.csv_files import csv_rows
from mkldist.data.dataset import GramView, RawData, SourceColumns, TextColumns, View
from mkldist.data.files import read_file
from mkldist.data.gram_files import read_view
from mkldist.data.grams import Repairs
from mkldist.data.npz_files import IDS
from mkldist.data.opening import REWRITE, opened
from mkldist.data.tables import ColumnChoice
from mkldist.errors import DataError, ending_words
from mkldist.spec.datasets import DatasetSpec, ViewSpec

ABSENT = -1
SHOWN = 5
GROUP_FILES = (".gmt", ".csv")
EXAMPLES = "such as NAME<tab>description<tab>feature<tab>feature in a .gmt file"
SEVERAL_ROWS = (
    "Correct these rows; or, for several samples of one patient or so, name the same column by id "
    "and by groups of [splits]: they then share its row of each view"
)

NamedGroups = dict[str, tuple[str, ...]]
Names = npt.NDArray[np.str_]


def read_groups(path: Path, where: str) -> NamedGroups:
    """Return the groups of a file in their order, each feature once.

    ``.gmt`` has a line for each group: its name, a description and its features, separated by tabs;
    ``.csv`` a header and lines of a group and a feature.
    """
    extension = path.suffix.lower()
    if extension not in GROUP_FILES:
        expected = f"groups in one of {', '.join(GROUP_FILES)}"
        raise DataError(
            where, ending_words(extension, "file"), expected, "Rename or convert the file"
        )
    with opened(path, where) as stream:
        text = stream.read().decode("utf-8-sig")
    found: dict[str, list[str]] = {}
    if extension == ".csv":
        for _, name, member in _pairs(text, where):
            found.setdefault(name, []).append(member)
    else:
        for place, name, members in _gmt_groups(text, where):
            if name in found:
                expected = "a name for each group"
                raise DataError(place, f"group {name!r} twice", expected, "Rename one")
            found[name] = members
    if not found:
        raise DataError(where, "no groups", f"names of groups and features, {EXAMPLES}", REWRITE)
    return {name: tuple(dict.fromkeys(members)) for name, members in found.items()}


def _gmt_groups(text: str, where: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield place, name and features of each group."""
    for number, line in enumerate(text.splitlines(), start=1):
        fields, place = [one.strip() for one in line.split("\t")], f"{where}, line {number}"
        if any(fields):
            if len(fields) < 3 or not fields[0]:
                expected = "a name, a description and features, separated by tabs"
                hint = "Separate the fields of this line by tabs"
                raise DataError(place, pluralize(len(fields), "field"), expected, hint)
            yield place, fields[0], [one for one in fields[2:] if one]


def _pairs(text: str, where: str) -> Iterator[tuple[str, str, str]]:
    """Yield the place, the group and the feature of each line after the header."""
    rows = csv_rows(io.StringIO(text, newline=""), ",", where)
    for row, (number, fields) in enumerate((number, row) for number, row in rows if row):
        place = f"{where}, line {number}"
        if len(fields) != 2:
            hint = "Write a line for each feature of each group"
            expected = "two: a group and a feature, after a header"
            raise DataError(place, pluralize(len(fields), "field"), expected, hint)
        if row:
            yield place, fields[0].strip(), fields[1].strip()


def known_groups(
    groups: Mapping[str, Sequence[str]], names: Sequence[str], where: str
) -> tuple[dict[str, tuple[int, ...]], str]:
    """Return groups as column indices, and in words which features the data lack, left out."""
    positions = {name: position for position, name in enumerate(names)}
    columns = {
        group: tuple(positions[member] for member in members if member in positions)
        for group, members in groups.items()
    }
    kept = {group: members for group, members in columns.items() if members}
    wanted = list(dict.fromkeys(member for members in groups.values() for member in members))
    unknown = [member for member in wanted if member not in positions]
    if not kept:
        found = f"{pluralize(len(groups), 'group')} of features such as {truncate(wanted, SHOWN)}"
        expected = f"features of the data, such as {truncate(list(names), SHOWN)}"
        raise DataError(where, found, expected, "Check that both are of one nomenclature")
    words = pluralize(len(kept), "group")
    if unknown:
        words += (
            f"; {len(unknown)} of their {len(wanted)} features are not in the data and left out "
            f"({truncate(unknown, SHOWN)})"
        )
    if len(kept) < len(groups):
        empty = [group for group in groups if group not in kept]
        words += f"; without any, and left out: {truncate(empty, SHOWN)}"
    return kept, words


def with_views(
    spec: DatasetSpec, raw: RawData, located: Callable[[str], Path], where: str
) -> RawData:
    """Return the raw data of a data set with those of its views and its file of groups."""
    if raw.sparse is not None and spec.group_file is not None:
        found, expected = "group_file for sparse features", "groups in the sweep file"
        raise DataError(where, found, expected, "Remove group_file")
    if raw.x is None:
        found = "views or group_file for Gram matrices alone"
        raise DataError(where, found, "features", "Remove them")
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
    given: dict[str, GramView] = field(default_factory=dict)
    texts: list[TextColumns] = field(default_factory=list)
    text_views: dict[str, View] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    columns: dict[str, SourceColumns] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = list(self.raw.feature_names)
        self.texts = [] if self.raw.texts is None else [self.raw.texts]

    def add(self, view: ViewSpec, located: Callable[[str], Path], where: str) -> None:
        """Read a view and join it; graphs follow when the points are known."""
        if view.graphs is not None:
            return
        if view.grams is not None:
            self._add_grams(view, located(view.grams), where)
            return
        if view.file is None:
            columns, first = self._own_columns(view, where), 0
            names = [self.names[column] for column in columns]
        else:
            names, first = self._add_file(view, located(view.file), where)
            columns = tuple(range(first, first + len(names)))
        if columns or view.name not in self.text_views:
            self.views[view.name] = View(columns, view.missing)
            self.groups[view.name] = columns
        if view.group_file is not None:
            own = names if view.file is not None else self.raw.feature_names
            self.add_groups(located(view.group_file), own, first, where)

    def add_groups(self, path: Path, names: Sequence[str], first: int, where: str) -> None:
        """Read a file of groups of features; those of these names are columns from `first` on."""
        place = f"{where}, group_file {path.name}"
        groups, words = known_groups(read_groups(path, place), names, place)
        for group, columns in groups.items():
            if group in self.file_groups:
                found = f"group {group!r} in two files"
                raise DataError(place, found, "a name for each", "Rename one")
            self.file_groups[group] = tuple(first + column for column in columns)
        self.notes.append(f"{path.name}: {words}")

    def joined(self) -> RawData:
        """Return the data set with all views."""
        raw = self.raw
        check_fits(8 * len(self.x) * len(self.names), self.where, "Select features first")
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            found = f"two features {twice[0]!r}"
            raise DataError(self.where, found, "a name for each", "Rename one column")
        texts = None
        if self.texts:
            names = tuple(name for block in self.texts for name in block.names)
            values = np.hstack([block.values for block in self.texts])
            texts = TextColumns(names, values, self.text_views)
        columns = raw.columns or SourceColumns(raw.feature_names)
        if raw.ids is not None and not columns.id:
            columns = replace(columns, id=self.id or IDS)
        return replace(
            raw,
            x=np.hstack([self.x, *self.blocks]) if self.blocks else self.x,
            feature_names=tuple(self.names),
            groups={**raw.groups, **self.groups},
            file_groups=self.file_groups,
            views=self.views,
            given=self.given,
            texts=texts,
            summary=replace(raw.summary, notes=(*raw.summary.notes, *self.notes)),
            columns=columns,
            view_columns=self.columns,
        )

    def _own_columns(self, view: ViewSpec, where: str) -> tuple[int, ...]:
        """Return a view's columns of the data set's features, by default all; note its texts."""
        names, texts = self.raw.feature_names, self.raw.texts
        if view.columns is None:
            return tuple(range(len(names)))
        known = {} if texts is None else {name: place for place, name in enumerate(texts.names)}
        own = tuple(known[name] for name in view.columns if name in known)
        if own:
            self.text_views[view.name] = View(own, view.missing)
        positions = {name: position for position, name in enumerate(names)}
        place = f"{where}: columns"
        others = (member for member in view.columns if member not in known)
        return tuple(feature_position(member, positions, place) for member in others)

    def _add_file(self, view: ViewSpec, path: Path, where: str) -> tuple[list[str], int]:
        """Join a file of features; return their names there, and the first one's column."""
        place = f"{where} ({path})"
        read = read_file(path, ColumnChoice.of_view(view, self.id), place)
        if read.x is None:
            raise DataError(place, "no features", "a file of features", "Name it by grams")
        rows = self._rows(read.ids, len(read.x), view.name, place)
        label = self.raw.label_name
        texts = () if read.texts is None else read.texts.names
        if label and label in (*read.feature_names, *read.groups, *texts):  # which it would tell
            found = f"a column {label!r}, as the label is called"
            hint = f'Set ignore = ["{label}"] for the view, or rename the column'
            raise DataError(place, found, "features only", hint)
        known = rows != ABSENT
        block = np.full((len(rows), read.x.shape[1]), np.nan)
        block[known] = read.x[rows[known]]
        first = len(self.names)
        if read.texts is not None:
            values = np.full((len(rows), len(read.texts.names)), "", dtype=object)
            values[known] = read.texts.values[rows[known]]
            start = sum(len(one.names) for one in self.texts)
            names = tuple(f"{view.name}.{name}" for name in read.texts.names)
            self.texts.append(TextColumns(names, values))
            columns = tuple(range(start, start + len(names)))
            self.text_views[view.name] = View(columns, view.missing)
        self.blocks.append(block)
        self.names += [f"{view.name}.{name}" for name in read.feature_names]
        for group, columns in read.groups.items():
            self.groups[f"{view.name}.{group}"] = tuple(first + column for column in columns)
        source = read.columns or SourceColumns(read.feature_names)
        if read.ids is not None and not source.id:
            source = replace(source, id=view.id or IDS)
        self.columns[view.name] = source
        return list(read.feature_names), first

    def _add_grams(self, view: ViewSpec, path: Path, where: str) -> None:
        """Join a file of Gram matrices."""
        place = f"{where} ({path})"
        repairs = Repairs.of(view.indefinite)
        grams, ids, names = read_view(path, view.id, place, repairs)
        notes = () if repairs is None else repairs.notes(len(grams))
        self.notes += [f"view {view.name!r}: {note}" for note in notes]
        rows = self._rows(ids, grams.shape[1], view.name, place)
        present = rows != ABSENT
        if not np.array_equal(rows, np.arange(grams.shape[1])):
            n = len(rows)
            check_fits(grams.itemsize * len(grams) * n * n, place, "Give fewer matrices")
            spread = np.zeros((len(grams), n, n), dtype=grams.dtype)
            kept, own = np.flatnonzero(present), rows[present]
            spread[:, kept[:, None], kept] = grams[:, own[:, None], own]
            grams = spread
        self.given[view.name] = GramView(grams, present, view.missing, names=names)

    def _rows(self, ids: Names | None, n_rows: int, view: str, where: str) -> Ints:
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
            hint = "Set id = the column of the data set that names its rows"
            raise DataError(where, "ids, but the data set has none", "ids in both", hint)
        names = list(map(str, self.raw.ids.tolist()))
        own = dict.fromkeys(names)
        if self.id in self.raw.of_splits:  # points of one group may share the rows of views
            positions_of_ids(np.array(list(own)), self.where)
        else:
            positions_of_ids(self.raw.ids, self.where, SEVERAL_ROWS)
        found = positions_of_ids(ids, where)
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
        return np.array([found.get(name, ABSENT) for name in names], dtype=np.intp)
