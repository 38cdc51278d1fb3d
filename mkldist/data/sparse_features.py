"""Features that are kept in compressed sparse rows: their form, checks and summary."""

from __future__ import annotations

from typing import Any

import numpy as np

from mkldist.core.arrays import Ints
from mkldist.core.memory import readable_bytes
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize
from mkldist.errors import DataError

SPARSE_HINT = (
    'Set sparse = true and preprocessing = { scale = "none" } for this data set, or select '
    "features first"
)


def dense_features(where: str) -> DataError:
    """Return the error that refuses ``sparse = true`` for dense features."""
    return DataError(
        where,
        "sparse = true for dense features",
        "a .svm file, a .npz file of the parts of a sparse matrix, or a sparse matrix from Python",
        "Remove sparse",
    )


def canonical(matrix: Any) -> Any:
    """Return a sparse matrix in compressed sparse rows of float64, indices sorted, without zeros.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> canonical(coo_array(([1, 2], ([0, 0], [2, 1])), shape=(1, 3))).indices.tolist()
    [1, 2]
    """
    found = matrix.tocsr().astype(np.float64)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found


def as_sparse(points: Any) -> Any:
    """Return points (r, d), dense or sparse, in compressed sparse rows."""
    from scipy.sparse import csr_array

    if isinstance(points, csr_array) and points.dtype == np.float64:
        return points
    return canonical(csr_array(points))


def check_sparse(matrix: Any, where: str, row_labels: RowLabels = FROM_ZERO) -> None:
    """Refuse values that are missing or infinite.

    Parameters
    ----------
    matrix : (n, d) csr_array
        The features.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        With the number of such values and the row of the first.
    """
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise DataError(
            where,
            f"{pluralize(len(bad), 'value')} missing or infinite, the first in "
            f"{row_labels.of(row)}",
            "finite numbers: absent entries of sparse features are 0, not missing",
            "Correct them in the data",
        )


def varying(matrix: Any) -> Ints:
    """Return the columns of a sparse matrix that are not constant."""
    low, high = (
        np.asarray(side.todense()).ravel() for side in (matrix.min(axis=0), matrix.max(axis=0))
    )
    return np.flatnonzero(low != high)


def sparse_said(matrix: Any) -> str:
    """Return the size of a sparse matrix in words, and that of a dense one.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> sparse_said(csr_array(np.eye(1000)))
    'sparse, 0.1 % of the entries, 15.63 kiB; dense 7.63 MiB'
    """
    n_bytes = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    n, d = matrix.shape
    return (
        f"sparse, {100 * matrix.nnz / (n * d):.2g} % of the entries, {readable_bytes(n_bytes)}; "
        f"dense {readable_bytes(8 * n * d)}"
    )
