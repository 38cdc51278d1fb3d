"""Convergence of traced runs: the certified gap against passes over the bank and seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mkldist.arrays import Floats
from mkldist.errors import InputError, nearest
from mkldist.results.rows import method_nodes, place_of
from mkldist.results.schema import CONVERGENCE, ITERATION

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

COSTS = ("passes", "seconds")
"""Costs that a gap is drawn against."""
N_POINTS = 60  # of a curve, at most
QUARTILES = (0.25, 0.5, 0.75)


def convergence_curves(tree: xr.DataTree, against: str = "seconds") -> pd.DataFrame:
    """Return the median over the runs of the best gap so far, and its quartiles.

    The runs are those of all settings and splits of a method that were traced; with more than two
    classes, each class counts as one.  Before its first bound a run has no gap, and after its end
    it keeps its last one.  A quartile is the gap of one of the runs, without interpolation.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it, of a sweep with ``trace = true``.
    against : {"seconds", "passes"}
        The run's own time with its share of the passes, or how often it has read the whole bank.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method and value of `against`: ``dataset``, ``bank``,
        ``method``, the value, ``gap_low``, ``gap`` and ``gap_high`` (the quartiles; NaN where too
        few runs have a bound), and ``runs``.

    Raises
    ------
    mkldist.errors.InputError
        For another `against`.
    """
    import pandas as pd

    if against not in COSTS:
        expected = " or ".join(f'"{name}"' for name in COSTS)
        raise InputError(
            "convergence_curves", f"against = {against!r}", expected, nearest(against, COSTS)
        )
    columns = ["dataset", "bank", "method", against, "gap_low", "gap", "gap_high", "runs"]
    rows = []
    for node in method_nodes(tree):
        runs = list(_runs(node, against))
        if runs:
            place = place_of(node).values()
            rows += [(*place, *row, len(runs)) for row in _quartiles(runs, against)]
    return pd.DataFrame(rows, columns=columns)


def _runs(node: xr.DataTree, against: str) -> Iterator[tuple[Floats, Floats]]:
    """Yield cost and best gap so far, both (T,), of each run with a gap."""
    if CONVERGENCE not in node.children or not {against, "gap"} <= set(node[CONVERGENCE].data_vars):
        return
    data = node[CONVERGENCE].to_dataset()
    if not (length := data.sizes[ITERATION]):  # no run is recorded yet
        return
    gaps, costs = (
        data[name].transpose(..., ITERATION).to_numpy().reshape(-1, length)
        for name in ("gap", against)
    )
    for gap, cost in zip(gaps, costs, strict=True):
        known = np.isfinite(gap) & np.isfinite(cost)
        if known.any():
            yield cost[known], np.minimum.accumulate(gap[known])


def _quartiles(
    runs: list[tuple[Floats, Floats]], against: str
) -> list[tuple[float, float, float, float]]:
    """Return rows of a cost and the quartiles of the gaps there, where the median is known."""
    points = _points(np.concatenate([cost for cost, _ in runs]), against)
    values = np.array([_at(points, cost, gap) for cost, gap in runs])
    found = np.quantile(values, QUARTILES, axis=0, method="inverted_cdf")
    low, median, high = np.where(np.isfinite(found), found, np.nan).tolist()
    rows = zip(points.tolist(), low, median, high, strict=True)
    return [row for row in rows if not np.isnan(row[2])]


def _points(costs: Floats, against: str) -> Floats:
    """Return the costs at which a curve is drawn, spaced evenly on a logarithmic axis."""
    low, high = float(costs.min()), float(costs.max())
    if against == "passes":
        found: Floats = np.unique(np.ceil(np.geomspace(1.0, max(high, 1.0), N_POINTS)))
    elif high > low > 0.0:
        found = np.geomspace(low, high, N_POINTS)
    else:
        found = np.unique(costs)
    return found


def _at(points: Floats, cost: Floats, gap: Floats) -> Floats:
    """Return the gap of a run at each point; infinite before its first."""
    last = np.searchsorted(cost, points * (1.0 + 1e-12), side="right") - 1
    return np.where(last >= 0, gap[np.maximum(last, 0)], np.inf)
