"""Columns of texts of a data set, the points of kernels such as the spectrum kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Array, Bools, Ints
from mkldist.core.wording import FROM_ONE, FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.errors import DataError
from mkldist.spec.datasets import ViewSpec
from mkldist.spec.kinds import MissingView

SHOWN = 5


@dataclass(frozen=True)
class TextView:
    """A named block of columns of texts.

    Parameters
    ----------
    columns : tuple of int
        The columns.
    missing : {"zero", "impute"} or None
        What holds for points without a text: only ``"zero"`` allows for them.
    """

    columns: tuple[int, ...]
    missing: MissingView | None = None


@dataclass(frozen=True, eq=False)
class TextColumns:
    """Texts of n points.

    Parameters
    ----------
    names : tuple of str
        Names of the t columns.
    values : (n, t) array of str objects
        The texts; empty where a point has none.
    views : dict of str to TextView
        Views that these columns belong to.
    """

    names: tuple[str, ...]
    values: npt.NDArray[Any]
    views: dict[str, TextView] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]]) -> TextColumns | None:
        """Return texts by the names of their columns; None without columns.

        Examples
        --------
        >>> TextColumns.of({"dna": ["acg", "", "t"]}).absent.ravel().tolist()
        [False, True, False]
        """
        if not columns:
            return None
        return cls(tuple(columns), side_by_side(columns))

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The columns of each view."""
        return {name: view.columns for name, view in self.views.items()}

    @property
    def may_lack(self) -> frozenset[int]:
        """Columns that points may have no text in, since a view says what then holds."""
        views = self.views.values()
        return frozenset(c for view in views if view.missing == "zero" for c in view.columns)

    @cached_property
    def absent(self) -> Bools:
        """Where points have no text, (n, t)."""
        return np.asarray(self.values == "", dtype=bool)

    @property
    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The texts as plain arrays: all bytes in UTF-8, row by row, and where each text ends."""
        return as_arrays(self.values)

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        arrays: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]],
        views: dict[str, TextView],
    ) -> TextColumns:
        """Return the texts of which :attr:`arrays` gave the arrays."""
        return cls(tuple(names), from_arrays(*arrays), views)

    def of_rows(self, rows: Ints) -> TextColumns:
        """Return the texts of some of the points."""
        return replace(self, values=self.values[rows])

    def check(
        self,
        ids: npt.NDArray[np.str_] | None,
        where: str,
        row_labels: RowLabels = FROM_ZERO,
    ) -> None:
        """Refuse columns that points have no text of, unless a view says what then holds.

        Parameters
        ----------
        ids : (n,) array of str, or None
            Names of the points.
        where : str
            The place to name in a message.
        row_labels : RowLabels
            How a message names points without ids.

        Raises
        ------
        DataError
            Naming the first such column and some of the points.
        """
        allowed = self.may_lack
        for column, name in enumerate(self.names):
            rows = np.flatnonzero(self.absent[:, column]).tolist()
            if not rows or (column in allowed and len(rows) < len(self.values)):
                continue
            if len(rows) == len(self.values):
                raise DataError(
                    f"{where}: texts", f"no text at all in column {name!r}", "texts", "Ignore it"
                )
            points = row_labels.names(rows, ids)
            raise DataError(
                f"{where}: texts",
                f"no text in column {name!r} for {len(rows)} of {len(self.values)} points "
                f"({truncate(points, SHOWN)})",
                "a text for each point, or a view that says what holds without",
                f'Set missing = "zero" for the view of this column, in [[datasets.views]] with '
                f'columns = ["{name}"] or a file of its own; kernels are zero at these points',
            )

    def lines(self) -> Iterator[str]:
        """Yield each column in words: the lengths of its texts, and how many points lack one."""
        for column, name in enumerate(self.names):
            lengths = [len(text) for text in self.values[:, column] if text]
            least, most = min(lengths), max(lengths)
            line = f"{name!r}, of {'' if least == most else f'{least} to '}"
            line += pluralize(most, "letter")
            lacking = int(self.absent[:, column].sum())
            if lacking:
                have = f"{lacking} of {pluralize(len(self.values), 'point')} "
                have += "has none" if lacking == 1 else "have none"
                line += f"; {have}: its kernels are zero there"
            yield line


def side_by_side(columns: Mapping[str, Sequence[str]]) -> Array:
    """Return at least one column of n texts as an array (n, t) of str objects."""
    values = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for place, texts in enumerate(columns.values()):
        values[:, place] = list(map(str, texts))
    return values


def as_arrays(texts: Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return texts, (n, t), as all of their bytes in UTF-8, row by row, and where each text ends.

    Examples
    --------
    >>> content, ends = as_arrays(np.array([["ab", "c"]], dtype=object))
    >>> content.tobytes(), ends.tolist()
    (b'abc', [[2, 3]])
    """
    encoded = [text.encode() for text in texts.ravel().tolist()]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends.reshape(texts.shape)


def from_arrays(content: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> Array:
    """Return the texts of :func:`as_arrays`, an array of str objects."""
    joined, stops = content.tobytes(), ends.ravel().tolist()
    values = np.empty(len(stops), dtype=object)
    starts = [0, *stops[:-1]]
    values[:] = [joined[a:b].decode() for a, b in zip(starts, stops, strict=True)]
    return values.reshape(ends.shape)


@dataclass(eq=False)
class JoinedTexts:
    """Texts of a data set's own file, to which those of views are joined.

    Parameters
    ----------
    own : TextColumns or None
        The texts of the file.
    """

    own: TextColumns | None
    views: dict[str, TextView] = field(default_factory=dict)
    _blocks: list[TextColumns] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._blocks = [] if self.own is None else [self.own]

    def add_own(self, view: ViewSpec) -> ViewSpec:
        """Take a view's columns of texts of the data set's file; return it with the others."""
        known = {} if self.own is None else {n: c for c, n in enumerate(self.own.names)}
        named = view.columns or ()
        columns = tuple(known[name] for name in named if isinstance(name, str) and name in known)
        if not columns:
            return view
        self.views[view.name] = TextView(columns, view.missing)
        return view.model_copy(update={"columns": tuple(n for n in named if n not in known)})

    def add(self, view: ViewSpec, texts: TextColumns | None, rows: Ints) -> None:
        """Join the texts of a view's file.

        Parameters
        ----------
        view : ViewSpec
            The view.
        texts : TextColumns or None
            The texts of its rows.
        rows : (n,) intp
            The row of each point; negative for points that the file lacks.
        """
        if texts is None:
            return
        values = np.full((len(rows), len(texts.names)), "", dtype=object)
        values[rows >= 0] = texts.values[rows[rows >= 0]]
        first = sum(len(block.names) for block in self._blocks)
        columns = tuple(range(first, first + len(texts.names)))
        self._blocks.append(TextColumns(tuple(f"{view.name}.{n}" for n in texts.names), values))
        self.views[view.name] = TextView(columns, view.missing)

    def joined(self) -> TextColumns | None:
        """Return all texts; None if there are none."""
        if not self._blocks:
            return None
        names = tuple(name for block in self._blocks for name in block.names)
        return TextColumns(names, np.hstack([b.values for b in self._blocks]), self.views)


def check_characters(columns: Mapping[str, Sequence[str]], where: str, kind: str) -> None:
    """Refuse texts of a file with half of a pair of surrogates, which UTF-8 cannot hold.

    Parameters
    ----------
    columns : mapping of str to sequence of str
        Texts by the names of their columns.
    where : str
        The place to name in a message.
    kind : str
        The noun for one of these columns, such as ``"array"``.

    Raises
    ------
    DataError
        Naming the first such text.
    """
    for name, texts in columns.items():
        for row, text in enumerate(texts):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                character = text[error.start : error.start + 1]
                raise DataError(
                    f"{where}, {kind} {name!r}, {FROM_ONE.of(row)}",
                    f"the character {character!r}, half of a pair of surrogates",
                    "text that UTF-8 can encode",
                    "Remove the character, or decode the text again from its file",
                ) from error


def fingerprint_parts(texts: TextColumns | None) -> tuple[npt.NDArray[Any], ...]:
    """Return the arrays that tell texts from others; none without texts."""
    return () if texts is None else (np.array(texts.names), *texts.arrays)
