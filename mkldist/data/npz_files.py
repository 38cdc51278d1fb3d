"""NumPy archives: x (or the parts of a sparse matrix), y, and perhaps partitions."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.data.dataset import Floats
from mkldist.data.opening import REWRITE, check_file
from mkldist.data.partitions import partitions_of
from mkldist.data.raw import RawData, as_features, check_fits, check_rows, numbered_features
from mkldist.errors import DataError, nearest

SPARSE_PARTS = ("data", "indices", "indptr", "shape")

Arrays = dict[str, npt.NDArray[Any]]


def read_npz(path: Path, label: str | int | None, where: str) -> RawData:
    """Read features, labels and partitions from a ``.npz`` file.

    The arrays are ``x (n, d)``, or ``data``, ``indices``, ``indptr`` and ``shape`` of a matrix in
    compressed sparse rows; ``y (n,)``; optionally ``feature_names (d,)`` and ``train``, ``test``
    (or ``idx_labs``, ``idx_unls``) with one row of indices a partition.  Other arrays are ignored.

    Parameters
    ----------
    path : Path
        The file; it is read without unpickling anything.
    label : str, int or None
        Name of the array of labels; None is ``y``.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If the file is damaged, an array is absent or holds Python objects, or sizes differ.
    """
    if isinstance(label, int):
        raise DataError(
            where,
            f"label = {label} for arrays",
            "the name of the array of labels",
            'Set label = "y".',
        )
    with opened_npz(path, where) as archive:
        y = array_of(archive, label or "y", "labels", where)
        x = _features(archive, where)
        check_rows(len(x), len(np.atleast_1d(y)), where)
        names = _feature_names(archive, x.shape[1], where)
        index_arrays = {
            name: archive[name]
            for name in ("train", "test", "idx_labs", "idx_unls")
            if name in archive
        }
        partitions = partitions_of(index_arrays, len(x), where)
    return RawData(column(y), x, names, partitions)


@contextmanager
def opened_npz(path: Path, where: str) -> Iterator[Mapping[str, npt.NDArray[Any]]]:
    """Open a ``.npz`` file; reading an array inside the ``with`` block may raise too.

    Raises
    ------
    DataError
        If it is no such file, is cut short or damaged, or holds Python objects.
    """
    check_file(path, where)
    damaged = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError)
    try:
        # NumPy would leave a damaged file open.
        with path.open("rb") as stream:
            archive = np.load(stream, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(where, "a single array", "an archive with x and y", "Use np.savez.")
            with archive:
                yield archive
    except damaged as error:
        raise DataError(
            where,
            f"a .npz file that is cut short or damaged ({error})",
            "an archive of arrays (np.savez)",
            REWRITE,
        ) from error
    except ValueError as error:
        raise DataError(
            where, _reason(error), "an archive of plain arrays (np.savez)", _remedy(error)
        ) from error
    except OSError as error:
        raise DataError(
            where,
            f"cannot be read ({error.strerror or error})",
            "a readable file",
            "Check its permissions and the disk.",
        ) from error


def _reason(error: ValueError) -> str:
    text = str(error)
    if "Object arrays" in text:
        return "an array of Python objects, which could run code when read"
    if "pickled" in text:
        return "not a NumPy file"
    return f"an array that is damaged ({text})"


def _remedy(error: ValueError) -> str:
    if "Object arrays" in str(error):
        return "Save numbers or text: np.savez(file, x=x.astype(float), y=y.astype(str))."
    return REWRITE


def array_of(
    archive: Mapping[str, npt.NDArray[Any]], name: str, what: str, where: str
) -> npt.NDArray[Any]:
    """Return an array of an open archive.

    Raises
    ------
    DataError
        If it is not there, with the names of those that are.
    """
    if name not in archive:
        there = ", ".join(archive) or "none"
        raise DataError(
            where,
            f"no array {name!r} (the arrays are {there})",
            f"an array {name!r} of {what}",
            nearest(name, archive) or f"Write one of that name: np.savez(file, {name}=…).",
        )
    return archive[name]


def column(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels of shape (n, 1) as (n,), others as they are."""
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _features(archive: Mapping[str, npt.NDArray[Any]], where: str) -> Floats:
    if "x" not in archive and all(part in archive for part in SPARSE_PARTS):
        return _dense(archive, where)
    return as_features(array_of(archive, "x", "features", where), f"{where}, array 'x'")


def _dense(archive: Mapping[str, npt.NDArray[Any]], where: str) -> Floats:
    from scipy.sparse import csr_array

    shape = np.asarray(archive["shape"]).ravel().tolist()
    data, indices, indptr = (archive[part] for part in SPARSE_PARTS[:3])
    if len(shape) != 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise DataError(f"{where}, array 'shape'", f"{shape}", "two sizes (n, d)", REWRITE)
    if "format" in archive and np.asarray(archive["format"]).item() not in (b"csr", "csr"):
        raise DataError(
            where, "a sparse matrix in another format", "compressed sparse rows", "Use .tocsr()."
        )
    check_fits(8 * shape[0] * shape[1], where, "Select or combine features first.")
    try:
        matrix = csr_array((data, indices, indptr), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(
            where,
            f"data, indices, indptr and shape that make no sparse matrix ({error})",
            "the parts of a scipy matrix in compressed sparse rows",
            "Write them by scipy.sparse.save_npz of a csr_array, with y beside.",
        ) from error
    return as_features(matrix.toarray(), where)


def _feature_names(
    archive: Mapping[str, npt.NDArray[Any]], n_features: int, where: str
) -> tuple[str, ...]:
    if "feature_names" not in archive:
        return numbered_features(n_features)
    names = tuple(str(name) for name in np.atleast_1d(archive["feature_names"]).ravel())
    if len(names) != n_features or len(set(names)) != n_features:
        raise DataError(
            f"{where}, array 'feature_names'",
            f"{len(names)} names, {len(set(names))} of them distinct",
            f"{n_features} distinct names, one a feature",
            "Correct the array or leave it out.",
        )
    return names
