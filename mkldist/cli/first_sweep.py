"""The text of a first sweep file for a user's data: kernels and methods that suit them."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, Final

import click
import numpy as np

from mkldist.cli.schema import LINE
from mkldist.core.wording import pluralize, truncate
from mkldist.data.cells import is_limit
from mkldist.data.dataset import Dataset
from mkldist.data.files import read_file
from mkldist.data.gram_files import holds_grams, read_grams
from mkldist.data.labels import MISSING_LABELS, negative_first, number_name
from mkldist.data.splits import group_numbers, make_splits, n_inner_folds
from mkldist.data.table_profile import (
    MOST_CLASSES,
    Column,
    TableProfile,
    are_real,
    check_column,
    holds_label_as_row,
    inspected,
    joining,
    likely_label,
    possible_labels,
)
from mkldist.data.tables import LABEL_WORDS, PLAIN, UNNAMED, ColumnChoice
from mkldist.data.validate import OF_POSITIVE
from mkldist.errors import DataError
from mkldist.spec.datasets import WORDS_FOR_FEATURES, SplitsSpec, TableFormat
from mkldist.spec.kinds import spelled
from mkldist.spec.model import SelectionSpec

SEED, TRAIN_FRACTION, REPEATS = 0, 0.7, 5
COLUMN = 34  # of comments beside a key
FOLDS = 3
FEW_ROWS = 5  # of a class, that inner folds may not divide
NO_VIEWS: Mapping[str, Any] = MappingProxyType({})
FORMAT_WORDS = {
    "part": "first sheet of a table",
    "header": "the first line looks like a row, so columns are called f0, f1, …",
    "names": "names of the columns",
    "separator": "between the fields",
    "comment": "beginning of lines to skip",
    "encoding": "it is not in UTF-8",
    "missing_values": "stand for missing values",
    "decimal": "decimal sign",
    "thousands": "between groups of three digits",
    "units": "units of columns of numbers",
    "transpose": "rows are features, and the header names the samples",
}
SHOWN = 8
OTHER_FILE = "join files by --view or [[datasets.views]]"
SAYS_LABEL = "says the label"
CODES = "codes with leading zeros"
NO_VALUE = "without any value"
HARDLY_KNOWN = "values in so few rows that a training part may hold none"
MANY_ROWS = 5000
PART_ROWS = 2000
MANY_COLUMNS, MOST_COLUMNS = 50, 2000  # between them each column has a kernel of its own,
MOST_ENTRIES = 2**27  # if all of these together have at most so many values
ROWS_OF_FACTORS = 700  # from which on columns take less time than their Gram matrices
LEFT_OUT: Final = "leave-one-group-out"
MOST_LEFT_OUT = 10  # groups that are few enough to test each by all others
RARE = 0.6  # of an equal share of the rows: of two classes, the rarer has less than 30 %


@dataclass(frozen=True)
class ViewFacts:
    """Facts on the table of a view."""

    file: Path
    look: TableProfile
    format: TableFormat
    n_lacking: int  # rows of the data of which it has no values

    @property
    def is_numeric(self) -> bool:
        """True if it has features that are no texts."""
        return bool(self.look.n_features)


@dataclass(frozen=True)
class Facts:
    """Facts that the file depends on."""

    n_rows: int  # size of the data
    n_features: int
    regression: bool  # True if labels are real values
    label: str | None = None  # the label column; None where the source has but one
    look: TableProfile | None = None  # columns of a table
    classes: Mapping[str, int] = field(default_factory=dict)
    """Rows by class, whose names that differ in capitals alone are one; empty for real values."""
    format: TableFormat = PLAIN  # how the table is written
    views: Mapping[str, ViewFacts] = field(default_factory=dict)  # that stand in files beside it
    missing: tuple[int, int] = (0, 0)  # rows and columns of arrays that miss values
    n_grams: int = 0  # Gram matrices in place of features
    apart: bool = False  # True if those of test points are given apart

    @classmethod
    def of(
        cls,
        look: TableProfile,
        format: TableFormat = PLAIN,
        views: Mapping[str, ViewFacts] = NO_VIEWS,
    ) -> Facts:
        """Return the facts of a table and of the views beside it."""
        label = look.columns[look.label]
        n_features = look.n_features + sum(view.look.n_features for view in views.values())
        found = cls(look.n_rows, n_features, label.is_regression, look.label, look, {}, format)
        classes = {} if label.is_regression else classes_of(label.counts)
        return replace(found, classes=classes, views=views)

    @property
    def two_classes(self) -> tuple[str, ...]:
        """Two classes, the one that is sought last; none of one class, of several, or unclear."""
        counts = self.look.columns[self.look.label].counts if self.look else self.classes
        return negative_first(self.classes) if len(counts) == len(self.classes) == 2 else ()

    @property
    def unlabelled(self) -> str:
        """The rows without a label in words; empty for none."""
        labels = self.look.columns[self.look.label].values if self.look else ()
        missing = Counter(value for value in labels if value.casefold() in MISSING_LABELS)
        words = [repr(word) for word in missing if word]
        said = f", {' and '.join(words)} being read as missing" if words else ""
        return f"{pluralize(missing.total(), 'row')} without a label{said}" if missing else ""

    @property
    def texts(self) -> list[str]:
        """Columns of sequences, as kernels name them."""
        own = [column.name for column in self.look.texts] if self.look else []
        beside = ((name, column) for name, v in self.views.items() for column in v.look.texts)
        return [*own, *(f"{name}.{column.name}" for name, column in beside)]

    @property
    def rare(self) -> str | None:
        """The rarest class if it is rare enough for a method to give it up; None otherwise."""
        if len(self.classes) < 2:
            return None
        name = min(self.classes, key=lambda one: self.classes[one])
        share = self.classes[name] / sum(self.classes.values())
        return name if share < RARE / len(self.classes) else None

    @property
    def has_columns_apart(self) -> bool:
        """True if each column has a kernel in a bank of its own."""
        n_rows = PART_ROWS if self.n_rows > MANY_ROWS else self.n_rows
        few = self.n_features <= min(MOST_COLUMNS, 2 * MOST_ENTRIES // max(n_rows, 1) ** 2)
        return few and self.n_features >= MANY_COLUMNS

    @cached_property
    def hindered(self) -> str:
        """Why a sweep cannot keep the rows of a group together, in words; empty if it can."""
        look = self.look
        return _hinders_groups(look, look.groups) if look and look.groups else ""

    @property
    def is_divisible(self) -> bool:
        """True if inner folds of training parts have rows of all classes."""
        look = self.look
        if look and look.groups and not self.hindered:
            return not _hinders_groups(look, look.groups, FOLDS)
        return min(self.classes.values(), default=FEW_ROWS) >= FEW_ROWS


def sweep_name(path: Path) -> str:
    """Return the name of a file without endings, as a sweep may be called."""
    stem = path.name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_")[:100] or "mine"


def classes_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Return rows by class; names that differ in capitals alone are one, the most frequent."""
    names: dict[str, str] = {}
    classes: Counter[str] = Counter()
    for value, count in Counter(counts).most_common():
        classes[names.setdefault(value.casefold(), value)] += count
    return dict(classes)


def facts_of(
    data: Path,
    label: str | None,
    views: Mapping[str, Path],
    *,
    id: str | None = None,
    groups: str | None = None,
    header: bool | None = None,
) -> Facts:
    """Return what the data are like: a table by its columns, arrays by their features."""
    columns, format = inspected(data, header, (label, id, groups))
    if not columns:
        return _facts_of_arrays(data, label, views, id or groups)
    if holds_label_as_row(columns, label):
        columns, format = inspected(data, header, transpose=True)
    for option, name in (("--label", label), ("--id", id), ("--groups", groups)):
        if name is not None:
            check_column(columns, name, option)
    label = label or _label(columns, data, format)
    found = _view_facts(columns, views, id, columns[label])
    if found:
        id = id or next(iter(found.values()))[1]
    look = TableProfile(columns, label, id, groups)
    return Facts.of(look, format, {name: facts for name, (facts, _) in found.items()})


def _facts_of_arrays(
    data: Path, label: str | None, views: Mapping[str, Path], column: str | None
) -> Facts:
    """Return what arrays are like."""
    if views or column:
        where = f"--view {next(iter(views))}" if views else column or ""
        raise DataError(where, f"no table of columns in {data}", "a table", "Convert it to .csv")
    try:
        is_gram = holds_grams(data, str(data))
        raw = (
            read_grams(data, None, label, str(data))
            if is_gram
            else read_file(data, ColumnChoice(label), str(data))
        )
    except DataError as error:  # in the words of this command, not in those of a sweep file
        hint = error.hint.replace("Set label = ", "Give --label ")
        raise DataError(error.where, error.found, error.expected, hint) from None
    numeric = raw.labels.dtype.kind in "fiub"
    counts = Counter(
        number_name(one) if numeric else str(one)
        for one in raw.labels.astype(np.float64 if numeric else str).tolist()
        if one == one
    )
    real = numeric and are_real([float(one) for one in counts])
    missing = np.isnan(raw.x) if raw.x is not None else np.zeros((0, 0), dtype=bool)
    return Facts(
        len(raw.labels),
        len(raw.feature_names),
        real,
        label,
        classes={} if real else classes_of(counts),
        missing=(int(missing.any(axis=1).sum()), int(missing.any(axis=0).sum())),
        n_grams=0 if raw.grams is None else len(raw.grams),
        apart=raw.apart,
    )


def _view_facts(
    columns: Mapping[str, Column], views: Mapping[str, Path], id: str | None, label: Column
) -> dict[str, tuple[ViewFacts, str]]:
    """Return the tables of views, each with the column of the data that it is joined by."""
    found: dict[str, tuple[ViewFacts, str]] = {}
    for name, path in views.items():
        own, format = inspected(path, known=(id,))
        if not own:
            expected = "a table with a column that names its rows"
            hint = "Add it to the sweep file: [[datasets.views]] joins arrays by their ids, too"
            raise DataError(f"--view {name}", f"arrays in {path}", expected, hint)
        try:
            id, key = joining(columns, own, id, f"--view {name} ({path})")
        except DataError:
            ids = [one for one in columns.values() if id in (None, one.name)]
            if not any(2 * len(one.counts.keys() & own.keys()) > len(own) for one in ids):
                raise
            own, format = inspected(path, transpose=True)  # its header names the rows
            id, key = joining(columns, own, id, f"--view {name} ({path})")
        by_id = dict(zip(columns[id].values, label.values, strict=True))
        labels = Column(label.name, tuple(by_id.get(value, "") for value in own[key].values))
        look = TableProfile(own, given_id=key, labels=labels)
        if not (look.n_features or look.texts):
            copies = " and ".join(repr(column.name) for column in look.copies)
            why = f": {copies} would say the label" if copies else ""
            expected, hint = "a table with features", f"Leave out --view {name}"
            raise DataError(f"--view {name}", f"no feature in {path}{why}", expected, hint)
        there = {one for i, one in enumerate(own[key].values) if i not in look.blank_rows}
        lacking = sum(value not in there for value in columns[id].values)
        found[name] = ViewFacts(path, look, format, lacking), id
    return found


def _label(columns: Mapping[str, Column], data: Path, format: TableFormat) -> str:
    """Return the label column by its name, or ask for it; raise a DataError if nobody is there."""
    likely = likely_label(columns)
    if likely is not None:
        return likely
    possible = possible_labels(columns)
    few = [name for name in possible if len(columns[name].counts) <= MOST_CLASSES]
    if not sys.stdin.isatty():
        raise DataError(
            str(data),
            "no header, so that columns are called f0, f1, … (unless you give --header)"
            if format.header is False
            else f"no column that is called {LABEL_WORDS}",
            "the name of the label column",
            _advice(few, possible or list(columns)),
        )
    possible = possible or list(columns)
    shown_names = few or possible
    for name in shown_names:
        values = columns[name].counts
        shown = ", ".join(list(values)[:5])
        click.echo(f"  {name}: {len(values)} values ({shown}{', …' if len(values) > 5 else ''})")
    if len(shown_names) < len(possible):
        click.echo("  all others hold more values, such as real values for regression")
    choice = click.Choice(possible)
    return str(click.prompt("Which column holds the labels?", type=choice, show_choices=False))


def _advice(few: Sequence[str], possible: Sequence[str]) -> str:
    """Return the columns that may be the label, in words: first those of few values."""
    if not few:
        listed = truncate([repr(name) for name in possible], SHOWN)
        return f"Give --label, one of {listed}; or, if labels stand in another file, {OTHER_FILE}"
    listed = truncate([repr(name) for name in few], SHOWN)
    others = "; all others hold more values" if len(few) < len(possible) else ""
    return f"Give --label, one of {listed}{others}. If labels stand in another file, {OTHER_FILE}"


def first_sweep(data: Path, file: Path, facts: Facts) -> str:
    """Return the text of the sweep file."""
    return "\n".join(
        [*_head(data, file, facts), *_dataset(data, file, facts), *_views(data, file, facts),
         *_splits(facts), *_bank(facts, data), *_columns(facts), *_methods(facts), ""]
    )  # fmt: skip


def told(text: str) -> list[str]:
    """Return the lines of a sweep file that say what becomes of the data."""
    of_data = text.partition("[[datasets]]")[2].partition("[[banks]]")[0]
    return [line for line in of_data.splitlines() if " # " in line]


def _head(data: Path, file: Path, facts: Facts) -> Iterator[str]:
    yield LINE
    name, command = in_comment(data.name), in_comment(quote(str(file)))
    beside = "".join(f" and {in_comment(view.file.name)}" for view in facts.views.values())
    size = f"{facts.n_features} features"
    if facts.n_grams:
        size = pluralize(facts.n_grams, "Gram matrix", "Gram matrices")
    yield f"# A first sweep on {name}{beside}: {facts.n_rows} rows, {size}."
    yield "#"
    yield f"#     mkldist plan  {command}        print the work"
    yield f"#     mkldist sweep {command}        run it, or the rest of it"
    yield "#"
    yield "# Change what you like: a sweep runs only what it has not run before."
    yield f'\nname = "{sweep_name(data)}"'
    yield f"seed = {SEED}"
    yield _line("tol = 0.01", "relative duality gap at which every method stops")


def _dataset(data: Path, file: Path, facts: Facts) -> Iterator[str]:
    yield f'\n[[datasets]]\nname = "{sweep_name(data)}"'
    yield _file(data, file, "grams" if facts.n_grams else "file")
    yield from _format(facts.format)
    if facts.label is not None:
        yield _line(f"label = {spelled(facts.label, None)}", _values(facts))
    if facts.regression:
        yield _line('task = "regression"', "remove it if the labels are classes")
    if facts.two_classes:
        positive = f"{facts.two_classes[1]!r} is +1: {OF_POSITIVE} are of it"
        yield _line(f"classes = {spelled(facts.two_classes, None)}", positive)
    if facts.look is not None:
        yield from _roles(facts.look)
    yield from _impute(facts)
    if facts.unlabelled:
        yield _line('unlabelled = "drop"', f"leaves out {facts.unlabelled}")
    if facts.rare is not None:
        yield _line('class_weight = "balanced"', f"so that {_rare(facts)} count like the others")
    if facts.n_rows > MANY_ROWS:
        kept = "" if facts.regression else ", classes in proportion"
        part = f"of {facts.n_rows} rows, drawn at random{kept}; remove it later"
        yield _line(f"n_points = {PART_ROWS}", part)


def _file(data: Path, file: Path, key: str = "file") -> str:
    """Return the key of a file of data, from the folder of the sweep file."""
    place = os.path.relpath(data.absolute(), file.absolute().parent)
    _check_utf8(place)
    return f"{key} = {spelled(Path(place).as_posix(), None)}"


def _format(format: TableFormat) -> Iterator[str]:
    """Yield the keys that say how a table is written."""
    for key, value in format.changes.items():
        words = FORMAT_WORDS[key]
        if (key, value) == ("header", True):
            words = "the first line names the columns"
        if key == "missing_values" and any(map(is_limit, value)):
            words += "; to keep limits of detection, write half of them in the table"
        yield _line(f"{key} = {spelled(value, None)}", words)


def _impute(facts: Facts) -> Iterator[str]:
    """Yield the key of missing values."""
    found = {"": facts.look.missing if facts.look else facts.missing}
    found |= {f" of {in_comment(name)}": view.look.missing for name, view in facts.views.items()}
    words = [
        f"{pluralize(rows, 'row')}{of}, {pluralize(columns, 'column')}"
        for of, (rows, columns) in found.items()
        if rows
    ]
    if words:
        said = f"of each training part; {' and '.join(words)} miss values"
        yield _line('impute = "median"', said)


def _views(data: Path, file: Path, facts: Facts) -> Iterator[str]:
    """Yield the tables that are joined, after the data's own columns."""
    if facts.views and facts.look and facts.look.n_features:
        yield "\n[[datasets.views]]"
        yield _line(f'name = "{_main_view(data, facts)}"', f"the columns of {data.name}")
        yield from _missing(len(facts.look.blank_rows), facts)
    for name, view in facts.views.items():
        yield f"\n[[datasets.views]]\nname = {spelled(name, None)}"
        yield _file(view.file, file)
        yield from _format(view.format)
        yield from _roles(view.look, "joins the tables")
        yield from _missing(view.n_lacking, facts)


def _missing(n_rows: int, facts: Facts) -> Iterator[str]:
    """Yield the key of a view that has no values of some rows."""
    if n_rows:
        lacking = f"it has no values of {n_rows} of {facts.n_rows} rows: kernels are 0 there"
        yield _line('missing = "zero"', lacking)


def _main_view(data: Path, facts: Facts) -> str:
    """Return the name of the view of the data's own columns."""
    name = sweep_name(data)
    return f"{name}_own" if name in (*facts.views, *WORDS_FOR_FEATURES) else name


def _rare(facts: Facts) -> str:
    """Return the rows of the rarest class in words."""
    rare = facts.rare or ""
    return f"the {facts.classes[rare]} rows of {rare!r}, of {sum(facts.classes.values())},"


def _check_utf8(place: str) -> None:
    """Refuse a path that a sweep file, which is UTF-8, cannot hold."""
    try:
        place.encode()
    except UnicodeEncodeError:
        raise DataError(
            in_comment(place),
            "a name that is not UTF-8",
            "one that a sweep file, a text in UTF-8, can hold",
            "Rename the file or its folder, or link to it by another name (ln -s)",
        ) from None


def _values(facts: Facts) -> str:
    """Return the values of the label column in words."""
    if facts.look is None or facts.regression:
        return ""
    counts = facts.look.columns[facts.look.label].counts
    words = [f"{count} {value}" for value, count in counts.most_common(4)]
    return ", ".join([*words, "…"] if len(counts) > len(words) else words)


def _roles(look: TableProfile, joins: str = "") -> Iterator[str]:
    """Yield the keys of columns that are no plain features, and notes on what looks odd."""
    if look.id is not None:
        named = "the rows" if look.row_names else "the rows of predictions"
        said = joins or f"names {named}, so it is no feature"
        yield _line(f"id = {spelled(look.id, None)}", said)
    ignored, groups = list(look.ignored), look.groups
    of_view = not look.label  # whose rows the data divide
    if groups and groups.name != look.id and (of_view or _hinders_groups(look, groups)):
        ignored.append(groups)
    if ignored:
        copies = {column.name for column in look.copies}
        reasons = {
            SAYS_LABEL if column.name in copies else _reason(column): None for column in ignored
        }
        names = [column.name for column in ignored]
        yield _line(f"ignore = {spelled(names, None)}", ", ".join(reasons))
    texts = [column.name for column in look.ignored if column.holds_texts]
    if texts:
        yield _line(
            f"# texts = {spelled(texts, None)}",
            'instead of ignore, for kernels with function = "spectrum"',
        )
    if look.texts:
        names = [column.name for column in look.texts]
        yield _line(f"texts = {spelled(names, None)}", "sequences, for kernels of substrings")
    if look.categorical:
        names = [column.name for column in look.categorical]
        coded = [column.name for column in look.categorical if column.holds_codes]
        said = f"; {', '.join(coded)}: {CODES}" if coded else ""
        yield _line(f"categorical = {spelled(names, None)}", f"a feature for each value{said}")


def _reason(column: Column) -> str:
    if column.holds_dates:
        return "dates"
    if column.holds_codes:
        return CODES
    if column.units:
        return f"numbers in {' and in '.join(repr(unit or 'no unit') for unit in column.units)}"
    if column.names_parts:
        return "parts of splits"
    if column.hardly_known:
        return HARDLY_KNOWN if column.counts else NO_VALUE
    if column.holds_texts:
        return "texts"
    if column.name == UNNAMED:
        return "a column without a name"
    if column.names_subjects:
        return "whose the rows are"
    return "another name of the rows" if column.names_rows else "texts that differ in most rows"


def _splits(facts: Facts) -> Iterator[str]:
    if facts.regression or not facts.n_grams:
        yield "\n[preprocessing]"
    if not facts.n_grams:
        yield _line('scale = "zscore"', "fitted on each training part")
    if facts.regression:
        yield _line('target = "zscore"', "so that C does not depend on the units of the labels")
    yield "\n[splits]"
    groups = facts.look.groups if facts.look else None
    if facts.apart:
        yield _line('kind = "predefined"', "test points are given apart")
    elif groups and not facts.hindered and _of_groups(groups).kind == LEFT_OUT:
        yield _line(f'kind = "{LEFT_OUT}"', 'each is tested once; "holdout" draws some at random')
    else:
        yield _line('kind = "holdout"', 'or "kfold" with folds = 5')
        yield f"train_fraction = {TRAIN_FRACTION}\nrepeats = {REPEATS}"
    if facts.look is not None:
        yield from _dependence(facts.look, facts.hindered)
    yield "\n[selection]"
    if facts.rare is not None:
        yield _line('metric = "balanced_error"', "mean of the error of each class")
    if facts.is_divisible:
        yield _line(f"folds = {FOLDS}", "choose C on each training part alone; 0: on test parts")
    else:
        yield _line("folds = 0", "too few rows of a class, or groups, for inner folds to choose C")


def _dependence(look: TableProfile, hinders: str) -> Iterator[str]:
    """Yield the key of rows that belong together, as a comment if something `hinders`; and notes.

    The notes are on places, parts and dates.
    """
    column = look.groups
    if column is not None:
        line = f"groups = {spelled(column.name, None)}"
        words = f"{len(column.counts)} values in {look.n_rows} rows: rows of one stay in one part"
        yield _line(f"# {line}" if hinders else line, f"{words}{hinders}")
    for place in look.places:
        line = f"# groups = {spelled(place.name, None)}"
        yield _line(line, f"instead, to test on rows of other values: {len(place.counts)} of them")
    if look.places:
        yield "# To test each of groups once, instead of kind, train_fraction and repeats:"
        yield f'# kind = "{LEFT_OUT}"'
    for parts in (other for other in look.others if other.names_parts):
        yield "# To take the parts of the table, instead of these lines and of ignore:"
        yield f'# kind = "predefined"\n# column = {spelled(parts.name, None)}'
    dates = [other.name for other in look.others if other.orders_rows]
    if dates and column is None:
        yield "# To test later rows by earlier ones, instead of these lines:"
        yield f'# kind = "time"\n# order = {spelled(dates[0], None)}'


def _of_groups(column: Column) -> SplitsSpec:
    """Return the splits that keep groups together: each is left out where they are few."""
    if 2 < len(column.counts) <= MOST_LEFT_OUT:
        return SplitsSpec(kind=LEFT_OUT, groups=column.name)
    return SplitsSpec(train_fraction=TRAIN_FRACTION, repeats=REPEATS, groups=column.name)


def _hinders_groups(look: TableProfile, column: Column, folds: int = 0) -> str:
    """Return why a sweep cannot keep the rows of a group together, in words; empty if it can.

    It needs rows of each class in both parts of each split, and in inner folds if there are some.
    """
    if column.n_missing:
        return f", once each row has one ({column.n_missing} have none)"
    label, groups = look.columns[look.label], group_numbers(np.array(column.values), "groups")
    y, classes = np.zeros(len(groups)), None
    if not label.is_regression:
        names = sorted(label.counts)
        if len(names) < 2:
            return ""
        classes, known = tuple(names), np.array([value in label.counts for value in label.values])
        groups = groups[known]
        y = np.array([names.index(v) for v in label.values if v in label.counts], dtype=np.float64)
        y = np.where(y > 0, 1.0, -1.0) if len(names) == 2 else y
    dataset = Dataset("groups", None, y, classes, row_groups=groups)
    try:
        for split in make_splits(_of_groups(column), dataset, SEED):
            if folds:
                n_inner_folds(dataset, split.train, SelectionSpec(folds=folds), "folds", SEED)
    except DataError:
        return ", once each class is in more of them"
    return ""


def _bank(facts: Facts, data: Path) -> Iterator[str]:
    if not (facts.n_features or facts.texts):
        yield '\n[[banks]]\nfamily = "precomputed"'
        return
    if not (facts.views or facts.texts):
        yield "\n# All features together; 'mkldist show default' writes the kernels out."
        yield '[[banks]]\nfamily = "default"'
        return
    yield '\n[[banks]]\nname = "kernels"'
    if facts.texts:
        yield _line('normalisation = "cosine"', "otherwise long texts have large values")
    views = [name for name, view in facts.views.items() if view.is_numeric]
    if facts.look and facts.look.n_features:
        views.insert(0, _main_view(data, facts) if facts.views else "all")
    if views:
        yield '[[banks.kernels]]\nfunction = "gaussian"\nrelative_widths = [0.5, 1.0, 2.0, 4.0]'
        said = "kernels of each table" if facts.views else ""
        yield _line(f"features = {spelled(views, None)}", said)
    if facts.texts:
        yield '[[banks.kernels]]\nfunction = "spectrum"'
        yield _line("length = [2, 3, 4, 5]", "of the substrings that two texts share")
        yield f"features = {spelled(facts.texts, None)}"


def _columns(facts: Facts) -> Iterator[str]:
    """Yield a bank of a kernel for each of many columns, for a signal that few of them carry.

    It is apart because a sparse method on all kernels together takes single columns alone, also
    where each says little.  Between the two banks inner folds choose.
    """
    if facts.n_features < MANY_COLUMNS:
        return
    if not facts.has_columns_apart:
        of_many = f"in few of {facts.n_features} columns"
        yield f"\n# A signal {of_many} needs kernels of single ones, left out here:"
        yield f"# init writes them for up to {MOST_COLUMNS} columns, for fewer of many rows."
        yield '# Add a [[banks]] with function = "linear" on features = [columns that you name].'
        return
    yield "\n# Single columns, for a signal in few of them; 'fit' takes the bank that does better."
    yield '[[banks]]\nname = "columns"'
    if facts.n_rows >= ROWS_OF_FACTORS:
        yield _line('backend = "factors"', "keeps the columns, not their Gram matrices: faster")
        yield _line("rank = 1", "a column for each kernel; remove this line for other functions")
    yield '[[banks.kernels]]\nfunction = "linear"\nfeatures = "each"'


def _methods(facts: Facts) -> Iterator[str]:
    first = f'banks = ["{"kernels" if facts.views or facts.texts else "default"}"]'
    own = (first,) if facts.has_columns_apart else ()
    if facts.regression:
        yield _method("spicymkl", 'loss = "squared"', 'C = "path"')
        yield _method("primalmkl", 'loss = "squared"', 'C = "path"', *own)
        return
    series = 'C = "path"'
    yield _method("level", _line(series, "several values, each from the solution at the last"))
    yield _method("uniform", series, *own)
    yield _method("best_single", series, *own)
    yield _method("majority", *own)


def _method(name: str, *lines: str) -> str:
    return "\n".join(["\n[[methods]]", f'name = "{name}"', *lines])


def _line(line: str, comment: str) -> str:
    return f"{line:{COLUMN - 1}} # {in_comment(comment)}" if comment else line


def in_comment(text: str) -> str:
    r"""Return text as a comment of a TOML file may hold it: on one line, control characters named.

    >>> in_comment("d [x]\n e.csv")
    'd [x]\\n e.csv'
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
