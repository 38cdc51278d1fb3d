"""NumPy archives: x (or the parts of a sparse matrix), y, and optional partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.data.archives import Archive, opened_npz
from mkldist.data.opening import REWRITE
from mkldist.data.partitions import INDEX_ARRAYS, partitions_of
from mkldist.data.raw import RawData, as_features, check_fits, check_rows, numbered_features
from mkldist.data.sparse_features import SPARSE_HINT, canonical
from mkldist.errors import DataError

SPARSE_PARTS = ("data", "indices", "indptr", "shape")
IDS = "ids"
SET_LABEL = "Set label = the name of the array of labels, or write one: np.savez(file, y=…)"


def read_npz(
    path: Path,
    label: str | int | None,
    where: str,
    *,
    id: str | None = None,
    labelled: bool = True,
    sparse: bool = False,
) -> RawData:
    """Read features, labels and partitions from a ``.npz`` file.

    The arrays are ``x (n, d)``, or ``data``, ``indices``, ``indptr`` and ``shape`` of a matrix in
    compressed sparse rows; ``y (n,)``; optionally ``feature_names (d,)``, and ``train``,
    ``unlabelled``, ``test`` (or ``idx_labs``, ``idx_unls``, ``idx_test``) with one row of indices
    per partition.  Other arrays are ignored.

    Parameters
    ----------
    path : Path
        The file.  Reading unpickles nothing.
    label : str, int or None
        Name of the array of labels; None means ``y``.
    where : str
        The place to name in a message.
    id : str, optional
        Name of an array that names the rows, (n,); by default ``ids`` if there is one.
    labelled : bool
        False for a file of features without labels, the file of a view.
    sparse : bool
        True to keep a matrix in compressed sparse rows as it is.

    Raises
    ------
    DataError
        If the file is damaged, an array is absent or holds Python objects, or sizes disagree.
    """
    if isinstance(label, int):
        raise DataError(
            where,
            f"label = {label} for arrays",
            "the name of the array of labels",
            'Set label = "y"',
        )
    with opened_npz(path, where) as archive:
        kept, x = None, np.empty((0, 0))
        if sparse and _is_sparse(archive):
            kept = canonical(_sparse(archive, where))
        else:
            x = npz_features(archive, where)
        n_rows, n_features = x.shape if kept is None else kept.shape
        y: npt.NDArray[Any] = np.full(n_rows, "")
        if labelled:
            y = archive.required(label or "y", "labels", SET_LABEL)
        check_rows(n_rows, len(np.atleast_1d(y)), where)
        ids = row_names(archive, id, n_rows)
        names = _feature_names(archive, n_features, where)
        index_arrays = {name: archive[name] for name in INDEX_ARRAYS if name in archive}
        partitions = partitions_of(index_arrays, n_rows, where)
    own = x if kept is None else None
    return RawData(column(y), own, names, partitions, ids=ids, sparse=kept)


def row_names(archive: Archive, id: str | None, n_rows: int) -> npt.NDArray[np.str_] | None:
    """Return the names of the rows of an archive; None if it has none.

    Parameters
    ----------
    archive : Archive
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
    if names.shape != (n_rows,):
        raise DataError(
            f"{archive.where}, array {id or IDS!r}",
            f"shape {names.shape}",
            f"one name for each of {n_rows} rows",
            "Write the array again",
        )
    return names


def column(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels of shape (n, 1) as (n,), and other labels unchanged."""
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def npz_features(archive: Archive, where: str) -> Floats:
    """Return the features of an archive: ``x``, or the parts of a sparse matrix, made dense."""
    if _is_sparse(archive):
        matrix = _sparse(archive, where)
        check_fits(8 * matrix.shape[0] * matrix.shape[1], where, SPARSE_HINT)
        return as_features(matrix.toarray(), where)
    hint = "Name Gram matrices by grams = …, not by file" if "grams" in archive else ""
    return as_features(archive.required("x", "features", hint), f"{where}, array 'x'")


def _is_sparse(archive: Archive) -> bool:
    """Return True if an archive holds the parts of a sparse matrix in place of features."""
    return "x" not in archive and all(part in archive for part in SPARSE_PARTS)


def _sparse(archive: Archive, where: str) -> Any:
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


def _feature_names(archive: Archive, n_features: int, where: str) -> tuple[str, ...]:
    if "feature_names" not in archive:
        return numbered_features(n_features)
    names = tuple(str(name) for name in np.atleast_1d(archive["feature_names"]).ravel())
    if len(names) != n_features or len(set(names)) != n_features:
        raise DataError(
            f"{where}, array 'feature_names'",
            f"{len(names)} names, {len(set(names))} of them distinct",
            f"{n_features} distinct names, one per feature",
            "Correct the array or leave it out",
        )
    return names
