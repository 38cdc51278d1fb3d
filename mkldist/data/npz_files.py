"""Named arrays, as of NumPy archives: x (or a sparse matrix), y, and optional partitions.

Archives are read without unpickling; errors name the damaged array.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Array, Floats
from mkldist.core.memory import readable_bytes
from mkldist.core.wording import FROM_ONE, pluralize
from mkldist.data.checks import (
    SPARSE_HINT,
    as_features,
    canonical,
    check_fits,
    check_rows,
    numbered_features,
)
from mkldist.data.dataset import RawData
from mkldist.data.opening import REWRITE, check_unpacked, opened
from mkldist.data.splits import INDEX_ARRAYS, partitions_of
from mkldist.data.tables import ColumnChoice
from mkldist.errors import DataError, nearest

SPARSE_PARTS = ("data", "indices", "indptr", "shape")
IDS = "ids"
FEATURE_NAMES = "feature_names"
SAMPLES = ("names", "sample_names", "samples")  # other names of it
KERNEL_NAMES = ("kernel_names", "names")
USUAL = ("x", "y", "grams")  # names that capitals may stand for, which is noted


class NamedArrays(Mapping[str, npt.NDArray[Any]]):
    """Arrays of a source by name, each read on access: what a format of arrays gives.

    `where` is the place to name in a message, `kind` what the source calls an array, and `writer`
    how one is written, for hints.  Where there is no x, y or grams, capitals such as X name it.
    """

    kind = "array"
    writer: str
    transpose = False  # True if rows of `x` are features
    tolerance: float | None = None  # of the check of Gram matrices; None for that of their type

    def __init__(self, arrays: Mapping[str, Any], where: str) -> None:
        self._arrays, self.where = arrays, where
        taken = {name: self.own(name) for name in USUAL}
        self.notes = tuple(  # which arrays stand for others
            f"{self.kind} {own!r} is taken as {name}"
            for name, own in taken.items()
            if own not in (name, None)
        )

    def own(self, name: object) -> str | None:
        """Return the array that a name means, None for none."""
        same = [own for own in self if own == name or (name in USUAL and own.casefold() == name)]
        return str(name) if name in same else next(iter(same), None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return self.own(name) is not None

    def required(self, name: str, what: str, hint: str = "") -> npt.NDArray[Any]:
        """Return an array of `what` that the source must have."""
        self.check_has(name, what, hint)
        return self[name]

    def check_has(self, name: str, what: str, hint: str = "") -> None:
        """Raise as :meth:`required` does, but read nothing."""
        if name not in self:
            raise DataError(
                self.where,
                f"no array {name!r} (the arrays are {', '.join(self) or 'none'})",
                f"an array {name!r} of {what}",
                nearest(name, self) or hint or f"Write one: {self.writer.format(name)}",
            )

    def labels(self, name: str) -> npt.NDArray[Any]:
        """Return the labels that the array of this name holds."""
        hint = "Set label = the name of the array of labels, or write one: "
        return self.required(name, "labels", hint + self.writer.format(name))

    def features(self, name: str) -> Floats:
        """Return an array of features as (n, d) float64."""
        return as_features(self[name], f"{self.where}, array {name!r}")


class Archive(NamedArrays):
    """The arrays of an open ``.npz`` file."""

    writer = "np.savez(file, {}=…)"

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        own = self.own(name)
        if own is None:
            raise KeyError(name)
        place = f"{self.where}, array {own!r}"
        try:
            self._check_size(own, place)
            array: npt.NDArray[Any] = self._arrays[own]
            return array
        except DataError:
            raise
        except MemoryError as error:
            found = f"an array that does not fit into memory ({error})"
            hint = "Write fewer rows or columns, or use a machine with more memory"
            raise DataError(place, found, "an array that can be read", hint) from error
        except Exception as error:  # zipfile, what it unpacks by, and numpy raise many
            if "Object arrays" in str(error):
                hint = "Convert it before saving: array.astype(float) or array.astype(str)"
                found = "Python objects, which could run code when read"
                raise DataError(place, found, "numbers or text", hint) from error
            found = f"an array that is cut short or damaged ({error})"
            raise DataError(place, found, "a complete array", REWRITE) from error

    def _check_size(self, name: str, place: str) -> None:
        """Refuse an array that unpacks to far more than arrays do, or that is cut."""
        archive: zipfile.ZipFile | None = getattr(self._arrays, "zip", None)
        if archive is None or f"{name}.npy" not in archive.namelist():
            return
        entry = archive.getinfo(f"{name}.npy")
        remedy = "np.load, and write it by np.savez"
        check_unpacked(entry.file_size, entry.compress_size, place, "an array", remedy)
        with archive.open(entry) as file:
            if np.lib.format.read_magic(file) != (1, 0):
                return
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        claimed = math.prod(shape) * dtype.itemsize
        if claimed > entry.file_size and not dtype.hasobject:
            sizes = f"{readable_bytes(claimed)} in a file of {readable_bytes(entry.file_size)}"
            raise ValueError(f"it says that it has {sizes}")


@contextmanager
def open_npz(path: Path, where: str) -> Iterator[Archive]:
    """Open a ``.npz`` file; its arrays can be read inside the ``with`` block."""
    # Given a path, numpy.load would leave a damaged file open.
    with opened(path, where) as stream:
        try:
            npz = np.load(stream, allow_pickle=False)
        except Exception as error:
            found = f"a file that is cut short or damaged ({error})"
            if "pickled" in str(error):
                found = "a file of another kind"
            raise DataError(where, found, "an archive of arrays (np.savez)", REWRITE) from error
        if not isinstance(npz, np.lib.npyio.NpzFile):
            raise DataError(where, "a single array", "an archive of arrays", "Write by np.savez")
        with npz:
            yield Archive(npz, where)


def read_npy(path: Path, where: str, *, mapped: bool = False) -> Array:
    """Read the array of a ``.npy`` file, or map it into memory."""
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except Exception as error:
        found = f"a .npy file that is cut short, damaged or holds Python objects ({error})"
        raise DataError(where, found, "one array (np.save)", REWRITE) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise DataError(where, "an archive of arrays", "one array (np.save)", "Name it .npz")
    return array


def arrays_data(archive: NamedArrays, choice: ColumnChoice, where: str) -> RawData:
    """Return features, labels and partitions of named arrays.

    The arrays are ``x (n, d)``, or ``data``, ``indices``, ``indptr`` and ``shape`` of a matrix in
    compressed sparse rows; ``y (n,)``, or that of another name; optionally ``feature_names (d,)``,
    ``ids (n,)`` or another that names the rows, row weights,
    and ``train``, ``unlabelled``, ``test`` (or ``idx_labs``, ``idx_unls``, ``idx_test``) with one
    row of indices per partition.  Other arrays are ignored.
    """
    label = choice.label
    if isinstance(label, int):
        found, expected = f"label = {label} for arrays", "the name of the array of labels"
        raise DataError(where, found, expected, 'Set label = "y"')
    sparse = npz_sparse(archive, where) if choice.sparse else None
    x = npz_features(archive, where) if sparse is None else np.empty((0, 0))
    n_rows, n_features = x.shape if sparse is None else sparse.shape
    y: npt.NDArray[Any] = np.full(n_rows, "")
    if choice.labelled:
        y = archive.labels(label or "y")
    check_rows(n_rows, len(np.atleast_1d(y)), where)
    index_arrays = {name: archive[name] for name in INDEX_ARRAYS if name in archive}
    return RawData(
        column(y),
        x if sparse is None else None,
        feature_names(archive, n_features, where),
        partitions_of(index_arrays, n_rows, where, FROM_ONE),
        ids=row_names(archive, choice.id, n_rows),
        sparse=sparse,
        weights=weight_array(archive, choice.weights, n_rows),
        row_labels=FROM_ONE,
    )


def weight_array(archive: NamedArrays, name: str | None, n_rows: int) -> npt.NDArray[Any] | None:
    """Return an array of row weights, (n,); None without a name."""
    if name is None:
        return None
    weights = column(archive.required(name, "row weights"))
    check_length(f"{archive.where}, array {name!r}", weights.shape, n_rows, "weight")
    return weights


def row_names(archive: NamedArrays, id: str | None, n_rows: int) -> npt.NDArray[np.str_] | None:
    """Return the names of the rows, (n,): the array `id`, else ``ids``; None without the latter.

    An array of n ``names``, ``sample_names`` or ``samples`` is taken in its place.
    """
    if id is None and IDS not in archive:
        for one in SAMPLES:
            if one in archive and (own := column(archive[one])).shape == (n_rows,):
                return own.astype(str)
        return None
    names = column(archive.required(id or IDS, "names of the rows")).astype(str)
    check_length(f"{archive.where}, array {id or IDS!r}", names.shape, n_rows, "name")
    return names


def kernel_names(archive: NamedArrays, n_kernels: int, n_points: int) -> tuple[str, ...]:
    """Return the names of Gram matrices: ``kernel_names``, or ``names`` if as many; else none."""
    for one in KERNEL_NAMES:
        if one not in archive:
            continue
        found = tuple(column(archive[one]).astype(str).ravel().tolist())
        if one == "names" and len(found) == n_points:
            continue  # those of the points
        if len(found) != n_kernels or len(set(found)) < n_kernels:
            place = f"{archive.where}, array {one!r}"
            distinct = f"{pluralize(len(found), 'name')}, {len(set(found))} of them distinct"
            expected = f"{n_kernels} distinct names, one for each Gram matrix"
            raise DataError(place, distinct, expected, "Correct the array or leave it out")
        return found
    return ()


def check_length(place: str, shape: tuple[int, ...], n_rows: int, what: str) -> None:
    """Refuse an array that does not have a name or weight for each row."""
    if shape != (n_rows,):
        expected = f"one {what} for each of {n_rows} rows"
        raise DataError(place, f"shape {shape}", expected, "Write the array again")


def column(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels of shape (n, 1) as (n,), and other labels unchanged."""
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def npz_features(archive: NamedArrays, where: str) -> Floats:
    """Return the features of an archive: ``x``, or the parts of a sparse matrix, made dense."""
    if _is_sparse(archive):
        matrix = _sparse(archive, where)
        check_fits(8 * matrix.shape[0] * matrix.shape[1], where, SPARSE_HINT)
        return as_features(matrix.toarray(), where)
    hint = "Write Gram matrices K as grams (M, n, n)" if "K" in archive else ""
    hint = "Name Gram matrices by grams = …, not by file" if "grams" in archive else hint
    archive.check_has("x", "features", hint)
    x = archive.features("x")
    return np.ascontiguousarray(x.T) if archive.transpose else x


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
    if len(shape) != 2 or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise DataError(f"{where}, array 'shape'", f"{shape}", "two sizes (n, d)", REWRITE)
    if "format" in archive and np.asarray(archive["format"]).item() not in (b"csr", "csr"):
        found = "a sparse matrix in another format"
        raise DataError(where, found, "compressed sparse rows", "Use .tocsr()")
    parts = []
    for name, kinds in zip(SPARSE_PARTS, ("fiub", "iu", "iu"), strict=False):
        array = archive[name]
        if array.dtype.kind not in kinds:
            place, expected = f"{where}, array {name!r}", "integers"
            if name == "data":
                expected = "real numbers"
            raise DataError(place, f"an array of {array.dtype}", expected, REWRITE)
        parts.append(array)
    try:
        matrix = csr_array(tuple(parts), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        found = f"data, indices, indptr and shape that make no sparse matrix ({error})"
        expected = "the parts of a scipy matrix in compressed sparse rows"
        hint = "Write the parts of a scipy csr_array, and y, by np.savez"
        raise DataError(where, found, expected, hint) from error
    return matrix.T.tocsr() if archive.transpose else matrix


def feature_names(
    arrays: Mapping[str, npt.NDArray[Any]], n_features: int, where: str
) -> tuple[str, ...]:
    """Return the distinct names in the array ``feature_names``; numbered ones without it."""
    if FEATURE_NAMES not in arrays:
        return numbered_features(n_features, where)
    names = tuple(str(name) for name in np.atleast_1d(arrays[FEATURE_NAMES]).ravel())
    if len(names) != n_features or len(set(names)) != n_features:
        place = f"{where}, array {FEATURE_NAMES!r}"
        found = f"{pluralize(len(names), 'name')}, {len(set(names))} of them distinct"
        expected = f"{n_features} distinct names, one per feature"
        raise DataError(place, found, expected, "Correct the array or leave it out")
    return names
