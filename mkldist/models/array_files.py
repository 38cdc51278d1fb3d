"""New rows in files of arrays, dense or sparse, with the features of a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.counted import counted
from mkldist.data.archives import NamedArrays
from mkldist.data.listing import first_of
from mkldist.data.npz_files import (
    FEATURE_NAMES,
    names_of_features,
    npz_features,
    npz_sparse,
    npz_texts,
)
from mkldist.data.source_columns import SourceColumns
from mkldist.data.svmlight_files import read_svmlight
from mkldist.errors import DataError
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.models.rows import NewRows, array_rows
from mkldist.row_places import RowPlaces

SHOWN = 5


@dataclass(frozen=True, eq=False)
class NamedFeatures:
    """Where the columns of a model stand in an array whose columns have names.

    Parameters
    ----------
    source : (k,) intp
        Columns of the array.
    target : (k,) intp
        The columns of numbers of the model that they are; the others do not vary.
    n_numbers : int
        Number of columns of numbers of the model.
    """

    source: Ints
    target: Ints
    n_numbers: int

    @classmethod
    def of(
        cls,
        archive: NamedArrays,
        n_features: int,
        columns: SourceColumns,
        where: str,
        ignored: Collection[str] = (),
        place: str = "",
    ) -> NamedFeatures | None:
        """Match the names of an archive's features with the columns of a model.

        Parameters
        ----------
        archive : NamedArrays
            The archive.
        n_features : int
            Number of its features.
        columns : SourceColumns
            The columns of the model.
        where : str
            The file, to name in a message.
        ignored : collection of str
            Features to leave out.
        place : str
            What precedes names of features in options.

        Returns
        -------
        NamedFeatures or None
            None if columns stand for those of the model by their position: the archive has no
            ``feature_names``, or the features of the model have numbers for names.

        Raises
        ------
        mkldist.errors.DataError
            For features that are missing or unknown, and for names that are not distinct.
        """
        if FEATURE_NAMES not in archive:
            return None
        names = names_of_features(archive[FEATURE_NAMES], n_features, where)
        if are_numbered(columns.numbers) and set(columns.numbers).isdisjoint(names):
            return None
        beside = (*columns.categories, *columns.texts)
        NewRows.of(columns, (*names, *beside), where, ignored, place)
        position = {name: number for number, name in enumerate(names)}
        target = [n for n, name in enumerate(columns.numbers) if name in position]
        source = [position[columns.numbers[n]] for n in target]
        return cls(np.array(source, np.intp), np.array(target, np.intp), len(columns.numbers))

    def in_order(self, x: Any) -> Any:
        """Return features (r, d) as the model has them, (r, m), dense or sparse as they are."""
        width = self.n_numbers
        if x.shape[1] == width and np.array_equal(self.source, np.arange(width)):
            return x
        if is_sparse(x):
            return _placed(x[:, self.source], self.target, width)
        ordered = np.zeros((len(x), width))
        ordered[:, self.target] = x[:, self.source]
        return ordered


def _placed(x: Any, target: Ints, width: int) -> Any:
    """Return a sparse array whose columns stand at the places `target` among `width`."""
    from scipy.sparse import csr_array

    parts = (x.data, target[x.indices], x.indptr)
    placed = csr_array(parts, shape=(x.shape[0], width))
    placed.sort_indices()
    return placed


def npz_rows(
    archive: NamedArrays,
    columns: SourceColumns,
    where: str,
    *,
    sparse: bool,
    ignored: Collection[str] = (),
    place: str = "",
) -> Floats:
    """Return the features of an archive: ``x``, or the parts of a sparse matrix.

    Columns are matched by their names if the archive has ``feature_names``, else by position.

    Parameters
    ----------
    archive : NamedArrays
        The archive.
    columns : SourceColumns
        The columns of the model.
    where : str
        The file, to name in a message.
    sparse : bool
        True to keep a sparse matrix sparse.
    ignored : collection of str
        Features to leave out.
    place : str
        What precedes names of features in options.

    Raises
    ------
    mkldist.errors.DataError
        If both are absent or damaged, the number of columns differs, or named features are missing
        or unknown.
    """
    matrix = npz_sparse(archive, where) if sparse else None
    if matrix is None and columns.texts and not columns.numbers and "x" not in archive:
        n_rows = len(archive.required(columns.texts[0], "texts"))
        return np.empty((n_rows, 0))
    x = npz_features(archive, where) if matrix is None else matrix
    named = NamedFeatures.of(archive, x.shape[1], columns, where, ignored, place)
    x = x if named is None else named.in_order(x)
    if matrix is not None:
        return array_rows(columns, x, where)
    return array_rows(columns, x, f"{where}, array 'x'", texts_beside=True)


def npz_text_rows(archive: NamedArrays, columns: SourceColumns, n_rows: int) -> Array | None:
    """Return the texts that a model needs of an archive, (t, c); None if it needs none.

    Raises
    ------
    mkldist.errors.DataError
        If an array is absent, holds no texts, or has another length than the features.
    """
    texts = npz_texts(archive, columns.texts)
    if texts is None:
        return None
    if len(texts.values) != n_rows:
        raise DataError(
            f"{archive.where}, array {columns.texts[0]!r}",
            counted(len(texts.values), "text"),
            f"one for each of {counted(n_rows, 'row')}",
        )
    return texts.values


def svmlight_rows(path: Path, columns: SourceColumns) -> tuple[Any, RowPlaces, str]:
    """Return sparse rows of a ``.svm`` file, and a note on features that the model does not know.

    Parameters
    ----------
    path : Path
        The file.
    columns : SourceColumns
        The columns of the model, named by their numbers: ``f0``, ``f1`` and so on.

    Returns
    -------
    (t, d) csr_array, RowPlaces, and str
        The rows and their lines; the note is empty if the model knows all features.

    Raises
    ------
    mkldist.errors.DataError
        If the file cannot be read, if the model knows none of its features, and if features of the
        model have names.
    """
    raw = read_svmlight(path, None, str(path), sparse=True, start=columns.start)
    place = {name: position for position, name in enumerate(columns.numbers)}
    positions = np.array([place.get(name, -1) for name in raw.feature_names], dtype=np.int64)
    if not (positions >= 0).any() or not are_numbered(columns.numbers, "f"):
        raise _other_features(raw.feature_names, columns, str(path))
    known = raw.sparse[:, np.flatnonzero(positions >= 0)]
    x = _placed(known, positions[positions >= 0], len(columns.numbers))
    unknown = [raw.feature_names[column] for column in np.flatnonzero(positions < 0).tolist()]
    note = ""
    if unknown:
        listed = first_of(unknown, SHOWN)
        count = counted(len(unknown), "feature")
        note = f"{count} that no row of the model's data has ({listed}), left out"
    return array_rows(columns, x, str(path)), raw.row_places, note


def by_position(columns: SourceColumns, start: int) -> str:
    """Return a note that features of a ``.svm`` file are matched by position; empty if by number.

    Parameters
    ----------
    columns : SourceColumns
        The columns of the model.
    start : int
        First index of the file.
    """
    if are_numbered(columns.numbers):
        return ""
    pairs = [f"{start + n} is {name!r}" for n, name in enumerate(columns.numbers[: SHOWN + 1])]
    more = ", …" * (len(pairs) > SHOWN)
    said = ", ".join(pairs[:SHOWN]) + more
    return f"its features have no names and are taken by their position: index {said}"


def are_numbered(names: Sequence[str], letters: str = "fx") -> bool:
    """Return True if all names are those of features that have only a number.

    Parameters
    ----------
    names : sequence of str
        The names.
    letters : str
        Letters before the number: ``f`` of data sets without names, ``x`` of estimators.

    Examples
    --------
    >>> are_numbered(["f0", "f7"]), are_numbered(["x0", "x1"]), are_numbered(["f0", "age"])
    (True, True, False)
    """
    return any(all(re.fullmatch(f"{one}[0-9]+", name) for name in names) for one in letters)


def _other_features(found: Sequence[str], columns: SourceColumns, where: str) -> DataError:
    """Return the error of numbered features that are not those of a model."""
    if are_numbered(columns.numbers, "f"):
        hint = "Check that both files count the same features, from the same first index"
    else:
        hint = "Write the rows to a .npz file with columns in the order of the model"
    return DataError(
        where,
        f"features by their numbers alone: {first_of(found, SHOWN)}",
        f"features of the model: {first_of(columns.numbers, SHOWN)}",
        hint,
    )
