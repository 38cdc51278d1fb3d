"""Learning curves: the loss of each method against the number of training points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.comparison import Compared, compared_losses
from mkldist.analysis.resampling import known_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import xarray as xr


def learning_curve(tree: xr.DataTree) -> pd.DataFrame:
    """Return the mean loss of each method at each size of ``[splits] n_train = [...]``.

    At each size a method has its setting chosen there, as in
    :func:`mkldist.analysis.compared_losses`.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it; the sweep may be running.

    Returns
    -------
    DataFrame
        A row for each data set of several sizes, method and size: ``dataset`` (without its size),
        ``method`` (with its bank if there are several), ``n_train``, ``loss`` (name of the loss),
        ``mean``, ``low`` and ``high`` (the 95 % interval by Nadeau & Bengio 2003; NaN for one
        split) and ``n_splits``.  Sizes share their test points, so the intervals of two sizes do
        not test their difference.
    """
    return curves_of(compared_losses(tree))


def curves_of(compared: Sequence[Compared]) -> pd.DataFrame:
    """Return the table of :func:`learning_curve` from losses that have been read."""
    import pandas as pd

    columns = ["dataset", "method", "n_train", "loss", "mean", "low", "high", "n_splits"]
    table = pd.DataFrame([row for one in compared for row in _rows(one)], columns=columns)
    several = table.groupby("dataset")["n_train"].transform("nunique") > 1
    order = {name: place for place, name in enumerate(table["method"].unique())}
    return table[several].sort_values(
        ["dataset", "method", "n_train"],
        key=lambda values: values.map(order) if values.name == "method" else values,
        ignore_index=True,
    )


def _rows(one: Compared) -> list[tuple[str, str, int, str, float, float, float, int]]:
    """Return the rows of one size of a data set."""
    rows = []
    for method in one.losses:
        values = one.losses[method].to_numpy(float)
        interval, n_splits = known_interval(values, one.overlap), int((~np.isnan(values)).sum())
        size = round(one.overlap.n_train)
        rows.append((one.series, str(method), size, one.loss, *interval, n_splits))
    return rows
