"""Named arrays, as of NumPy archives: x (or a sparse matrix), y, and optional partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.wording import FROM_ONE, pluralize
from mkldist.data.archives import NamedArrays, opened_npz
from mkldist.data.columns import ColumnChoice
from mkldist.data.opening import REWRITE
from mkldist.data.partitions import INDEX_ARRAYS, partitions_of
from mkldist.data.raw import RawData, as_features, check_fits, check_rows, numbered_features
from mkldist.data.sparse_features import SPARSE_HINT, canonical
from mkldist.data.texts import TextColumns, check_characters
from mkldist.errors import DataError

SPARSE_PARTS = ("data", "indices", "indptr", "shape")
IDS = "ids"
FEATURE_NAMES = "feature_names"
SET_LABEL = "Set label = the name of the array of labels, or write one: {}, y=…)"  # by its writer


def read_npz(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read features, labels and partitions from a ``.npz`` file.

    Reading unpickles nothing.

    Parameters
    ----------
    path : Path
        The file.
    choice, where
        As for :func:`arrays_data`.

    Raises
    ------
    DataError
        If the file is damaged, and as :func:`arrays_data`.
    """
    with opened_npz(path, where) as archive:
        return arrays_data(archive, choice, where)


def arrays_data(archive: NamedArrays, choice: ColumnChoice, where: str) -> RawData:
    """Return features, labels and partitions of named arrays.

    The arrays are ``x (n, d)``, or ``data``, ``indices``, ``indptr`` and ``shape`` of a matrix in
    compressed sparse rows; ``y (n,)``; optionally ``feature_names (d,)``, and ``train``,
    ``unlabelled``, ``test`` (or ``idx_labs``, ``idx_unls``, ``idx_test``) with one row of indices
    per partition.  Other arrays are ignored.

    Parameters
    ----------
    archive : NamedArrays
        The arrays.
    choice : ColumnChoice
        Names of the arrays of labels, by default ``y``; of names of the rows, by default ``ids`` if
        there is one; of row weights; and of texts, with which ``x`` may be absent.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If an array is absent or holds Python objects, or sizes disagree.
    """
    label, texts = choice.label, choice.texts
    if isinstance(label, int):
        raise DataError(
            where,
            f"label = {label} for arrays",
            "the name of the array of labels",
            'Set label = "y"',
        )
    x = np.empty((0, 0))
    kept = npz_sparse(archive, where) if choice.sparse else None
    if kept is None and (not texts or "x" in archive or _is_sparse(archive)):
        x = npz_features(archive, where)
    of_texts = npz_texts(archive, texts)
    if of_texts is not None and not x.size:
        x = np.empty((len(of_texts.values), 0))
    n_rows, n_features = x.shape if kept is None else kept.shape
    y: npt.NDArray[Any] = np.full(n_rows, "")
    if choice.labelled:
        y = archive.required(label or "y", "labels", SET_LABEL.format(archive.writer))
    check_rows(n_rows, len(np.atleast_1d(y)), where)
    if of_texts is not None:
        check_length(f"{where}, array {texts[0]!r}", of_texts.values.shape[:1], n_rows, "text")
    ids = row_names(archive, choice.id, n_rows)
    names = feature_names(archive, n_features, where)
    index_arrays = {name: archive[name] for name in INDEX_ARRAYS if name in archive}
    partitions = partitions_of(index_arrays, n_rows, where, FROM_ONE)
    own = x if kept is None else None
    return RawData(
        column(y),
        own,
        names,
        partitions,
        ids=ids,
        sparse=kept,
        texts=of_texts,
        weights=weight_array(archive, choice.weights, n_rows),
        row_labels=FROM_ONE,
    )


def weight_array(archive: NamedArrays, name: str | None, n_rows: int) -> npt.NDArray[Any] | None:
    """Return an array of row weights; None without a name.

    Raises
    ------
    DataError
        If it is absent, or has another length.
    """
    if name is None:
        return None
    weights = column(archive.required(name, "row weights"))
    check_length(f"{archive.where}, array {name!r}", weights.shape, n_rows, "weight")
    return weights


def row_names(archive: NamedArrays, id: str | None, n_rows: int) -> npt.NDArray[np.str_] | None:
    """Return the names of the rows of an archive; None if it has none.

    Parameters
    ----------
    archive : NamedArrays
        The archive.
    id : str or None
        Name of the array; None for ``ids``, which may be absent.
    n_rows : int
        Number of rows.

    Raises
    ------
    DataError
        If the named array is absent, or has another length.
    """
    if id is None and IDS not in archive:
        return None
    names = column(archive.required(id or IDS, "names of the rows")).astype(str)
    check_length(f"{archive.where}, array {id or IDS!r}", names.shape, n_rows, "name")
    return names


def npz_texts(archive: NamedArrays, names: Sequence[str]) -> TextColumns | None:
    """Return arrays of texts, (n,); None without names.

    Raises
    ------
    DataError
        If one is absent, holds no texts, or has another length than the first.
    """
    found: dict[str, list[str]] = {}
    for name in names:
        values = column(archive.required(name, "texts"))
        place = f"{archive.where}, array {name!r}"
        if values.dtype.kind != "U":
            hint = "Convert it before saving: array.astype(str)"
            raise DataError(place, f"an array of {values.dtype}", "texts", hint)
        check_length(place, values.shape, len(next(iter(found.values()), values)), "text")
        found[name] = [text.strip() for text in values.tolist()]
    check_characters(found, archive.where, "array")
    return TextColumns.of(found)


def check_length(place: str, shape: tuple[int, ...], n_rows: int, what: str) -> None:
    """Refuse an array that does not have a name, text or weight for each row."""
    if shape != (n_rows,):
        raise DataError(
            place,
            f"shape {shape}",
            f"one {what} for each of {n_rows} rows",
            "Write the array again",
        )


def column(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels of shape (n, 1) as (n,), and other labels unchanged."""
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def npz_features(archive: NamedArrays, where: str) -> Floats:
    """Return the features of an archive: ``x``, or the parts of a sparse matrix, made dense."""
    if _is_sparse(archive):
        matrix = _sparse(archive, where)
        check_fits(8 * matrix.shape[0] * matrix.shape[1], where, SPARSE_HINT)
        return as_features(matrix.toarray(), where)
    hint = "Name Gram matrices by grams = …, not by file" if "grams" in archive else ""
    archive.check_has("x", "features", hint)
    return archive.features("x")


def npz_sparse(archive: NamedArrays, where: str) -> Any | None:
    """Return the sparse matrix of an archive in compressed sparse rows; None if it has none."""
    return canonical(_sparse(archive, where)) if _is_sparse(archive) else None


def _is_sparse(archive: NamedArrays) -> bool:
    """Return True if an archive holds the parts of a sparse matrix in place of features."""
    return "x" not in archive and all(part in archive for part in SPARSE_PARTS)


def _sparse(archive: NamedArrays, where: str) -> Any:
    """Return a matrix in compressed sparse rows, checked."""
    from scipy.sparse import csr_array

    shape = np.asarray(archive["shape"]).ravel().tolist()
    data, indices, indptr = (archive[part] for part in SPARSE_PARTS[:3])
    if len(shape) != 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise DataError(f"{where}, array 'shape'", f"{shape}", "two sizes (n, d)", REWRITE)
    if "format" in archive and np.asarray(archive["format"]).item() not in (b"csr", "csr"):
        raise DataError(
            where, "a sparse matrix in another format", "compressed sparse rows", "Use .tocsr()"
        )
    for name, array, kinds in (
        ("data", data, "fiub"),
        ("indices", indices, "iu"),
        ("indptr", indptr, "iu"),
    ):
        if array.dtype.kind not in kinds:
            expected = "real numbers" if name == "data" else "integers"
            raise DataError(
                f"{where}, array {name!r}", f"an array of {array.dtype}", expected, REWRITE
            )
    try:
        matrix = csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(
            where,
            f"data, indices, indptr and shape that make no sparse matrix ({error})",
            "the parts of a scipy matrix in compressed sparse rows",
            "Write the parts of a scipy csr_array, and y, by np.savez",
        ) from error
    return matrix


def feature_names(
    arrays: Mapping[str, npt.NDArray[Any]], n_features: int, where: str
) -> tuple[str, ...]:
    """Return the names in the array ``feature_names``, or numbered ones without this array.

    Raises
    ------
    DataError
        As :func:`names_of_features`.
    """
    if FEATURE_NAMES not in arrays:
        return numbered_features(n_features)
    return names_of_features(arrays[FEATURE_NAMES], n_features, where)


def names_of_features(given: npt.NDArray[Any], n_features: int, where: str) -> tuple[str, ...]:
    """Return the names of features that an array ``feature_names`` holds.

    Raises
    ------
    DataError
        If they are not as many as the features, or not distinct.
    """
    names = tuple(str(name) for name in np.atleast_1d(given).ravel())
    if len(names) != n_features or len(set(names)) != n_features:
        raise DataError(
            f"{where}, array {FEATURE_NAMES!r}",
            f"{pluralize(len(names), 'name')}, {len(set(names))} of them distinct",
            f"{n_features} distinct names, one per feature",
            "Correct the array or leave it out",
        )
    return names
