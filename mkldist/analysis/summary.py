"""The results of a sweep in one table, averaged over the splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.results.node_variables import task_of
from mkldist.results.rows import hyperparameters, method_nodes, place_of, run_rows
from mkldist.results.schema import SPLIT
from mkldist.results.selected import selected
from mkldist.results.state import RunState
from mkldist.solvers.base import StopReason

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SECONDS = ("own_seconds", "pass_seconds")
IDENTITY_COLUMNS = 3  # data set, bank and method


def summary(tree: xr.DataTree) -> pd.DataFrame:
    """Return the results of a sweep, a row for each data set, bank, method and setting.

    Means and standard deviations (with ``n - 1`` in the denominator) are over the splits whose run
    is complete.  A mean of no run is NaN, and so is a deviation of one run.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Returns
    -------
    pandas.DataFrame
        Columns ``dataset``, ``bank``, ``method``, one for each hyperparameter, and

        ``task``
            ``classification`` or ``regression``;
        ``complete``, ``failed``, ``waiting``, ``early``
            numbers of runs by state; ``early`` runs are complete but missed their tolerance;
        ``test_error_mean``, ``test_error_sd``
            fraction of misclassified test points; NaN for regression or without test points;
        ``unlabelled_error_mean``, ``unlabelled_error_sd``
            the same for unlabelled points;
        ``rmse_mean``, ``rmse_sd``, ``r2_mean``, ``r2_sd``
            root mean square error, in the units of the labels, and coefficient of determination
            on the test points; NaN for classification;
        ``active_mean``, ``active_sd``
            number of kernels with a weight above 0.001;
        ``seconds_mean``, ``seconds_sd``
            own time of the run and its share of the passes;
        ``gap_max``
            the largest certified relative duality gap;
        ``best``
            true in the rows of the smallest :func:`loss_of` their data set.
    """
    rows = run_rows(tree, _INPUTS)
    by = [name for name in rows.columns if name not in (SPLIT, *_INPUTS)]
    table = _averages(_with_states(rows.reindex(columns=[*by, *_INPUTS])), by)
    tasks = {place_of(node)["dataset"]: task_of(node) for node in method_nodes(tree)}
    table.insert(len(by), "task", table["dataset"].map(tasks))
    loss = loss_of(table)
    return table.assign(best=loss == loss.groupby(table["dataset"]).transform("min"))


def selected_summary(tree: xr.DataTree) -> pd.DataFrame:
    """Return the results of a sweep with ``[selection]``, a row for each data set, bank and method.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Returns
    -------
    pandas.DataFrame
        Columns of :func:`summary`, at the setting selected in each split.  The columns of
        hyperparameters hold text: the value, or the least and the greatest one if splits differ.
    """
    chosen = selected(tree)
    table = summary(chosen)
    names = dict.fromkeys(name for node in method_nodes(tree) for name in hyperparameters(node))
    values: dict[tuple[str, ...], xr.Dataset] = {
        tuple(place_of(node).values()): node.ds for node in method_nodes(chosen)
    }
    keys = list(zip(table["dataset"], table["bank"], table["method"], strict=True))
    for place, name in enumerate(names):
        column = [_span(values[key][name].to_numpy()) if name in values[key] else None
                  for key in keys]  # fmt: skip
        table.insert(IDENTITY_COLUMNS + place, name, column)
    return table


def _span(values: np.ndarray[Any, Any]) -> str:
    """Return the values of some splits as a text."""
    if values.dtype.kind in "fiu":
        low, high = f"{values.min():g}", f"{values.max():g}"
        return low if low == high else f"{low}…{high}"
    return "|".join(dict.fromkeys(map(str, values)))


def loss_of(summary: pd.DataFrame) -> pd.Series[float]:
    """Return the loss of each row: the mean test error, or for regression the mean RMSE.

    Without test points it is the mean error on the unlabelled points.
    """
    error = summary["test_error_mean"].fillna(summary["unlabelled_error_mean"])
    return summary["rmse_mean"].where(summary["task"] == "regression", error)


_SCORES = ("test_error", "unlabelled_error", "rmse", "r2")
_INPUTS = ("state", "stop_reason", *_SCORES, "active_kernels", "gap", *SECONDS)


def _with_states(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with a column for each state, and with numbers of complete runs alone."""
    complete = rows["state"] == RunState.COMPLETE
    failed = rows["state"] == RunState.FAILED
    numbers = rows[[*_SCORES, "active_kernels", "gap"]].astype(float).where(complete)
    seconds = rows[list(SECONDS)].astype(float).sum(axis=1, min_count=1).where(complete)
    early = complete & (rows["stop_reason"].astype(str) != StopReason.CONVERGED.value)
    states = {
        "early": early,
        "complete": complete,
        "failed": failed,
        "waiting": ~(complete | failed),
    }
    return rows.assign(**numbers, seconds=seconds, **states)


def _averages(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return counts of states, and means and deviations over the splits."""
    groups = rows.groupby(by, sort=False, dropna=False)
    return groups.agg(
        complete=("complete", "sum"),
        failed=("failed", "sum"),
        waiting=("waiting", "sum"),
        early=("early", "sum"),
        **{f"{score}_mean": (score, "mean") for score in _SCORES},
        **{f"{score}_sd": (score, "std") for score in _SCORES},
        active_mean=("active_kernels", "mean"),
        active_sd=("active_kernels", "std"),
        seconds_mean=("seconds", "mean"),
        seconds_sd=("seconds", "std"),
        gap_max=("gap", "max"),
    ).reset_index()
