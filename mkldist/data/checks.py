"""Checks of arrays of values, dense or sparse: type, size, and what is missing or infinite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory, readable_bytes
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.errors import DataError, nearest
from mkldist.spec.kinds import Imputation

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES = 2**23
MISSING_VALUES = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "none"})
SHOWN = 8
DECIMALS = "Write decimals with a point"
SPARSE_HINT = (
    'Set sparse = true and preprocessing = { scale = "none" } for this data set, or select '
    "features first"
)
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?")


def row_blocks(n_rows: int, row_bytes: int) -> Iterator[slice]:
    """Yield successive rows of so many bytes each, 8 MiB at a time."""
    step = rows_at_once(row_bytes)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def rows_at_once(row_bytes: int) -> int:
    """Return the number of rows of so many bytes that make a block of 8 MiB."""
    return max(1, BLOCK_BYTES // max(1, row_bytes))


def moved_up(x: Floats, rows: Ints | None, columns: Ints | None) -> Floats:
    """Return ascending rows and columns, None for all, of an array (n, d), in its own memory.

    The array is C-contiguous, nothing else makes use of it, and it is overwritten.

    >>> moved_up(np.arange(12.0).reshape(4, 3), np.array([1, 3]), np.array([0, 2])).tolist()
    [[3.0, 5.0], [9.0, 11.0]]
    """
    n_rows = len(x) if rows is None else len(rows)
    n_columns = x.shape[1] if columns is None else len(columns)
    kept = x.reshape(-1)[: n_rows * n_columns].reshape(n_rows, n_columns)
    for block in row_blocks(n_rows, x.itemsize * x.shape[1]):
        # A block is taken as a whole before it is written where no later one is read.
        taken = x[block if rows is None else rows[block]]
        kept[block] = taken if columns is None else taken[:, columns]
    return kept


def decimal_comma(text: str) -> bool:
    """Return True for a number with a decimal comma, such as ``1,5``."""
    return "," in text and text.replace(",", "").strip("+-").isdigit()


def is_date_text(text: str) -> bool:
    """Return True for a text that looks like a date, such as ``31.3.2021``."""
    return _DATE.fullmatch(text) is not None


def check_fits(n_bytes: int, where: str, hint: str, what: str = "an array") -> None:
    """Refuse what does not fit into half of this machine's memory."""
    limit = int(SHARE_OF_MEMORY * physical_memory())
    if n_bytes > limit:
        found = f"{what} of {n_bytes / GIB:.1f} GiB"
        raise DataError(where, found, at_most_half(limit), hint)


NAME_BYTES = 128  # of a feature in memory: its name, and where it stands


def numbered_features(n_features: int, where: str, letter: str = "f") -> tuple[str, ...]:
    """Return the names f0, f1, … of features that have none.

    A sparse matrix of a few bytes may claim any number of columns.
    """
    check_fits(NAME_BYTES * n_features, where, "Leave out columns without entries", "the names")
    return tuple(f"{letter}{i}" for i in range(n_features))


def check_rows(n_rows: int, n_labels: int, where: str) -> None:
    """Refuse another number of labels than of rows, and no rows."""
    if n_rows != n_labels:
        found = f"{pluralize(n_rows, 'row')} of features but {pluralize(n_labels, 'label')}"
        hint = "Check that both come from the same version of the data"
        raise DataError(where, found, "one label per row", hint)
    if not n_rows:
        raise DataError(where, "no rows", "at least one point", "Write the data again")


def common_rows(where: str, parts: Mapping[str, Any]) -> pd.Index[Any] | None:
    """Return the index of the rows that several parts describe, by the first that has names.

    Parts are frames and series of pandas, indexes, or anything else, which has no index.  Indexes
    that name other rows, or the same in another order, are refused.  A plain range, 0 to n - 1,
    names no rows, unless the other index is these numbers in another order.
    """
    first, rows, named = "", None, False
    for name, part in parts.items():
        index = part.index if hasattr(part, "iloc") else part
        if not (hasattr(index, "get_indexer_for") and len(index)):
            continue
        plain = _is_range(index)
        if rows is None:
            first, rows, named = name, index, not plain
        elif not index.equals(rows) and not (plain and not named):
            if (named and not plain) or set(index) == set(rows):
                raise _other_rows(where, name, index, first, rows)
            if not named:
                first, rows, named = name, index, True
    return rows


def gram_indexes(name: str, grams: Any) -> dict[str, Any]:
    """Return rows and columns of Gram matrices that are frames of pandas, one or a list of them."""
    if hasattr(grams, "iloc") and hasattr(grams, "columns"):
        return {f"rows of {name}": grams.index, f"columns of {name}": grams.columns}
    listed = grams if isinstance(grams, list | tuple) else ()
    frames = [(m, one) for m, one in enumerate(listed) if hasattr(one, "iloc")]
    found = [gram_indexes(f"{name}[{m}]", one) for m, one in frames]
    return {part: index for one in found for part, index in one.items()}


def _is_range(index: pd.Index[Any]) -> bool:
    import pandas as pd

    return bool(index.equals(pd.RangeIndex(len(index))))


def _other_rows(
    where: str, name: str, index: pd.Index[Any], first: str, rows: pd.Index[Any]
) -> DataError:
    """Return the error of an index that differs from that of the first part."""
    own, known = set(index), set(rows)
    place = f"{where}: {name}" if where else name
    axis, _, name = name.rpartition(" of ")
    named = f"{name}.{'columns' if axis == 'columns' else 'index'}"
    axis, _, first = first.rpartition(" of ")
    expected = f"{first}.{'columns' if axis == 'columns' else 'index'}"
    by_place = f"or {name}.to_numpy() if the rows correspond by their places"
    extra, lacking = own - known, known - own
    if extra or lacking:
        example = next(one for one in (*index, *rows) if one in (extra or lacking))
        found = f"{len(extra)} names of rows that {first} lacks, and {len(lacking)} lacking of "
        found += f"those of {first}, such as {example!r:.40}"
        hint = f"Give {name} for the rows of {first}, {by_place}"
        if own & known:
            hint = f"Take the rows of both, by {expected}.intersection({named}), {by_place}"
    elif index.has_duplicates or rows.has_duplicates:
        found, hint = "other rows, of names that occur twice", f"Name each row once, {by_place}"
    else:
        found = f"the names of the rows of {first} in another order"
        own_axis = "columns=" * named.endswith(".columns")
        hint = f"Write {name}.reindex({own_axis}{expected}), {by_place}"
    return DataError(place, found, f"the index of {first}", hint)


def positions_of_ids(
    ids: npt.NDArray[np.str_], where: str, hint: str = "Correct these rows"
) -> dict[str, int]:
    """Return the row of each id, of (n,); refuse rows without an id and ids that occur twice."""
    names = list(map(str, ids.tolist()))
    counts = Counter(names)
    problems = [f"{pluralize(counts[''], 'row')} without an id"] if counts[""] else []
    twice = [repr(name) for name, count in counts.items() if name and count > 1]
    if twice:
        problems.append(f"ids that occur more than once: {truncate(twice, SHOWN)}")
    if problems:
        raise DataError(where, " and ".join(problems), "an id of its own for each row", hint)
    return {name: row for row, name in enumerate(names)}


def as_features(values: npt.NDArray[Any], where: str, names: Sequence[str] = ()) -> Floats:
    """Return an (n, d) array of real numbers as contiguous float64, d ≥ 1; refuse other arrays."""
    if values.dtype.kind in "OU" and values.ndim == 2:
        for (row, column), value in np.ndenumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                named = (
                    repr(names[column]) if len(names) == values.shape[1] else f"{column} (from 0)"
                )
                hint = "Convert texts, categories and dates to numbers, and missing values to NaN"
                raise DataError(
                    f"{where}, row {row} (from 0), column {named}",
                    repr(str(value) if isinstance(value, str) else value)[:60],
                    "a number",
                    DECIMALS if decimal_comma(str(value)) else hint,
                ) from None
    check_feature_array(values.shape, values.dtype, where)
    return np.ascontiguousarray(values, dtype=np.float64)


def check_feature_array(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
    """Refuse a shape and dtype of an array that cannot hold the features of points."""
    if dtype.kind not in "fiub":
        hint = "Convert text and categories to numbers first"
        raise DataError(where, f"an array of {dtype}", "real numbers", hint)
    if len(shape) != 2 or shape[1] == 0:
        hint = "Reshape it to one row per point"
        raise DataError(where, f"an array of shape {shape}", "(n points, d ≥ 1 features)", hint)


def check_values(
    x: Floats,
    feature_names: Sequence[str],
    impute: Imputation | None,
    where: str,
    absent: Bools | None = None,
    row_labels: RowLabels = FROM_ZERO,
) -> tuple[int, int]:
    """Return the numbers of rows and of columns of x (n, d) with missing values, to be filled.

    Infinite values are refused, missing ones (NaN) without `impute`, and columns without any value.
    Features of views that points lack, where `absent` (n, d) is True, do not count.
    """
    d = x.shape[1]
    infinite, missing, n_known = np.zeros((3, d), dtype=np.intp)
    first_infinite, first_missing, n_rows = -1, -1, 0
    for rows in row_blocks(len(x), x.itemsize * d):
        wrong, without = np.isinf(x[rows]), np.isnan(x[rows])
        n_known += len(without) - without.sum(axis=0)
        if absent is not None:
            without &= ~absent[rows]
        if first_infinite < 0 and wrong.any():
            first_infinite = rows.start + int(wrong.any(axis=1).argmax())
        if first_missing < 0 and without.any():
            first_missing = rows.start + int(without.any(axis=1).argmax())
        infinite += wrong.sum(axis=0)
        missing += without.sum(axis=0)
        n_rows += int(without.any(axis=1).sum())

    def refuse(counts: Ints, found: str, expected: str, hint: str, first: int | None) -> None:
        columns = np.flatnonzero(counts)
        if len(columns):
            names = [f"{feature_names[c]!r} ({counts[c]})" for c in columns.tolist()]
            found = f"{found} in {truncate(names, SHOWN, 'more columns')}, of {len(x)} rows"
            found += "" if first is None else f", the first in {row_labels.of(first)}"
            raise DataError(where, found, expected, hint)

    hint = "Correct them in the data; imputation fills missing values only"
    refuse(infinite, "infinite values", "finite numbers", hint, first_infinite)
    if impute is None:
        hint = 'Set impute = "median" for this data set, or remove those rows or columns'
        refuse(missing, "missing values", "a number everywhere", hint, first_missing)
    if missing.any() or n_known.min(initial=len(x)) < len(x):
        found, expected = "columns without any value", "at least one number per column"
        empty = np.where(n_known == 0, len(x), 0)
        refuse(empty, found, expected, "Remove these columns", None)
    return n_rows, int((missing > 0).sum())


def dense_features(where: str) -> DataError:
    """Return the error that refuses ``sparse = true`` for dense features."""
    return DataError(
        where,
        "sparse = true for dense features",
        "a .svm file, a .npz file of the parts of a sparse matrix, or a sparse matrix from Python",
        "Remove sparse",
    )


def canonical(matrix: Any) -> Any:
    """Return a matrix in compressed sparse rows of float64, indices sorted, without zeros."""
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
    """Refuse values of a csr_array (n, d) that are missing or infinite."""
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        count = pluralize(len(bad), "value")
        found = f"{count} missing or infinite, the first in {row_labels.of(row)}"
        expected = "finite numbers: absent entries of sparse features are 0, not missing"
        raise DataError(where, found, expected, "Correct them in the data")


def describe_sparse(matrix: Any) -> str:
    """Return the size of a sparse matrix in words, and that of a dense one.

    >>> from scipy.sparse import csr_array
    >>> describe_sparse(csr_array(np.eye(1000)))
    'sparse, 0.1 % of the entries, 15.63 kiB; dense 7.63 MiB'
    """
    n_bytes = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    n, d = matrix.shape
    return (
        f"sparse, {100 * matrix.nnz / (n * d):.2g} % of the entries, {readable_bytes(n_bytes)}; "
        f"dense {readable_bytes(8 * n * d)}"
    )


def group_columns(
    groups: Mapping[str, Sequence[int | str]], names: Sequence[str], where: str
) -> dict[str, tuple[int, ...]]:
    """Return groups as column indices among all features; the label column does not count."""
    positions = {name: position for position, name in enumerate(names)}
    return {
        group: tuple(feature_position(m, positions, f"{where}: groups.{group}") for m in members)
        for group, members in groups.items()
    }


def feature_position(member: int | str, positions: Mapping[str, int], where: str) -> int:
    """Return the column of a feature that is named, or numbered from 0."""
    if isinstance(member, int):
        if not 0 <= member < len(positions):
            raise DataError(
                where,
                f"feature {member}",
                f"a number from 0 to {len(positions) - 1}, or a name",
                "Count features from 0, without the label column",
            )
        return member
    if member not in positions:
        hint = nearest(member, positions) or "Name features as in the header"
        raise DataError(where, f"no feature {member!r}", "names or numbers of features", hint)
    return positions[member]
