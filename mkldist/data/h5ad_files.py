"""Annotated matrices of anndata (``.h5ad``): features by the names of `var`, rows by `obs`.

The layout is that of the documentation of anndata; h5py reads it, since anndata itself does not
follow new versions of pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.wording import FROM_ONE, RowLabels
from mkldist.data.checks import check_fits
from mkldist.data.hdf5 import FEWER, opened_hdf5, whole
from mkldist.data.tables import Table, TableProblems, frame_table
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

EXTENSIONS = (".h5ad",)
NAMES = "obs_names"  # the column of names of rows, whatever the file calls it
OBS = "obs"
AGAIN = "Write the file again by anndata 0.8 or later: adata.write_h5ad(file)"


@contextmanager
def open_h5ad(path: Path, where: str) -> Iterator[Table]:
    """Open ``X``, or the first layer of a file without; `parts` has layers, ``obsm`` and ``obs``.

    Columns of ``obs`` may be labels, groups, weights; they are features of the part ``obs`` alone.
    """
    with opened_hdf5(path, where) as file:
        described = _frame(file, OBS, where)
        matrices: dict[str, Any] = {"X": file["X"]} if "X" in file else {}
        for group in ("layers", "obsm"):
            matrices |= dict(file[group]) if group in file else {}
        matrices = {name: one for name, one in matrices.items() if _kind(one) in _MATRICES}
        features = tuple(map(str, _frame(file, "var", where).index))
        parts: dict[str, Callable[[], Table]] = {}
        for name, item in matrices.items():
            shape = tuple(map(int, getattr(item, "shape", item.attrs.get("shape", ()))))
            own = features
            if item.parent.name == "/obsm":
                own = tuple(f"{name}_{number}" for number in range(shape[1]))
            if shape != (len(described), len(own)):
                expected = f"{(len(described), len(own))}, by obs and var"
                raise DataError(f"{where}, {item.name}", f"shape {shape}", expected, AGAIN)
            parts[name] = partial(_table, _Matrix(name, item, own, where), described, parts)
        parts[OBS] = partial(_described, described, parts, where)
        yield next(iter(parts.values()))()


_MATRICES = ("array", "csr_matrix", "csc_matrix")


def _kind(item: Any) -> str:
    """Return how anndata encoded an element, such as ``csr_matrix``."""
    return str(item.attrs.get("encoding-type", ""))


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A matrix of the file, dense or sparse, with the names of its columns."""

    name: str
    item: Any
    columns: tuple[str, ...]
    where: str

    def blocks(self, rows: int) -> Iterator[Array]:
        """Yield so many successive rows at a time, dense."""
        sparse = None if _kind(self.item) == "array" else self._sparse()
        n_rows = self.item.shape[0] if sparse is None else sparse.shape[0]
        for start in range(0, n_rows, rows):
            some = slice(start, start + rows)
            yield whole(self.item, self.where, some) if sparse is None else sparse[some].toarray()

    def _sparse(self) -> Any:
        """Return the sparse matrix in compressed rows."""
        from scipy.sparse import csc_array, csr_array

        parts = [whole(self.item[part], self.where) for part in ("data", "indices", "indptr")]
        kind = csr_array if _kind(self.item) == "csr_matrix" else csc_array
        matrix = kind(tuple(parts), shape=tuple(map(int, self.item.attrs["shape"])))
        matrix.check_format(full_check=True)
        return matrix.tocsr()


def _table(
    matrix: _Matrix, described: pd.DataFrame, parts: Mapping[str, Callable[[], Table]]
) -> Table:
    """Return the table of a matrix, beside which columns of ``obs`` describe the rows."""
    known = set(matrix.columns)
    n_rows, names = len(described), (NAMES, *map(str, described.columns))

    def read(columns: Sequence[str], rows: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
        import pandas as pd

        wanted = [name for name in columns if name in known]
        beside = described.reset_index(names=NAMES)[[one for one in columns if one not in known]]
        start = 0
        for block in matrix.blocks(rows) if wanted else _empty(n_rows, rows):
            part = beside.iloc[start : start + len(block)].reset_index(drop=True)
            features = pd.DataFrame(block, columns=list(matrix.columns) if wanted else [])[wanted]
            yield pd.concat([part, features], axis=1)[list(columns)], FROM_ONE.after(start)
            start += len(block)

    check_fits(8 * n_rows * len(matrix.columns), matrix.where, FEWER)
    problems = TableProblems(matrix.where)
    all_names = (*names, *matrix.columns)
    table = Table(all_names, read, problems, n_rows, id=NAMES, beside=names[1:])
    return replace(table, part=matrix.name, parts=parts)


def _empty(n_rows: int, rows: int) -> Iterator[Array]:
    """Yield rows without columns."""
    for start in range(0, n_rows, rows):
        yield np.empty((min(rows, n_rows - start), 0))


def _described(
    described: pd.DataFrame, parts: Mapping[str, Callable[[], Table]], where: str
) -> Table:
    """Return the table of ``obs``."""
    frame = described.reset_index(names=NAMES)
    table = frame_table(frame, where, FROM_ONE)
    kinds = tuple(str(n) for n, kind in frame.dtypes.items() if kind == "category")
    return replace(table, id=NAMES, categories=kinds, part=OBS, parts=parts)


def _frame(file: Any, name: str, where: str) -> pd.DataFrame:
    """Return ``obs`` or ``var`` as a frame, whose index has the names."""
    import pandas as pd

    if name not in file or _kind(file[name]) != "dataframe":
        found = f"no frame {name!r} as anndata writes it since version 0.7"
        raise DataError(where, found, "obs and var", AGAIN)
    group = file[name]
    index = str(group.attrs["_index"])
    columns = [str(one) for one in group.attrs.get("column-order", ())]
    values = {column: _column(group[column], where) for column in columns}
    return pd.DataFrame(values, index=pd.Index(whole(group[index], where).astype(str)))


def _column(item: Any, where: str) -> Any:
    """Return a column of a frame: an array, or categories, or values that may be missing."""
    import pandas as pd

    kind = _kind(item)
    if kind == "categorical":
        codes, categories = whole(item["codes"], where), whole(item["categories"], where)
        return pd.Categorical.from_codes(codes.tolist(), pd.Index(categories))
    if kind.startswith("nullable"):
        values = whole(item["values"], where).astype(object)
        values[whole(item["mask"], where)] = None
        return values
    if not hasattr(item, "shape"):
        found = f"a column of encoding {kind!r}"
        raise DataError(f"{where}, {item.name}", found, "numbers, texts or categories", AGAIN)
    return whole(item, where)
