"""The objective of each method along a hyperparameter, such as its regularisation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.comparison import loss_name
from mkldist.analysis.equal_settings import problem_settings
from mkldist.arrays import Floats
from mkldist.methods.registry import METHODS
from mkldist.metrics import metric_of_variable
from mkldist.results.rows import complete_values, hyperparameters, method_nodes, place_of
from mkldist.results.schema import SPLIT

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def objective_path(tree: xr.DataTree, along: str = "C") -> pd.DataFrame:
    """Return the mean objective of each method at each value of a hyperparameter.

    Other hyperparameters have, at each value, their setting of least mean loss.  Only rows of one
    data set, bank and `problem` minimise the same function, so that their objectives agree up to
    their gaps.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it; the sweep may be running.
    along : str
        The hyperparameter; methods without it have no row.

    Returns
    -------
    DataFrame
        ``dataset``, ``bank``, ``problem`` (loss and regulariser in words, with the settings that
        define them), ``method``, the value, ``loss`` (mean test error, or root mean square
        error), ``objective`` and ``objective_sd`` (mean and deviation over the splits; NaN for one
        split), ``lower_bound`` (mean) and ``n_splits``.  Values without a complete run have no row.
    """
    import pandas as pd

    columns = ["dataset", "bank", "problem", "method", along, "loss", "objective", "objective_sd",
               "lower_bound", "n_splits"]  # fmt: skip
    nodes = [node for node in method_nodes(tree) if along in hyperparameters(node)]
    rows = [
        (place["dataset"], place["bank"], problem, place["method"], *row)
        for node in nodes
        for place, problem in [(place_of(node), _problem(node, along))]
        for row in _rows(node, along)
    ]
    return pd.DataFrame(rows, columns=columns)


def _problem(node: xr.DataTree, along: str) -> str:
    """Return in words what a node's method minimises; its own name where its settings vary that."""
    name = str(node.attrs["method"])
    if name not in METHODS:
        return name
    method = METHODS[name]
    varied = {*hyperparameters(node)} - {along} - method.params.steering()
    if varied or method.problem.startswith("SVM on"):
        return name  # baselines choose kernels, each in its own way
    settings = json.dumps(problem_settings(node), sort_keys=True)
    return f"{method.problem}, {method.loss}, {method.regularizer} {settings}"


def _rows(node: xr.DataTree, along: str) -> Iterator[tuple[object, ...]]:
    """Yield the row of each value of a node."""
    loss = loss_name([node])
    if not {loss, "objective", "dual_objective"} <= set(node.data_vars):
        return
    values, objectives, bounds = (
        _by_value(node, name, along) for name in (loss, "objective", "dual_objective")
    )
    losses = metric_of_variable(loss).loss(values)
    for place, value in enumerate(node[along].to_numpy().tolist()):
        known = np.isfinite(losses[:, place]) & np.isfinite(objectives[:, place])
        count = known.sum(axis=0)
        if not count.any():
            continue
        sums = np.where(known, losses[:, place], 0.0).sum(axis=0)
        means = np.where(count > 0, sums / np.maximum(count, 1), np.inf)
        best = int(means.argmin())
        own = objectives[known[:, best], place, best]
        spread = float(own.std(ddof=1)) if len(own) > 1 else np.nan
        lower = float(bounds[known[:, best], place, best].mean())
        yield value, float(means[best]), float(own.mean()), spread, lower, len(own)


def _by_value(node: xr.DataTree, name: str, along: str) -> Floats:
    """Return a variable as (splits, values, other settings), NaN where no run is complete."""
    others = [dim for dim in hyperparameters(node) if dim != along]
    dims = (SPLIT, along, *others)
    found = complete_values(node, name, dims)
    return found.reshape(*found.shape[:2], -1)
