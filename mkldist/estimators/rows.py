"""Rows that estimators are given: features of numbers, and columns of texts beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from mkldist.arrays import Array, Bools, Floats
from mkldist.data.dataset import View, sparse_parts
from mkldist.data.table_problems import DECIMALS, decimal_comma, is_date_text
from mkldist.data.texts import TextColumns, TextView, fingerprint_parts
from mkldist.errors import DataError
from mkldist.kernel_functions.sparse_points import is_sparse


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of an estimator.

    Parameters
    ----------
    numbers : (n, d) float64 array or csr_array
        Features.
    names : tuple of str, or None
        Their names; None if the rows have no names of columns.
    texts : TextColumns or None
        Columns of texts; None without any.
    """

    numbers: Floats
    names: tuple[str, ...] | None = None
    texts: TextColumns | None = None

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    @property
    def n_features(self) -> int:
        """Number d of features of numbers."""
        return int(self.numbers.shape[1])

    @property
    def text_values(self) -> Array | None:
        """The texts, (n, t) str objects; None without any."""
        return None if self.texts is None else self.texts.values

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that tell these rows from others."""
        own = sparse_parts(self.numbers) if is_sparse(self.numbers) else (self.numbers,)
        return (*own, *fingerprint_parts(self.texts))

    def where(self, kept: Bools) -> Rows:
        """Return some of the rows."""
        texts = None if self.texts is None else self.texts.of_rows(np.flatnonzero(kept))
        return replace(self, numbers=self.numbers[kept], texts=texts)

    def table(self) -> Any:
        """Return the rows as :class:`mkldist.KernelBank` takes them."""
        if self.names is None or is_sparse(self.numbers):
            return self.numbers
        frame = pd.DataFrame(self.numbers, columns=list(self.names))
        if self.texts is None:
            return frame
        return frame.join(pd.DataFrame(self.texts.values, columns=list(self.texts.names)))


def divided_views(
    views: Mapping[str, View], names: tuple[str, ...], texts: TextColumns | None
) -> tuple[dict[str, View], dict[str, TextView]]:
    """Return views of the columns of X as blocks of its features, and of its columns of texts.

    Parameters
    ----------
    views : mapping of str to View
        Blocks of all columns.
    names : tuple of str
        Names of all columns.
    texts : TextColumns or None
        Those of texts; None without any.
    """
    if texts is None:
        return dict(views), {}
    of_numbers = [name for name in names if name not in texts.names]
    numbers, columns = {}, {}
    for view, block in views.items():
        members = [names[column] for column in block.columns]
        own = tuple(texts.names.index(name) for name in members if name in texts.names)
        others = tuple(of_numbers.index(name) for name in members if name not in texts.names)
        if own:
            columns[view] = TextView(own, block.missing)
        if others:
            numbers[view] = View(others, block.missing)
    return numbers, columns


def check_numbers(X: Any) -> None:
    """Refuse a DataFrame with a column of values that are no numbers.

    Raises
    ------
    mkldist.errors.DataError
        Naming the column and its first such value.
    """
    if not isinstance(X, pd.DataFrame):
        return
    for place, name in enumerate(X.columns):
        column = X.iloc[:, place]
        if pd.api.types.is_numeric_dtype(column.dtype) or column.empty:
            continue
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            bad = next(value for value in column if not _is_number(value))
            raise DataError(
                f"X, column {name!r}",
                f"{bad!r:.60}",
                "numbers",
                _instead(name, str(bad)),
            ) from None


def _instead(name: object, text: str) -> str:
    """Return what to do about a column of texts, by one of them."""
    if is_date_text(text):
        return (
            f"Turn dates into numbers, such as days: (X[{name!r}] - X[{name!r}].min()).dt.days, "
            "of texts by pandas.to_datetime first, or drop the column"
        )
    if decimal_comma(text):
        return f'{DECIMALS}, as pandas.read_csv(…, decimal=",") reads them'
    return (
        "Encode it before, as by sklearn.preprocessing.OneHotEncoder in a pipeline, drop "
        f"the column, or set texts=[{name!r}] for kernels of texts"
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
