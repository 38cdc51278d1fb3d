"""New rows in files of arrays, dense or sparse, with the features of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array, Floats
from mkldist.counted import counted
from mkldist.data.archives import NamedArrays
from mkldist.data.listing import first_of
from mkldist.data.npz_files import npz_features, npz_sparse, npz_texts
from mkldist.data.source_columns import SourceColumns
from mkldist.data.svmlight_files import read_svmlight
from mkldist.errors import DataError
from mkldist.models.rows import array_rows
from mkldist.row_places import RowPlaces

SHOWN = 5


def npz_rows(archive: NamedArrays, columns: SourceColumns, where: str, *, sparse: bool) -> Floats:
    """Return the features of an archive: ``x``, or the parts of a sparse matrix.

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

    Raises
    ------
    mkldist.errors.DataError
        If both are absent or damaged, or the number of columns differs.
    """
    matrix = npz_sparse(archive, where) if sparse else None
    if matrix is not None:
        return array_rows(columns, matrix, where)
    if columns.texts and not columns.numbers and "x" not in archive:
        n_rows = len(archive.required(columns.texts[0], "texts"))
        return np.empty((n_rows, 0))
    return array_rows(
        columns, npz_features(archive, where), f"{where}, array 'x'", texts_beside=True
    )


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
    from scipy.sparse import csr_array

    raw = read_svmlight(path, None, str(path), sparse=True, start=columns.start)
    place = {name: position for position, name in enumerate(columns.numbers)}
    positions = np.array([place.get(name, -1) for name in raw.feature_names], dtype=np.int64)
    if not (positions >= 0).any() or not _are_numbered(columns.numbers):
        raise _other_features(raw.feature_names, columns, str(path))
    known = raw.sparse[:, np.flatnonzero(positions >= 0)]
    target = positions[positions >= 0]
    x = csr_array(
        (known.data, target[known.indices], known.indptr),
        shape=(known.shape[0], len(columns.numbers)),
    )
    x.sort_indices()
    unknown = [raw.feature_names[column] for column in np.flatnonzero(positions < 0).tolist()]
    note = ""
    if unknown:
        listed = first_of(unknown, SHOWN)
        count = counted(len(unknown), "feature")
        note = f"{count} that no row of the model's data has ({listed}), left out"
    return array_rows(columns, x, str(path)), raw.row_places, note


def _are_numbered(names: Sequence[str]) -> bool:
    """Return True if all names are those of features that have only a number."""
    return all(name[:1] == "f" and name[1:].isdecimal() for name in names)


def _other_features(found: Sequence[str], columns: SourceColumns, where: str) -> DataError:
    """Return the error of numbered features that are not those of a model."""
    if _are_numbered(columns.numbers):
        hint = "Check that both files count the same features, from the same first index"
    else:
        hint = "Write the rows to a .npz file with columns in the order of the model"
    return DataError(
        where,
        f"features by their numbers alone: {first_of(found, SHOWN)}",
        f"features of the model: {first_of(columns.numbers, SHOWN)}",
        hint,
    )
