"""New rows for a model: their columns matched by name, and their features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array, Bools, Floats, Ints
from mkldist.counted import counted
from mkldist.data.categories import as_categories
from mkldist.data.columns import LABEL_NAMES
from mkldist.data.frames import frame_features, frame_texts
from mkldist.data.listing import first_of
from mkldist.data.raw import as_features
from mkldist.data.source_columns import SourceColumns
from mkldist.errors import DataError, nearest
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.models.text_columns import texts_of
from mkldist.row_places import FROM_ZERO, RowPlaces

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 8


@dataclass(eq=False)
class NewRows:
    """A table of new rows whose columns are those of a model.

    Parameters
    ----------
    columns : SourceColumns
        Columns that the model was fitted on.
    names : tuple of str
        Columns of the table, in any order.
    where : str
        The place to name in a message.
    place : str
        What precedes the names of its columns in options, such as ``expression.`` of a view.
    unseen : Counter of (str, str)
        Rows met so far whose category the model does not know, by column and category.
    """

    columns: SourceColumns
    names: tuple[str, ...]
    where: str
    place: str = ""
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(
        cls,
        columns: SourceColumns,
        names: Sequence[str],
        where: str,
        ignored: Collection[str] = (),
        place: str = "",
    ) -> NewRows:
        """Match the columns of a table.

        The label column and others that were no features may be there or not, and so may features
        that do not vary in the data of the model.

        Raises
        ------
        mkldist.errors.DataError
            For columns that are missing, and for others that the model does not know unless they
            are among the `ignored`.
        """
        there = set(names)
        unknown = [name for name in ignored if name not in there]
        if unknown:
            hint = nearest(unknown[0], names)
            raise DataError(where, f"no column {unknown[0]!r} to ignore", "its columns", hint)
        missing = [name for name in columns.required if name not in there]
        known = {*columns.names, *columns.texts, *columns.others, columns.label, *ignored}
        extra = [name for name in names if name not in known and not _is_label(columns, name)]
        if missing or extra:
            raise _other_columns(columns, missing, extra, where, place)
        return cls(columns, tuple(names), where, place)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers that the table has, in the order of the model."""
        there = set(self.names)
        return tuple(name for name in self.columns.numbers if name in there)

    @property
    def id(self) -> str:
        """Column that names the rows; empty if the model knows none or the table has none."""
        return self.columns.id if self.columns.id in self.names else ""

    def features(self, numbers: Floats, texts: Mapping[str, Sequence[str]]) -> Floats:
        """Return the features of some rows, (r, d), missing values as NaN.

        A row of an unknown category has 0 in all features of the column, and is counted.

        Parameters
        ----------
        numbers : (r, m) float64
            The columns :attr:`numbers`.
        texts : mapping of str to sequence of str
            r texts of each column of categories.
        """
        x = np.zeros((len(numbers), self.columns.n_features))
        place = {name: position for position, name in enumerate(self.columns.numbers)}
        x[:, [place[name] for name in self.numbers]] = numbers
        first = len(place)
        for name, categories in self.columns.categories.items():
            self._encode(name, categories, texts[name], x[:, first : first + len(categories)])
            first += len(categories)
        kept = self.columns.kept
        return x if kept is None else np.ascontiguousarray(x[:, np.array(kept, dtype=np.intp)])

    def _encode(
        self, column: str, categories: Sequence[str], texts: Sequence[str], out: Floats
    ) -> None:
        """Write the indicators of a column of categories to `out`, (r, k)."""
        place = {category: position for position, category in enumerate(categories)}
        known = as_categories(texts)
        places: Ints = np.array([place.get(text, -1) for text in known], dtype=np.intp)
        seen = np.flatnonzero(places >= 0)
        out[seen, places[seen]] = 1.0
        if len(seen) < len(known):
            self.unseen.update((column, text) for text in known if text not in place)


def frame_rows(columns: SourceColumns, frame: pd.DataFrame, where: str) -> tuple[NewRows, Floats]:
    """Return the rows of a frame and their features, (t, d).

    Raises
    ------
    mkldist.errors.DataError
        For other columns, for two of one name, and for text where numbers should be.
    """
    names = tuple(map(str, frame.columns))
    _refuse_repeated(columns, names, where)
    rows = NewRows.of(columns, names, where)
    return rows, frame_block(rows, _named(frame))


def _refuse_repeated(columns: SourceColumns, names: Sequence[str], where: str) -> None:
    """Refuse a frame that has a column of the model twice."""
    needed, counts = {*columns.names, *columns.texts, columns.id}, Counter(names)
    twice = [name for name in counts if counts[name] > 1 and name in needed]
    if twice:
        raise DataError(
            where,
            f"{counts[twice[0]]} columns {twice[0]!r}",
            "each column of the model once",
            "Rename or drop the others",
        )


def frame_block(rows: NewRows, frame: pd.DataFrame, row_places: RowPlaces = FROM_ZERO) -> Floats:
    """Return the features of some rows as a frame has them, whose columns are named by text."""
    numbers = np.empty((len(frame), 0))
    if rows.numbers:
        numbers = frame_features(frame[list(rows.numbers)], rows.where, AS_NUMBERS, row_places)
    named = rows.columns.categories
    texts = {name: frame_texts(frame[name], rows.where, row_places) for name in named}
    return rows.features(numbers, texts)


def frame_columns_of_texts(
    columns: SourceColumns, frame: pd.DataFrame, where: str, row_places: RowPlaces = FROM_ZERO
) -> Array | None:
    """Return the texts of a frame that a model needs, (t, c); None if it needs none."""
    named = _named(frame)
    texts = {name: frame_texts(named[name], where, row_places) for name in columns.texts}
    return texts_of(columns.texts, texts)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_axis(list(map(str, frame.columns)), axis=1)


AS_NUMBERS = "The model takes numbers there: write numbers, and leave missing values empty"


def array_rows(
    columns: SourceColumns, given: Any, where: str, *, texts_beside: bool = False
) -> Floats:
    """Return the features (t, d) of an array-like whose columns stand in the order of the model.

    Parameters
    ----------
    columns : SourceColumns
        Columns of the model.
    given : array-like or sparse array
        The features.
    where : str
        The place to name in a message.
    texts_beside : bool
        True if texts stand in arrays of their own.

    Raises
    ------
    mkldist.errors.DataError
        For another number of columns, and where the model has columns of categories or of texts.
    """
    of_words = {"categories": columns.categories, "texts": () if texts_beside else columns.texts}
    for kind, named in of_words.items():
        if named:
            names = first_of([repr(name) for name in named], SHOWN)
            expected = f"a DataFrame, for columns of {kind} ({names})"
            raise DataError(where, "an array", expected, "Name columns")
    x = given if is_sparse(given) else as_features(np.asarray(given), where, columns.numbers)
    if x.shape[1] != len(columns.numbers):
        names = first_of(columns.numbers, SHOWN)
        raise DataError(
            where,
            counted(x.shape[1], "column"),
            f"{len(columns.numbers)}, as the model has: {names}",
        )
    if columns.kept is None:
        return x
    kept = x[:, list(columns.kept)]
    return kept if is_sparse(kept) else np.ascontiguousarray(kept)


def check_rows(
    x: Floats,
    feature_names: Sequence[str],
    where: str,
    *,
    filled: bool,
    row_places: RowPlaces = FROM_ZERO,
    absent: Bools | None = None,
) -> None:
    """Refuse infinite values, and missing ones that the model does not fill.

    Parameters
    ----------
    x : (r, d) float64
        Features of some rows.
    feature_names : sequence of str
        d names.
    where : str
        The place to name in a message.
    filled : bool
        True if the model fills missing values.
    row_places : RowPlaces
        How a message names a row.
    absent : (r, d) bool, optional
        Features of views that rows lack, which are not filled.

    Raises
    ------
    mkldist.errors.DataError
        Naming the first such value.
    """
    bad = np.isinf(x) if filled else ~np.isfinite(x)
    if absent is not None:
        bad &= ~absent
    if not bad.any():
        return
    row, column = (int(place) for place in np.argwhere(bad)[0])
    infinite = bool(np.isinf(x[row, column]))
    hint = "Correct it" if infinite else "Fill it, or fit a sweep whose data set sets impute"
    raise DataError(
        f"{where}, {row_places.of(row)}, column {feature_names[column]!r}",
        "an infinite value" if infinite else "no value",
        "a finite number" if infinite else "a number: the model fills no missing values",
        hint,
    )


def unseen_lines(unseen: Counter[tuple[str, str]]) -> list[str]:
    """Return a line for each column with categories that a model does not know.

    Examples
    --------
    >>> unseen_lines(Counter({("size", "XL"): 2}))
    ["column 'size': 2 rows of unknown categories ('XL' in 2), taken as none of the known ones"]
    """
    lines = []
    for column in dict.fromkeys(name for name, _ in unseen):
        of_column = {text: count for (name, text), count in unseen.items() if name == column}
        said = first_of([f"{text!r} in {count}" for text, count in of_column.items()], SHOWN)
        total = sum(of_column.values())
        rows = f"{counted(total, 'row')} of unknown categories"
        lines.append(f"column {column!r}: {rows} ({said}), taken as none of the known ones")
    return lines


def _is_label(columns: SourceColumns, name: str) -> bool:
    """Return True for a column that looks like a label, where that of the model has no name."""
    return not columns.label and name.casefold() in LABEL_NAMES


def _other_columns(
    columns: SourceColumns,
    missing: Sequence[str],
    extra: Sequence[str],
    where: str,
    place: str,
) -> DataError:
    """Return the error of a table whose columns differ."""
    found = []
    if missing:
        found.append(f"no column {first_of([repr(name) for name in missing], SHOWN)}")
    if extra:
        listed = first_of([repr(name) for name in extra], SHOWN)
        found.append(f"column{'s' * (len(extra) > 1)} {listed}, unknown to the model")
    hints = _remedies(missing, extra, place)
    required = counted(len(columns.required), "column")
    return DataError(
        where,
        "; ".join(found),
        f"the {required} that the model was fitted on, in any order",
        ". ".join(hints),
    )


def _remedies(missing: Sequence[str], extra: Sequence[str], place: str) -> Iterator[str]:
    """Yield what to do about columns that are missing and others that the model does not know."""
    by_letters = {_letters(name): name for name in extra}
    pairs = [(by_letters[_letters(name)], name) for name in missing if _letters(name) in by_letters]
    if pairs:
        yield f"Rename {first_of([f'{one!r} to {other!r}' for one, other in pairs], SHOWN)}"
    named = {name for pair in pairs for name in pair}
    missing = [name for name in missing if name not in named]
    extra = [name for name in extra if name not in named]
    hint = next((hint for name in missing if (hint := nearest(name, extra))), "")
    if hint:
        yield hint
    elif extra:
        if missing:
            yield f"Rename the column that holds {missing[0]!r}, if there is one"
        options = " ".join(f"--ignore {quote(place + name)}" for name in extra[:SHOWN])
        yield f"Leave out what is no feature: {options}"


def _letters(name: str) -> str:
    """Return the letters and digits of a name, without their case."""
    return "".join(filter(str.isalnum, name.casefold()))
