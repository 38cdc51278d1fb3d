"""Variables of MATLAB: files of versions 4 to 7 by scipy, of version 7.3, which are HDF5, by h5py.

Arrays (n, n, M) and cells of M matrices become stacks (M, n, n), cells of texts arrays of texts,
and vectors of either direction (n,).  Row numbers count from 1 in MATLAB, and from 0 here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Array
from mkldist.data.checks import check_fits
from mkldist.data.npz_files import NamedArrays
from mkldist.data.opening import FEWER, REWRITE, check_unpacked, opened, opened_hdf5, whole
from mkldist.data.splits import INDEX_ARRAYS
from mkldist.errors import DataError, MkldistError

OTHER_NAMES = {
    "x": ("features", "data", "fea"),
    "y": ("labels", "label", "target", "gnd"),
    "grams": ("kernels", "k"),
}
"""Names of variables that are taken where the first is missing, in letters of either case."""
NO_DATA = ("struct", "function", "opaque", "object", "unknown")
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class MatArrays(NamedArrays):
    """The variables of an open ``.mat`` file, each read on access by ``read(name)``."""

    kind = "variable"
    writer = "{0} = …; save('file.mat', '{0}', …)"

    def __init__(self, names: list[str], read: Callable[[str], Any], where: str) -> None:
        super().__init__(dict.fromkeys(names), where)
        self._read = read

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        own = self.own(name)
        if own is None:
            raise KeyError(name)
        place = f"{self.where}, variable {own!r}"
        try:
            return _in_order(self._read(own), name, place)
        except MkldistError:
            raise
        except Exception as error:  # scipy's reader raises many of damaged files
            found = f"a variable that cannot be read ({error or type(error).__name__})"
            raise DataError(place, found, "numbers, or texts in a cell", REWRITE) from error

    def own(self, name: object) -> str | None:
        """Return the variable that a name means, or one that is called by another word for it."""
        words = (_folded(str(name)), *OTHER_NAMES.get(str(name), ()))
        others = (own for word in words for own in self if _folded(own) == word)
        return super().own(name) or next(others, None)


def _folded(name: str) -> str:
    """Return a name without capitals and underscores."""
    return name.casefold().replace("_", "")


@contextmanager
def open_mat(path: Path, where: str) -> Iterator[MatArrays]:
    """Open a file of MATLAB; its variables can be read inside the ``with`` block."""
    from scipy import io

    with opened(path, where) as stream:
        is_hdf5 = HDF5_SIGNATURE in stream.read(1024)  # below a header that names some version 7
        stream.seek(0)
        if not is_hdf5:
            try:
                sizes = {name: (shape, kind) for name, shape, kind in io.whosmat(stream)}
            except Exception as error:
                found = f"a file that is damaged or of another kind ({error})"
                raise DataError(where, found, "a file of MATLAB", REWRITE) from error

            def read(name: str) -> Any:
                shape, place = sizes[name][0], f"{where}, variable {name!r}"
                n_bytes = 8 * math.prod(shape) if sizes[name][1] != "sparse" else 0
                check_fits(n_bytes, place, FEWER)
                check_unpacked(n_bytes, path.stat().st_size, place, "a variable", "save -v6")
                stream.seek(0)
                return io.loadmat(stream, variable_names=[name])[name]

            named = [n for n, (_, kind) in sizes.items() if kind not in NO_DATA and n[:1] != "_"]
            yield MatArrays(named, read, where)
            return
    with opened_hdf5(path, where) as file:
        named = [n for n in file if not n.startswith("#") and _class(file[n]) not in NO_DATA]
        yield MatArrays(named, lambda name: _value(file, file[name], where), where)


def _class(item: Any) -> str:
    """Return the class of a variable of version 7.3."""
    if "MATLAB_sparse" in item.attrs:
        return "sparse"
    name: bytes = item.attrs.get("MATLAB_class", b"struct" if hasattr(item, "keys") else b"double")
    return name.decode() if hasattr(item, "shape") else "struct"


def _value(file: Any, item: Any, where: str) -> Any:
    """Return a variable of version 7.3 as scipy gives those of others."""
    kind = _class(item)
    if kind == "sparse":
        from scipy.sparse import csc_array

        parts = [whole(item[part], where) for part in ("data", "ir", "jc")]
        shape = int(item.attrs["MATLAB_sparse"]), len(parts[2]) - 1
        return csc_array(tuple(parts), shape=shape)
    if item.attrs.get("MATLAB_empty", 0):
        return np.zeros((0, 0)) if kind != "char" else np.zeros(0, dtype=str)
    values = whole(item, where).T
    if kind == "cell":
        found = np.empty(values.shape, dtype=object)
        for place, reference in np.ndenumerate(values):
            found[place] = _value(file, file[reference], where)
        return found
    if kind == "char":
        return np.array(["".join(map(chr, line)) for line in values.tolist()])
    return values.astype(bool) if kind == "logical" else values


def _in_order(value: Any, name: str, where: str) -> Array:
    """Return a variable in the order of axes and in the form that other formats have it."""
    value = _dense(value, where)
    if value.dtype == object:
        value = _of_cell(value, where)
    elif value.ndim == 3 and not value.shape[0] != value.shape[1] == value.shape[2]:
        value = value.transpose(2, 0, 1)
    if name == "x":
        return np.asarray(value)
    if name in ("grams", "K_train", "K_test"):
        return np.asarray(value if value.ndim == 3 else value[None])
    if value.ndim == 2 and 1 in value.shape:
        value = value.ravel()
    if value.dtype.kind == "U":
        value = np.char.strip(value)
    if name in INDEX_ARRAYS:
        whole_numbers = value.astype(np.int64)
        value = whole_numbers - 1 if np.array_equal(whole_numbers, value) else value
    return np.asarray(value)


def _dense(value: Any, where: str) -> Array:
    """Return an array, or a sparse matrix as one."""
    if not hasattr(value, "toarray"):
        return np.asarray(value)
    check_fits(8 * math.prod(value.shape), where, FEWER)
    return np.asarray(value.toarray())


def _of_cell(cell: Array, where: str) -> Array:
    """Return the texts, numbers or matrices of a cell as one array."""
    members = [_dense(one, where) for one in cell.ravel(order="F").tolist()]
    if all(one.dtype.kind == "U" or not one.size for one in members):
        return np.array([str(one.ravel()[0]) if one.size else "" for one in members])
    if len({one.shape for one in members}) > 1 or members[0].dtype == object:
        found = f"a cell of arrays of shapes {sorted({one.shape for one in members})!s:.60}"
        raise DataError(where, found, "texts, numbers or matrices of one shape", REWRITE)
    stack = np.stack(members)
    return stack.ravel() if stack[0].size == 1 else stack
