"""Raw data of a table whose columns have been read: what CSV files and frames have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.data.categories import encoded
from mkldist.data.columns import ColumnRoles
from mkldist.data.raw import RawData
from mkldist.data.source_columns import SourceColumns
from mkldist.data.summary import ImportSummary
from mkldist.data.texts import TextColumns

FEWEST_ROWS = 10  # of a column that is taken for row numbers


def of_table(
    roles: ColumnRoles,
    labels: npt.NDArray[Any],
    x: Floats,
    texts: Mapping[str, Sequence[str]],
    where: str,
) -> RawData:
    """Return the raw data of a table, with an summary of its columns.

    Parameters
    ----------
    roles : ColumnRoles
        The role of each column.
    labels : (n,) array
        The label column; empty texts for the table of a view.
    x : (n, d) float64
        Columns of numbers.
    texts : mapping of str to sequence of str
        Columns of categories, of texts, and those that divide, name and weigh the rows, (n,), by
        name.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If categories cannot be encoded.
    """
    categorical = {name: texts[name] for name in (roles.names[p] for p in roles.categorical)}
    of_splits = {name: np.array(texts[name]) for name in (roles.names[p] for p in roles.of_splits)}
    of_texts = {name: texts[name] for name in (roles.names[p] for p in roles.texts)}
    features = encoded(x, roles.feature_names, categorical, where)
    summary = ImportSummary(
        label=roles.label_said,
        left_out=roles.left_out,
        encoded=features.said,
        notes=tuple(
            f'{name!r} numbers the rows and is taken as a feature; id = "{name}" leaves it out'
            for name, values in zip(roles.feature_names, x.T, strict=True)
            if _numbers_rows(values)
        ),
    )
    return RawData(
        labels,
        features.x,
        features.names,
        groups=features.groups,
        of_splits=of_splits,
        weights=None if roles.weights is None else np.array(texts[roles.names[roles.weights]]),
        summary=summary,
        label_name="" if roles.label is None else roles.names[roles.label],
        ids=None if roles.id is None else np.array(texts[roles.names[roles.id]]),
        texts=TextColumns.of(of_texts),
        columns=SourceColumns(
            roles.feature_names,
            features.categories,
            "" if roles.label is None else roles.names[roles.label],
            (*roles.others, *of_texts),
            roles.row_names,
        ),
    )


def _numbers_rows(values: Floats) -> bool:
    """Return True for whole numbers that rise by one from row to row."""
    if len(values) < FEWEST_ROWS or not float(values[0]).is_integer():
        return False
    return bool((np.diff(values) == 1).all())
