"""Annotated matrices of anndata (``.h5ad``): features by the names of `var`, rows by `obs`.

The layout is that of the documentation of anndata; h5py reads it, since anndata itself does not
follow new versions of pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from mkldist.core.wording import FROM_ONE
from mkldist.data.checks import check_fits
from mkldist.data.opening import FEWER, opened_hdf5, whole
from mkldist.data.tables import Table, frame_table
from mkldist.errors import DataError

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
            parts[name] = partial(_table, item, own, described, name, parts, where)
        parts[OBS] = partial(_described, described, parts, where)
        yield next(iter(parts.values()))()


_MATRICES = ("array", "csr_matrix", "csc_matrix")


def _kind(item: Any) -> str:
    """Return how anndata encoded an element, such as ``csr_matrix``."""
    return str(item.attrs.get("encoding-type", ""))


def _table(
    item: Any,
    features: Sequence[str],
    described: pd.DataFrame,
    part: str,
    parts: Mapping[str, Callable[[], Table]],
    where: str,
) -> Table:
    """Return the table of a matrix, beside which columns of ``obs`` describe the rows."""
    check_fits(8 * len(described) * len(features), where, FEWER)
    values = whole(item, where) if _kind(item) == "array" else _of_sparse(item, where).toarray()
    beside = described.reset_index(names=NAMES)
    names = tuple(map(str, beside.columns))
    frame = pd.concat([beside, pd.DataFrame(values, columns=[*features])], axis=1)
    table = frame_table(frame, where, FROM_ONE)
    return replace(table, id=NAMES, beside=names[1:], part=part, parts=parts)


def _of_sparse(item: Any, where: str) -> Any:
    """Return a sparse matrix."""
    from scipy.sparse import csc_array, csr_array

    parts = [whole(item[part], where) for part in ("data", "indices", "indptr")]
    kind = csr_array if _kind(item) == "csr_matrix" else csc_array
    matrix = kind(tuple(parts), shape=tuple(map(int, item.attrs["shape"])))
    matrix.check_format(full_check=True)
    return matrix


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
