"""Tables of named columns: the role of each column, and features, labels and texts of frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.wording import FROM_ONE, FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.data.cells import Cells, apart_notes, likely_keys
from mkldist.data.checks import (
    DECIMALS,
    MISSING_VALUES,
    check_fits,
    decimal_comma,
    is_date_text,
    rows_at_once,
)
from mkldist.data.dataset import ImportSummary, RawData, SourceColumns, TextColumns
from mkldist.data.labels import MINUS
from mkldist.data.opening import REWRITE
from mkldist.errors import DataError, nearest
from mkldist.spec.datasets import DatasetSpec, SplitsSpec, TableFormat, ViewSpec
from mkldist.spec.kinds import Indefinite, spelled

if TYPE_CHECKING:
    import pandas as pd

QUERIES = "qid"  # groups of rows in files of sparse rows
LABEL_NAMES = frozenset(
    {"label", "labels", "class", "classes", "target", "y", "diagnosis", "outcome", "response"}
)
LABEL_WORDS = "label, class, target, y, diagnosis, outcome or response"
SHOWN = 8
SAMPLES = "samples"
UNNAMED = "Unnamed: 0"  # as pandas calls the column of its index, whose name it writes as blank
BOOLEANS = {"true": 1.0, "false": 0.0}
MISSING = "?"  # the category of missing values
LONGEST_NAME = 10_000  # letters of a category
FEWEST_ROWS = 10  # of a column that is taken for row numbers
MOST_EXACT = 2**53  # float64 holds all whole numbers up to it
PLAIN = TableFormat()
NUMBERS = "a number, or an empty field for a missing value"
SEPARATORS = "Look for a missing or extra separator, or for unquoted text with a separator"
BY_PANDAS = "Encode categories as numbers (pandas.get_dummies) or drop the columns"
DATES = "Turn dates into numbers, such as (dates - dates.min()).dt.days, or leave them out"


@dataclass(frozen=True)
class ColumnChoice:
    """Columns of a table that the sweep file names."""

    label: str | int | None = None
    """Name of the label column, or its position from 0 (negative: from the end); None chooses the
    one that is called label, class, target, y, diagnosis or the like."""
    id: str | None = None  # names the rows
    likely_id: str | None = None  # the same of a table whose source names no other
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    of_splits: tuple[str, ...] = ()  # by which rows are divided
    groups: str | None = None  # the one of them that says which rows belong together
    texts: tuple[str, ...] = ()  # for kernels of texts
    weights: str | None = None  # of rows
    labelled: bool = True  # False for the table of a view, which has no label column
    bare: bool = False  # True if the table may hold no features, since views hold them
    sparse: bool = False  # True to keep the features of a sparse file sparse
    format: TableFormat = PLAIN  # how the table is written
    indefinite: Indefinite | None = None  # what becomes of negative eigenvalues of Gram matrices

    @classmethod
    def of(cls, spec: DatasetSpec, splits: SplitsSpec) -> ColumnChoice:
        """Return the choice of a data set's entry and its splits."""
        bare = any(view.file is not None or view.grams is not None for view in spec.views)
        return cls(
            spec.label,
            spec.id,
            None,
            spec.ignore,
            tuple(name for name in spec.categorical if name not in splits.columns),
            splits.columns,
            splits.groups,
            spec.texts,
            spec.weights,
            bare=bare,
            sparse=spec.sparse,
            format=spec.format,
            indefinite=spec.indefinite,
        )

    @classmethod
    def of_view(cls, view: ViewSpec, id: str | None) -> ColumnChoice:
        """Return the choice of a view's file, and the column `id` that names rows elsewhere."""
        return cls(
            None,
            view.id,
            id,
            view.ignore,
            view.categorical,
            texts=view.texts,
            labelled=False,
            format=view.format,
        )

    @property
    def other_roles(self) -> tuple[str, ...]:
        """Columns that are no features of numbers."""
        single = (name for name in (self.id, self.weights) if name is not None)
        return (*self.ignore, *single, *self.of_splits, *self.categorical, *self.texts)

    def check_label_alone(self, where: str, *, arrays: bool = False) -> None:
        """Refuse the choice of columns other than the label, for sources that are no tables."""
        for key in ("ignore", "categorical", "texts", *(() if arrays else ("id", "weights"))):
            if getattr(self, key):
                found = f"{key}, but no table of columns"
                hint = f"Remove {key}, or give a .csv or .parquet file"
                raise DataError(where, found, f"no {key} for such a source", hint)
        if self.of_splits:
            found = f"column {self.of_splits[0]!r} for [splits], but no table of columns"
            expected = "a .csv or .parquet file"
            raise DataError(where, found, expected, "Give other [splits] for this data set")


def feature_columns(
    names: Sequence[str], choice: ColumnChoice, where: str, beside: Collection[str] = ()
) -> tuple[str | None, tuple[str, ...]]:
    """Return the label column, None of a view, and the columns of numbers of a table.

    Named columns that the table does not have or that have two roles are refused, and a table
    without an obvious label column or without any feature.  Columns `beside` features are none.
    """
    named = [("splits", name) for name in choice.of_splits]
    named += [("ignore", name) for name in choice.ignore]
    named += [("categorical", name) for name in choice.categorical]
    named += [("texts", name) for name in choice.texts]
    single = (("id", choice.id), ("weights", choice.weights))
    named += [(key, name) for key, name in single if name is not None]
    named += [("units", name) for name in choice.format.units]
    seen: dict[str, str] = {}
    for key, name in named:
        if name not in names:
            hint = nearest(name, names) or _columns(names)
            raise DataError(f"{where}: {key}", f"no column {name!r}", "names of columns", hint)
        if key in ("splits", "units"):  # such a column may have another role too
            continue
        if name in seen:
            found = f"column {name!r} in {seen[name]} and in {key}"
            if seen[name] == key:
                found = f"column {name!r} twice in {key}"
            raise DataError(where, found, "one role for each column", "Name it once")
        seen[name] = key
    others, label = choice.other_roles, None
    if choice.labelled:
        candidates = [name for name in beside or names if name not in others]
        label = names[label_position(names, choice.label, where, candidates)]
        if label in others:
            found = f"column {label!r} as the label and in another role"
            raise DataError(where, found, "one role for each column", "Name it once")
    left_out = {*others, *beside, label}
    features = tuple(name for name in names if name not in left_out)
    if not features and not (choice.categorical or choice.texts or choice.bare):
        raise DataError(
            where, "no feature column", "at least one besides the label", "Ignore fewer columns"
        )
    return label, features


def check_names(
    names: Sequence[str], where: str, fewest: int = 2, parts: Collection[str] = ()
) -> None:
    """Refuse a table of fewer columns than a label and a feature, or without a name for each."""
    if len(names) < fewest:
        found, expected = f"{len(names)} column ({', '.join(names)})", "features and a label column"
        hint = "Separate columns by a comma, semicolon or tab, or set separator"
        if parts:
            hint = "Remove rows above the header"
            hint += f", or set part = another of {_quoted([*parts])}" * (len(parts) > 1)
        raise DataError(where, found, expected, hint)
    if not all(names):
        found = f"no name of column {list(names).index('') + 1} of {len(names)}"
        hint = "Leave out row numbers (index=False in pandas), and remove separators at the ends "
        hint += "of lines"
        raise DataError(where, found, "a name for every column", hint)
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        places = ", ".join(str(i + 1) for i, name in enumerate(names) if name == twice)
        expected = "a name of its own for every column"
        found = f"the name {twice!r} of columns {places}"
        raise DataError(where, found, expected, "Rename or remove one of them")


def label_position(
    names: Sequence[str],
    label: str | int | None,
    where: str,
    candidates: Sequence[str] | None = None,
) -> int:
    """Return the position of the label column, refused unless it is clear which that is.

    `label` is a name, or a position from 0 (negative: from the end); None chooses the one of the
    `candidates`, by default all, that is called label, class, target, y, diagnosis or the like.

    >>> label_position(["class", "age"], None, "t.csv")
    0
    """
    if isinstance(label, int):
        if not -len(names) <= label < len(names):
            found = f"label = {label}, but {pluralize(len(names), 'column')}"
            expected = f"a position from {-len(names)} to {len(names) - 1}, or a column's name"
            raise DataError(where, found, expected, _columns(names))
        return label % len(names)
    if label is not None:
        if label not in names:
            hint = nearest(label, names) or _columns(names)
            raise DataError(where, f"no column {label!r}", "the name of the label column", hint)
        return list(names).index(label)
    possible = list(names if candidates is None else candidates)
    likely = [name for name in possible if name.casefold() in LABEL_NAMES]
    if len(likely) != 1:
        found = f"no label, and no column that is called {LABEL_WORDS}"
        if likely:
            found = f"no label, and columns {' and '.join(map(repr, likely))}"
        listed = truncate([*map(repr, likely or possible[-1:] + possible[:-1])], SHOWN)
        expected = "the name of the label column"
        raise DataError(where, found, expected, f"Set label = one of {listed}")
    return list(names).index(likely[0])


def _columns(names: Sequence[str]) -> str:
    return f"Choose one of the columns {truncate(names, SHOWN)}"


@dataclass
class TableProblems:
    """Mistakes in the rows of a table, gathered while it is read, for one message.

    They are rows of another length than the header of `n_fields`, and values of feature columns
    that are no numbers.  `hint` says what to do about texts; by default that is set in a sweep
    file.
    """

    where: str
    n_fields: int = 0
    hint: str = ""
    _ragged: list[tuple[int, int]] = field(default_factory=list)  # lines and their fields
    _wrong: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    """First place and all values of each column that holds some."""

    def ragged(self, line: int, n_fields: int) -> None:
        """Note a row that has another number of fields than the header."""
        self._ragged.append((line, n_fields))

    def no_number(self, column: str, place: str, value: object) -> None:
        """Note a value of a feature column that is no number."""
        self._wrong.setdefault(column, (place, []))[1].append(str(value).strip()[:60])

    def check(self, n_rows: int) -> None:
        """Refuse mistakes, a single one by its place; `n_rows` is the number of other rows."""
        if not self._wrong and not self._ragged:
            return
        n_rows += len(self._ragged)
        hints = self._hints() + [SEPARATORS] * bool(self._ragged)
        if len(self._ragged) + sum(len(values) for _, values in self._wrong.values()) == 1:
            for line, n_fields in self._ragged:
                place, found = f"{self.where}, line {line}", pluralize(n_fields, "field")
                raise DataError(place, found, f"{self.n_fields}, as in the header", SEPARATORS)
            [(name, (place, [value]))] = self._wrong.items()
            found = f"{'a date' if is_date_text(value) else 'text'} {value!r}"
            where = f"{self.where}, {place}, column {name!r}"
            raise DataError(where, found, NUMBERS, ". ".join(hints))
        found_words = [
            f"{'dates' if is_date_text(values[0]) else 'text'} in column {name!r} ({len(values)} "
            f"of {n_rows} rows, such as {values[0]!r} in {place})"
            for name, (place, values) in self._wrong.items()
        ]
        expected = [NUMBERS] if found_words else []
        if self._ragged:
            line, n_fields = self._ragged[0]
            found_words.append(
                f"{pluralize(len(self._ragged), 'row')} of another length than the header, the "
                f"first of {pluralize(n_fields, 'field')} in line {line}"
            )
            expected.append(f"{self.n_fields} fields in every row")
        found = truncate(found_words, SHOWN)
        raise DataError(self.where, found, "; ".join(expected), ". ".join(hints))

    def _hints(self) -> list[str]:
        """Return what to do about columns: mistakes are corrected, or columns get a role."""
        samples = {name: values[0] for name, (_, values) in self._wrong.items()}
        commas = [name for name, value in samples.items() if decimal_comma(value)]
        dated = [name for name, value in samples.items() if is_date_text(value)]
        words = [name for name in samples if name not in (*commas, *dated)]
        if self.hint:
            return [DECIMALS] * bool(commas) + [DATES] * bool(dated) + [self.hint] * bool(words)
        hints = [" or set ".join(filter(None, (DECIMALS, self._keys(commas))))] if commas else []
        if words:
            listed, keys = _quoted(words), self._keys(words)
            if keys:
                these = "these columns" if len(words) > 1 else "this column"
                hints.append(f"Set {keys} to read {these}")
            hints.append(
                f"Correct or empty these fields, or set categorical = [{listed}] to encode these, "
                f"texts = [{listed}] for kernels of texts, or ignore = [{listed}]"
            )
        if dated:
            hints.append(
                f"Set ignore = [{_quoted(dated)}], or turn dates into numbers of days; [splits] of "
                f'kind = "time" with order = "{dated[0]}" tests later rows by earlier ones'
            )
        return hints

    def _keys(self, names: Sequence[str]) -> str:
        """Return the keys of a format that read some columns, as a sweep file has them."""
        found: dict[str, Any] = {}
        for name in names:
            for key, value in likely_keys(name, {*self._wrong[name][1]}, FEWEST_ROWS).items():
                if key == "missing_values":
                    found[key] = [*dict.fromkeys([*found.get(key, []), *value])]
                else:
                    found[key] = found.get(key, {}) | value if key == "units" else value
        return " and ".join(f"{key} = {spelled(value)}" for key, value in found.items())


def _quoted(names: Sequence[str]) -> str:
    return truncate([f'"{name}"' for name in names], SHOWN)


@dataclass(frozen=True, eq=False)
class Table:
    """An open table of named columns: what a format of tables gives, and a frame in Python.

    ``read(columns, rows)`` yields successive rows of some columns, about so many at a time, each as
    a frame with the labels of its rows; what it cannot read it notes in `problems`.  `n_rows` is
    None where the source does not say how many there are.
    """

    names: tuple[str, ...]
    read: Callable[[Sequence[str], int], Iterator[tuple[pd.DataFrame, RowLabels]]]
    problems: TableProblems
    n_rows: int | None = None
    notes: tuple[str, ...] = ()  # how it is written, where that was not asked for
    id: str = ""  # column that names the rows, unless the user names another
    categories: tuple[str, ...] = ()  # columns that the source declares to hold categories
    beside: tuple[str, ...] = ()  # columns that are features only where the user says so
    part: str = ""  # which of several tables in the file this is
    parts: Mapping[str, Callable[[], Table]] = field(default_factory=dict)  # all of them


def chosen_part(table: Table, format: TableFormat) -> Table:
    """Return the part of a file that is wanted, turned if its rows are features."""
    if table.parts:
        if format.part not in (None, *table.parts):
            where, found = table.problems.where, f"no part {format.part!r}"
            expected = f"one of {truncate(list(table.parts), SHOWN)}"
            hint = nearest(str(format.part), table.parts) or "Remove part"
            raise DataError(where, found, expected, hint)
        if format.part not in (None, table.part):
            table = table.parts[str(format.part)]()
        others = truncate([repr(name) for name in table.parts if name != table.part], SHOWN)
        if others:
            note = f"{table.part!r} is read, and by part = … another: {others}"
            table = replace(table, notes=(*table.notes, note))
    return transposed(table) if format.transpose else table


def formatted(table: Table, format: TableFormat) -> Table:
    """Return a table whose cells are read as a format says."""
    cells = Cells(format)

    def read(columns: Sequence[str], rows: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
        for frame, row_labels in table.read(columns, rows):
            yield cells.of(frame), row_labels

    return replace(table, read=read)


def transposed(table: Table) -> Table:
    """Return the table whose columns are the rows of another, named by its first column."""
    import pandas as pd

    where, (first, *samples) = table.problems.where, table.names
    names: list[str] = []
    rows: list[npt.NDArray[Any]] = []
    for frame, row_labels in table.read(table.names, rows_at_once(8 * len(table.names))):
        names += frame_texts(frame[first], where, row_labels)
        values = frame[samples]
        numbers = _floats(values)
        rows += list(values.to_numpy(dtype=object) if numbers is None else numbers)
    table.problems.check(len(rows))
    check_names((SAMPLES, *names), where)
    columns = {SAMPLES: np.array(samples, dtype=object), **dict(zip(names, rows, strict=True))}
    found = frame_table(pd.DataFrame(columns), where, FROM_ONE)
    return replace(found, id=SAMPLES, notes=table.notes, part=table.part, parts=table.parts)


def frame_table(frame: pd.DataFrame, where: str, row_labels: RowLabels = FROM_ZERO) -> Table:
    """Return the table of a frame, whose columns are named by texts."""

    def read(columns: Sequence[str], rows: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
        chosen = frame[list(columns)]
        for start in range(0, len(frame), rows):
            yield chosen.iloc[start : start + rows], row_labels.after(start)

    return Table(tuple(frame.columns), read, TableProblems(where), len(frame))


def table_data(table: Table, choice: ColumnChoice, where: str) -> RawData:
    """Return the raw data of an open table, with a summary of its columns."""
    check_names(table.names, where, parts=table.parts)
    choice = replace(choice, id=choice.id or table.id or choice.likely_id)
    label, features = feature_columns(table.names, choice, where, table.beside)
    declared = tuple(name for name in features if name in table.categories)
    choice = replace(choice, categorical=(*choice.categorical, *declared))
    features = tuple(name for name in features if name not in declared)
    table = formatted(table, choice.format)
    if UNNAMED in features and table.names[0] == UNNAMED:
        raise DataError(
            where,
            "no name of column 1, as pandas and R write the names of rows",
            "a name or a role for every column",
            f'Set id = "{UNNAMED}" if it names the rows, else ignore = ["{UNNAMED}"]; or write the '
            "table without it (index=False in pandas, row.names=FALSE in R)",
        )
    roles = (label, choice.id, choice.weights, *choice.texts, *choice.categorical)
    wanted = {*features, *roles, *choice.of_splits}
    columns = [name for name in table.names if name in wanted]
    numbers = {*features}
    words = [name for name in columns if name not in numbers and name != label]
    texts: dict[str, list[str]] = {name: [] for name in words}
    labels: list[npt.NDArray[Any]] = []
    places: list[RowLabels] = []
    hint = "Ignore some columns, or write fewer rows"
    check_fits(8 * (table.n_rows or 0) * len(features), where, hint)
    x, n_rows = np.empty((table.n_rows or 0, len(features))), 0
    for frame, row_labels in table.read(columns, rows_at_once(8 * len(columns))):
        start, n_rows = n_rows, n_rows + len(frame)
        if n_rows > len(x):
            x.resize((max(n_rows, 2 * len(x)), len(features)), refcheck=False)
        if features:
            x[start:n_rows] = frame_numbers(frame[list(features)], row_labels, table.problems)
        for name, found in texts.items():
            found += frame_texts(frame[name], where, row_labels)
        if label is not None:
            labels.append(_labels(frame[label], where, row_labels))
        places.append(row_labels)
    table.problems.check(n_rows)
    if not n_rows:
        what = "no rows" if table.n_rows is not None else "a header and no rows"
        raise DataError(where, what, "at least one row of each class", REWRITE)
    x.resize((n_rows, len(features)), refcheck=False)
    whole = np.full(n_rows, "")
    if label is not None:
        whole = _as_floats(np.concatenate(labels))
    row_labels = places[0]
    if row_labels.numbers is not None:
        lines = np.concatenate([one.numbers for one in places if one.numbers is not None])
        row_labels = replace(row_labels, numbers=lines)
    raw = _raw_data(x, features, whole, label, texts, choice, where, row_labels, table.names)
    unused = [name for name in table.beside if name not in (label, *choice.other_roles)]
    left_out = (*raw.summary.left_out, *(f"{name!r} (describes the rows)" for name in unused))
    notes = (*table.notes, *raw.summary.notes)
    return replace(raw, summary=replace(raw.summary, left_out=left_out, notes=notes))


def _raw_data(
    x: Floats,
    features: tuple[str, ...],
    labels: npt.NDArray[Any],
    label: str | None,
    texts: Mapping[str, list[str]],
    choice: ColumnChoice,
    where: str,
    row_labels: RowLabels,
    all_names: tuple[str, ...],
) -> RawData:
    """Return raw data of the columns of a table, those of categories as indicators after x."""
    written = choice.format.changes
    if choice.format.header is False or choice.format.names:  # new rows have these columns too
        written["names"] = all_names
    blocks, names, groups, known = [x], list(features), {}, {}
    for name in choice.categorical:
        block, categories = _indicators(name, texts[name], where)
        groups[name] = tuple(range(len(names), len(names) + len(categories)))
        names += [f"{name}={category}" for category in categories]
        blocks.append(block)
        known[name] = tuple(categories)
    uses = {} if choice.id is None else {choice.id: "names the rows"}
    uses |= dict.fromkeys(choice.ignore, "ignored")
    uses |= {} if choice.weights is None else {choice.weights: "weighs the rows"}
    uses |= dict.fromkeys(choice.of_splits, "divides the rows")
    chosen = "by its name"
    if choice.label is not None:
        chosen = f"by label = {choice.label}"
        if isinstance(choice.label, str):
            chosen = f'by label = "{choice.label}"'
    return RawData(
        labels,
        np.column_stack(blocks) if len(blocks) > 1 else x,
        tuple(names),
        groups=groups,
        of_splits={name: _texts(texts[name], where) for name in choice.of_splits},
        weights=None if choice.weights is None else _texts(texts[choice.weights], where),
        summary=ImportSummary(
            label="" if label is None else f"column {label!r}, chosen {chosen}",
            left_out=tuple(f"{name!r} ({use})" for name, use in uses.items()),
            encoded=tuple(
                f"{name!r} as {pluralize(len(own), 'feature')}" for name, own in known.items()
            ),
            notes=tuple(
                f'{name!r} numbers the rows and is taken as a feature; id = "{name}" leaves it out'
                for name, values in zip(features, x.T, strict=True)
                if len(values) >= FEWEST_ROWS
                and float(values[0]).is_integer()
                and (np.diff(values) == 1).all()
            )
            + apart_notes(features, x),
        ),
        label_name=label or "",
        ids=None if choice.id is None else _texts(texts[choice.id], where),
        texts=TextColumns.of({name: texts[name] for name in choice.texts}),
        columns=SourceColumns(
            features,
            known,
            label or "",
            (*uses, *choice.texts),
            choice.id or choice.groups or "",
            format=written,
        ),
        row_labels=row_labels,
        own_memory=True,
    )


def as_categories(texts: Sequence[str]) -> list[str]:
    """Return texts as names of categories: ``?`` for a missing value."""
    return [MISSING if text.casefold() in MISSING_VALUES else text for text in texts]


def _indicators(name: str, texts: Sequence[str], where: str) -> tuple[Floats, list[str]]:
    """Return the indicators of a column of categories, (n, k), and its k categories.

    Categories are in the order of numbers if all are numbers, else in alphabetical order.  A
    missing value is a category of its own, ``?``, the last.
    """
    values = as_categories(texts)
    categories = sorted(set(values))
    longest = max(map(len, categories), default=0)
    if longest > LONGEST_NAME:
        found, hint = f"a text of {longest:,} letters", f'Set texts = ["{name}"], or ignore it'
        expected = f"names of categories, of {LONGEST_NAME:,} letters at most"
        raise DataError(f"{where}, column {name!r}", found, expected, hint)
    if len(categories) == len(texts) > 1:
        raise DataError(
            f"{where}, column {name!r}",
            f"a category of its own in each of {len(texts)} rows",
            "categories that several rows share",
            f'Set id = "{name}" if it names the rows, texts = ["{name}"] for kernels of texts, or '
            f'ignore = ["{name}"]',
        )
    check_fits(8 * len(texts) * len(categories), where, f'Set ignore = ["{name}"]')
    with suppress(ValueError):
        categories.sort(key=lambda one: 0.0 if one == MISSING else float(one))
    categories.sort(key=lambda one: one == MISSING)
    place = {category: position for position, category in enumerate(categories)}
    indicators = np.zeros((len(texts), len(categories)))
    indicators[np.arange(len(texts)), [place[value] for value in values]] = 1.0
    return indicators, categories


def pandas_frame(X: Any) -> Any:
    """Return a frame of polars, or a table of Arrow, as one of pandas; other data as they are."""
    if hasattr(X, "collect_schema") and hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise DataError(type(X).__name__, "a lazy frame", "rows", "Call its collect() first")
    if hasattr(X, "iloc") or not (hasattr(X, "columns") and hasattr(X, "to_pandas")):
        return X
    import pandas as pd

    if not all(isinstance(name, str) for name in X.columns):  # those of Arrow are arrays
        return X.to_pandas()
    # By columns, for polars makes frames of pandas by Arrow alone, which may not be there.
    columns = {name: X[name].to_numpy() for name in X.columns}
    for name in columns:
        if str(X[name].dtype).startswith(("Categorical", "Enum")):
            columns[name] = pd.Categorical(columns[name])
    return pd.DataFrame(columns)


def of_categories(kind: Any) -> bool:
    """Return True for a categorical type of pandas, unless its categories are numbers or bools."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    own = getattr(kind, "categories", None)
    return own is not None and not (is_numeric_dtype(own) or is_bool_dtype(own))


def frame_features(frame: pd.DataFrame, where: str, hint: str = BY_PANDAS) -> Floats:
    """Return the columns of a frame as :func:`frame_numbers` does; refuse other values."""
    problems = TableProblems(where, hint=hint)
    x = frame_numbers(frame, FROM_ZERO, problems)
    problems.check(len(x))
    if not x.shape[1]:
        expected = "at least one feature column"
        raise DataError(where, "a label column alone", expected, "Add a feature column")
    return x


def frame_numbers(frame: pd.DataFrame, row_labels: RowLabels, problems: TableProblems) -> Floats:
    """Return the columns of a frame as (n, d) float64; values that are no numbers are noted.

    Text that holds a number counts as that number, ``true`` and ``false`` as 1 and 0; missing
    values, and the words for them, become NaN.  Digits with underscores are texts, as they are in
    other programs.
    """
    x = _floats(frame)
    if x is not None:
        return x
    half = frame.shape[1] // 2
    if half:
        parts = (frame.iloc[:, :half], frame.iloc[:, half:])
        return np.hstack([frame_numbers(part, row_labels, problems) for part in parts])
    x = np.empty(frame.shape)
    for row, value in enumerate(frame.iloc[:, 0].tolist() if frame.shape[1] else ()):
        number = _number(value)
        if number is None:
            problems.no_number(frame.columns[0], row_labels.of(row), value)
        x[row, 0] = np.nan if number is None else number
    return x


def _floats(values: pd.DataFrame) -> Floats | None:
    """Return a frame as float64 if it holds but numbers, or texts of numbers."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    kinds = set(values.dtypes)
    if all(is_numeric_dtype(kind) or is_bool_dtype(kind) for kind in kinds):
        return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    cells = values.to_numpy(dtype=object)
    try:
        found = cells.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return None if "_" in "".join(map(str, cells.ravel())) else found


def _number(value: Any) -> float | None:
    """Return a cell of a table as a number, NaN where it is missing; None for other texts."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    if isinstance(text, str):
        word = text.strip().casefold()
        if word in MISSING_VALUES:
            return np.nan
        if word in BOOLEANS or "_" in word:
            return BOOLEANS.get(word)
    if np.ndim(text) > 0:  # lists and arrays, as columns of Parquet may hold them
        return None
    try:
        return float(text.replace(MINUS, "-") if isinstance(text, str) else text)
    except (TypeError, ValueError):
        import pandas as pd

        return np.nan if pd.isna(text) else None


def frame_texts(
    column: pd.Series[Any], where: str = "table", row_labels: RowLabels = FROM_ZERO
) -> list[str]:
    """Return values as text, ``""`` where missing; 1.0 counts as 1, and bytes as UTF-8."""
    values = [
        int(value) if isinstance(value, float) and value.is_integer() else value
        for value in decoded(column, where, row_labels)
    ]
    missing: Sequence[bool] = column.isna().tolist()
    return ["" if gone else str(v).strip() for v, gone in zip(values, missing, strict=True)]


def frame_labels(column: pd.Series[Any], where: str = "table") -> npt.NDArray[Any]:
    """Return numbers as float64 with NaN, and other labels as text with ``""``, where missing."""
    return _as_floats(_labels(column, where, FROM_ZERO))


def _as_floats(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return integers as float64 if it holds all of their digits, and other labels unchanged."""
    if labels.dtype.kind not in "iu":
        return labels
    large = len(labels) > 0 and max(-int(labels.min()), int(labels.max())) > MOST_EXACT
    return labels if large else labels.astype(np.float64)


def _labels(column: pd.Series[Any], where: str, row_labels: RowLabels) -> npt.NDArray[Any]:
    """Return the labels of some rows, whole numbers as integers where none is missing."""
    from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

    if is_integer_dtype(column.dtype) and not column.isna().any():
        numbers = column.to_numpy()
        return numbers if numbers.dtype.kind in "iu" else np.array(column.tolist())
    if is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    missing: Sequence[bool] = column.isna().tolist()
    values = decoded(column, where, row_labels)
    pairs = zip(values, missing, strict=True)
    return _texts(["" if gone else str(value).strip() for value, gone in pairs], where)


def _texts(texts: list[str], where: str) -> npt.NDArray[Any]:
    """Return texts as an array, each of which takes as much memory as the longest."""
    check_fits(4 * len(texts) * max(map(len, texts), default=0), where, "Shorten them", "texts")
    return np.array(texts)


def shared_texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column whose rows share the texts of their categories: Arrow would copy them."""
    categories = getattr(column.dtype, "categories", None)
    if categories is None or len(column) == 0:
        return column
    return column.cat.rename_categories(categories.astype(object)).astype(object)


def decoded(column: pd.Series[Any], where: str, row_labels: RowLabels = FROM_ZERO) -> list[Any]:
    """Return the values of a column, bytes as the texts in UTF-8 that they encode."""
    values = shared_texts(column).tolist()
    for row, value in enumerate(values):
        if isinstance(value, bytes):
            try:
                values[row] = value.decode()
            except UnicodeDecodeError as error:
                place = f"{where}, column {column.name!r}, {row_labels.of(row)}"
                found = f"bytes that are not UTF-8 ({value!r:.60})"
                hint = "Convert the column before saving: column.str.decode(its encoding)"
                raise DataError(place, found, "texts", hint) from error
    return values
