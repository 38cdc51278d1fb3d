"""Precomputed Gram matrices: read with their labels, and checked to be Gram matrices.

They are square, finite, symmetric and positive semi-definite.  The eigenvalues of a Gram matrix
that was saved in few digits may lie slightly below zero.  A large C or a small regularisation would
magnify them until the objective is no longer convex and bounds on its minimum are void, so
:func:`semidefinite` sets them to zero.  Rounding alone moves zero eigenvalues of a product of
features down to ``-n u trace(K)``, with u the machine epsilon of float64; these stay.  One Cholesky
factorisation with a shift of that size shows that a matrix needs no change; only where it fails are
eigenvalues computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import LARGEST, Array, Floats
from mkldist.core.threads import has_cholesky_factor
from mkldist.core.wording import FROM_ONE, RowLabels, in_lines, pluralize
from mkldist.data.dataset import RawData
from mkldist.data.labels import finite_number
from mkldist.data.npz_files import (
    IDS,
    SET_LABEL,
    Archive,
    NamedArrays,
    column,
    open_npz,
    read_npy,
    weight_array,
)
from mkldist.data.opening import REWRITE, check_file, opened
from mkldist.data.splits import INDEX_ARRAYS, partitions_of
from mkldist.data.tables import LABEL_NAMES
from mkldist.data.zarr_files import ZarrArrays, is_zarr, opened_zarr
from mkldist.errors import DataError, GramError, ending_words

ON_DISK = "Save the matrices as a .npy file, which stays on disk"
TOLERANCE = 1e-8
SINGLE_PRECISION_TOLERANCE = 1e-6
LARGEST_SINGLE = 1e37  # as float32


def usable_grams(
    grams: npt.NDArray[Any], y: npt.NDArray[Any] | None = None, where: str = "grams"
) -> npt.NDArray[np.floating]:
    """Return M Gram matrices, checked one by one.

    With a tolerance ε of 1e-8 (1e-6 for single precision) a matrix must be finite, symmetric to
    ``ε max|K|``, and its smallest eigenvalue must not lie below ``-ε trace(K)``.  In double
    precision, eigenvalues between that and zero are set to zero; in single precision rounding
    would undo the change.
    """
    check_stack(grams, where)
    if y is not None and len(y) != grams.shape[1]:
        raise GramError(
            where,
            f"{pluralize(len(y), 'label')} for matrices of {grams.shape[1]} points",
            "one label per point",
        )
    tolerance = tolerance_of(grams.dtype)
    result = grams if grams.dtype.kind == "f" else grams.astype(np.float64)
    for m in range(len(grams)):
        matrix = np.asarray(grams[m], dtype=np.float64)
        place = f"{where}: kernel {m}"
        check_symmetric(matrix, tolerance, place)
        if result.dtype != np.float64:
            check_semidefinite(matrix, tolerance, place)
        elif (changed := semidefinite(matrix, tolerance, place)) is not matrix:
            result = np.array(grams, dtype=np.float64) if result is grams else result
            result[m] = changed
    return result


def tolerance_of(dtype: np.dtype[Any]) -> float:
    """Return the tolerance ε for matrices that were stored in a type."""
    single = dtype.kind == "f" and dtype.itemsize <= 4
    return SINGLE_PRECISION_TOLERANCE if single else TOLERANCE


def check_stack(grams: npt.NDArray[Any], where: str) -> None:
    """Raise GramError unless an array has the type and shape of M Gram matrices."""
    if grams.dtype.kind not in "fiub":
        raise GramError(where, f"an array of {grams.dtype}", "real numbers")
    if grams.ndim != 3 or grams.shape[1] != grams.shape[2]:
        raise GramError(
            where, f"shape {grams.shape}", "(M, n, n): M square matrices", _instead_of(grams.shape)
        )
    if not grams.size:
        raise GramError(where, f"shape {grams.shape}", "at least one matrix of one point")


def _instead_of(shape: tuple[int, ...]) -> str:
    """Return how to make a stack of matrices of an array that is one matrix."""
    if len(shape) != 2:
        return ""
    if shape[0] == shape[1]:
        return "Give one matrix as grams[None]"
    return 'Make kernels of features first: mkldist.KernelBank(X, "xu2008")'


def check_finite(matrix: Floats, where: str, largest: float = LARGEST) -> None:
    """Raise GramError if an (n, n) matrix has an entry that is not finite, or one too large.

    The largest entry of a positive semi-definite matrix stands on its diagonal.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = matrix.sum()
    if np.isfinite(total) or np.isfinite(matrix).all():
        greatest = float(matrix.diagonal().max())
        if greatest > largest:
            raise GramError(
                where,
                f"values up to {greatest:.1e}",
                f"at most {largest:.0e}, so that sums of squares are finite",
                "Divide the matrix by a number; it then needs C times that number",
            )
        return
    i, j = np.argwhere(~np.isfinite(matrix))[0]
    raise GramError(where, f"entry ({i}, {j}) of {matrix[i, j]}", "finite numbers")


def check_symmetric(matrix: Floats, tolerance: float, where: str) -> None:
    """Raise GramError unless an (n, n) matrix is finite, and symmetric to ``tolerance max|K|``."""
    check_finite(matrix, where)
    if np.array_equal(matrix, matrix.T):
        return
    largest = float(np.abs(matrix).max())
    difference = np.abs(matrix - matrix.T)
    if float(difference.max()) > tolerance * largest:
        i, j = np.unravel_index(int(np.argmax(difference)), matrix.shape)
        raise GramError(
            where,
            f"entries ({i}, {j}) and ({j}, {i}) of {matrix[i, j]:.9g} and {matrix[j, i]:.9g}",
            f"a symmetric matrix, to {tolerance:g} of its largest entry {largest:.3g}",
        )


def check_diagonal(matrix: Floats, tolerance: float, where: str) -> None:
    """Raise GramError if an entry of the diagonal lies below ``-tolerance trace(K)``."""
    diagonal = np.diagonal(matrix)
    if float(diagonal.min()) < -tolerance * float(diagonal.sum()):
        i = int(np.argmin(diagonal))
        raise GramError(
            where, f"entry ({i}, {i}) of {diagonal[i]:g}", "no negative entry on the diagonal"
        )


def check_semidefinite(matrix: Floats, tolerance: float, where: str) -> None:
    """Raise GramError if a symmetric matrix has an eigenvalue below ``-tolerance trace(K)``."""
    trace = float(np.trace(matrix))
    if not has_cholesky_factor(matrix, tolerance * trace):
        _refuse_below(float(np.linalg.eigvalsh(matrix)[0]), trace, tolerance, where)


def semidefinite(matrix: Floats, tolerance: float, where: str) -> Floats:
    """Return a symmetric matrix with its negative eigenvalues set to zero."""
    trace = float(np.trace(matrix))
    rounding = len(matrix) * np.finfo(np.float64).eps * trace
    if has_cholesky_factor(matrix, rounding) or not matrix.any():
        return matrix
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    _refuse_below(float(values[0]), trace, tolerance, where)
    if values[0] >= -rounding:
        return matrix
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    product: Floats = root @ root.T
    return product


def _refuse_below(smallest: float, trace: float, tolerance: float, where: str) -> None:
    """Raise GramError if the smallest eigenvalue lies below ``-tolerance trace(K)``."""
    if trace < 0.0:
        raise GramError(
            where,
            f"a trace of {trace:.3g}",
            "a positive semi-definite matrix, whose trace is not negative",
            "Check its sign: kernel values grow with similarity, distances do not",
        )
    lowest = 0.0 - tolerance * trace  # 0 rather than -0 for a trace of 0
    if smallest < lowest:
        raise GramError(
            where,
            f"a smallest eigenvalue of {smallest:.3g}",
            f"a positive semi-definite matrix: at least {lowest:.3g}, -{tolerance:g} of the trace",
            "Add a ridge to the diagonal or clip the negative eigenvalues",
        )


def read_grams(
    path: Path, labels_path: Path | None, label: str | None, where: str, weights: str | None = None
) -> RawData:
    """Read M Gram matrices over n points with their labels, and check them.

    `path` is a ``.npz`` file or a zarr group with ``grams (M, n, n)``, the array `label` (n,), by
    default ``y``, that of row `weights`, and perhaps those of :func:`partitions_of`; or a ``.npy``
    file or zarr array of the matrices alone, of which the former stays on disk as a memory map.
    `labels_path` is a file of labels if `path` has none: ``.npy``, ``.npz``, or text with one
    label per line, perhaps after a header.  In matrices of double precision, negative eigenvalues
    within the tolerance of the check are set to zero; only then is a memory-mapped array copied.
    """
    label = label or "y"
    with _opened(path, where) as arrays:
        grams, y = arrays.required("grams", "Gram matrices (M, n, n)"), arrays.get(label)
        n_points = grams.shape[-1] if grams.ndim else 0
        indices = {name: arrays[name] for name in INDEX_ARRAYS if name in arrays}
        partitions = partitions_of(indices, n_points, where, FROM_ONE)
        row_weights = weight_array(arrays, weights, n_points)
    row_labels = FROM_ONE
    if y is not None and labels_path is not None:
        found, expected = f"labels in {path.name} and in {labels_path.name}", "one source of labels"
        raise DataError(where, found, expected, "Remove labels = …")
    if labels_path is not None:
        place = f"{where}: labels {labels_path.name}"
        y, row_labels = _read_labels(labels_path, label, n_points, place)
    if y is None:
        raise DataError(
            where,
            "Gram matrices without labels",
            f"an array {label!r} beside 'grams', or a file of labels",
            "Set labels = a file with one label per point",
        )
    y = column(y)
    return RawData(
        y,
        None,
        partitions=partitions,
        grams=usable_grams(grams, y, where),
        weights=row_weights,
        origin=f"grams {path.name}",
        row_labels=row_labels,
    )


def read_view(path: Path, id: str | None, where: str) -> tuple[Array, Array | None]:
    """Return the Gram matrices of a view, (M, n, n), checked, and the names of their points, (n,).

    The files are those of :func:`read_grams`; the array `id` names the points, by default ``ids``,
    which may be absent.
    """
    with _opened(path, where) as arrays:
        grams, ids = arrays.required("grams", "Gram matrices (M, n, n)"), arrays.get(id or IDS)
    if id is not None and ids is None:
        hint = "Remove id if the matrices have the rows of the data set in their order"
        expected = "an array that names the points, beside 'grams'"
        raise DataError(where, f"no array {id!r}", expected, hint)
    grams = usable_grams(grams[None] if grams.ndim == 2 else grams, ids, where)
    return grams, None if ids is None else column(ids).astype(str)


@contextmanager
def _opened(path: Path, where: str) -> Iterator[NamedArrays]:
    """Open a file of matrices and of arrays beside them."""
    if is_zarr(path):
        with opened_zarr(path, where) as node:
            arrays = node if isinstance(node, Mapping) else {"grams": node}
            yield ZarrArrays(arrays, where, ON_DISK)
        return
    check_file(path, where)
    extension = path.suffix.lower()
    if extension == ".npy":
        yield Archive({"grams": read_npy(path, where, mapped=True)}, where)
    elif extension == ".npz":
        with open_npz(path, where) as archive:
            yield archive
    else:
        found, expected = ending_words(path.suffix, "file"), ".npz, .npy or a zarr folder"
        hint = "Convert it, for example with np.savez(file, grams=…, y=…)"
        raise DataError(where, found, expected, hint)


def _read_labels(path: Path, label: str, n_points: int, where: str) -> tuple[Array, RowLabels]:
    """Return the labels of a file and where they stand in it.

    The first line of a text is a header if the file has one line more than there are points, and
    the line is called as label columns are, or is a text that is no label below: ``y`` may be one.
    """
    check_file(path, where)
    extension = path.suffix.lower()
    if extension == ".npy":
        return read_npy(path, where), FROM_ONE
    if extension == ".npz":
        with open_npz(path, where) as archive:
            hint = SET_LABEL.format(archive.writer)
            return archive.required(label, "labels", hint), FROM_ONE
    with opened(path, where) as stream:
        lines = [line.strip() for line in stream.read().decode("utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    first = lines[0] if lines else ""
    named = first.casefold() in LABEL_NAMES
    apart = first not in lines[1:] and finite_number(first) is None
    header = int((len(lines) == n_points + 1 and (named or apart)) or (lines == [first] and named))
    labels = lines[header:]
    if not labels:
        raise DataError(where, "no labels", "one label per line", REWRITE)
    return np.array(labels), in_lines(range(header + 1, len(lines) + 1))
