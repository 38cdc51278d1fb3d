"""The sparse text format of SVMlight and LIBSVM: ``label index:value index:value … # comment``."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.core.wording import RowLabels, in_lines, pluralize
from mkldist.data.checks import SPARSE_HINT, canonical, check_fits, numbered_features
from mkldist.data.dataset import ImportSummary, RawData, SourceColumns
from mkldist.data.opening import REWRITE, opened
from mkldist.data.tables import QUERIES
from mkldist.errors import DataError

CORRECT = "Correct this line; scikit-learn's dump_svmlight_file writes such files"


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows whose features have but numbers: an open source of the kind of SVMlight's files."""

    matrix: Any  # (n, d) csr_array, whose columns are the indices in the file
    labels: Floats  # (n,)
    row_labels: RowLabels
    where: str
    queries: Ints | None = None  # (n,) numbers after ``qid:``

    @cached_property
    def gram(self) -> Floats | None:
        """The Gram matrix (n, n) of a file of precomputed kernels as LIBSVM has them; else None.

        Its lines are ``label 0:i 1:k(x_i, x_1) 2:k(x_i, x_2) …`` with a serial number i each, which
        is also the column of the point.  Columns of points without a line are left out.
        """
        n, width = self.matrix.shape
        if n < 2 or self.matrix.nnz < n * width // 2:
            return None
        serials = np.unique(self.matrix[:, [0]].toarray())
        if len(serials) < n or serials[0] < 1 or (serials % 1).any():
            return None
        if serials[-1] >= width:
            if serials[-1] > n:
                return None
            numbers = f"numbers of the rows, 1 to {n}, at index 0, and indices to {width - 1}"
            expected = "as many indices as numbers in kernels of LIBSVM, or no index 0 in features"
            hint = "Give the kernel of all rows with each other, or leave out index 0"
            raise DataError(self.where, numbers, expected, hint)
        check_fits(8 * n * width, self.where, SPARSE_HINT)
        values = self.matrix.toarray()
        found: Floats = values[:, values[:, 0].astype(np.intp)]
        return found

    @property
    def gram_where(self) -> str:
        """The place of the Gram matrix in messages."""
        return f"{self.where}, whose index 0 numbers the rows, as in kernels of LIBSVM"

    @property
    def gram_notes(self) -> tuple[str, ...]:
        """How the Gram matrix was taken."""
        n, width = self.matrix.shape
        unused = f"kernels with {pluralize(width - 1 - n, 'point')} of no line are left out"
        taken = "its lines (label 0:1 1:k(x, x) …) are taken as a Gram matrix, as by LIBSVM"
        return (taken, unused) if width - 1 > n else (taken,)

    def data(self, *, sparse: bool = False, start: int | None = None) -> RawData:
        """Return features and labels; of `sparse` ones the features that some row has.

        Indices begin at `start`, by default at 1, or at 0 if an index 0 occurs.
        """
        matrix, where = self.matrix, self.where
        seen = np.unique(matrix.indices)
        if not len(seen):
            raise DataError(where, "no features", "lines such as '+1 1:0.5 3:2'", REWRITE)
        if start and not seen[0]:
            raise DataError(where, "an index 0", "indices from 1, as the model has", CORRECT)
        start = int(seen[0] > 0) if start is None else start
        if sparse:
            # Features that no row has are zero, and no kernel sees them; their number may be vast.
            names = tuple(f"f{i}" for i in (seen - start).tolist())
            # scipy's choice of columns would take memory for each index up to the largest.
            parts = (matrix.data, np.searchsorted(seen, matrix.indices), matrix.indptr)
            kept = canonical(type(matrix)(parts, shape=(matrix.shape[0], len(seen))))
            features: dict[str, Any] = {"x": None, "sparse": kept}
        else:
            check_fits(8 * matrix.shape[0] * (matrix.shape[1] - start), where, SPARSE_HINT)
            features = {"x": matrix[:, start:].toarray()}
            names = numbered_features(features["x"].shape[1], where)
        return RawData(
            labels=self.labels,
            feature_names=names,
            columns=SourceColumns(names, start=start),
            row_labels=self.row_labels,
            **self._of_queries,
            **features,
        )

    @property
    def _of_queries(self) -> dict[str, Any]:
        """The groups of rows that ``qid:`` makes, as fields of raw data."""
        if self.queries is None:
            return {}
        count = pluralize(len(np.unique(self.queries)), "group")
        note = f"{QUERIES} divides the rows into {count}, which splits keep whole"
        summary = ImportSummary(notes=(note,))
        return {"of_splits": {QUERIES: self.queries.astype(str)}, "summary": summary}


@contextmanager
def open_svmlight(path: Path, where: str) -> Iterator[SparseRows]:
    """Read a file of sparse rows, plain or gzipped."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    with opened(path, where) as stream:
        content = stream.read()
    try:
        matrix, labels, queries = load_svmlight_file(
            io.BytesIO(content), zero_based=True, query_id=True
        )
    except (ValueError, OverflowError) as error:
        for number, line in enumerate(io.BytesIO(content), start=1):
            try:
                load_svmlight_file(io.BytesIO(line), zero_based=True)
            except (ValueError, OverflowError) as first:
                text = line.decode(errors="replace").strip()
                place, found = f"{where}, line {number}", f"{text!r:.60} ({first})"
                expected = "a number, then index:value in ascending order, such as 1 3:0.25"
                raise DataError(place, found, expected, CORRECT) from error
        raise
    lines = [
        number
        for number, line in enumerate(io.BytesIO(content), start=1)
        if line.split(b"#", 1)[0].strip()
    ]
    if 0 < len(queries) < len(labels):
        found = f"{QUERIES}: in {len(queries)} of {pluralize(len(labels), 'line')}"
        raise DataError(where, found, f"{QUERIES}: in all lines or in none", REWRITE)
    groups = queries if len(queries) else None
    yield SparseRows(csr_array(matrix), labels, in_lines(lines), where, groups)
