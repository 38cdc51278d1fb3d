"""Kernels that methods select, and how stable the selection is over splits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.comparison import best_setting, loss_name
from mkldist.analysis.stability import selection_stability
from mkldist.results.rows import hyperparameters, method_nodes, place_of
from mkldist.results.selected import is_validated, selected
from mkldist.solvers.trace import ACTIVE_THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import xarray as xr


def weights_at_best(tree: xr.DataTree) -> list[tuple[dict[str, str], xr.DataArray]]:
    """Return the kernel weights of each method at one setting, with its place.

    The setting is the one selected by validation in each split, else that of the least mean loss on
    the test parts.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Returns
    -------
    list of (place, weights)
        `place` has ``dataset``, ``bank`` and ``method``.  Weights have the dims ``split`` and
        ``kernel`` alone: those of several classes are averaged.  Methods without weights and
        splits without a complete run are left out.
    """
    found = []
    chosen = selected(tree) if is_validated(tree) else tree
    for node in method_nodes(chosen):
        if "kernel_weights" not in node.ds:
            continue
        score = loss_name([node], str(node.attrs["task"]))
        _, setting = best_setting(node, score)
        dims = hyperparameters(node)
        weights = node.ds["kernel_weights"]
        weights = weights.sel({name: setting[name] for name in dims if name in setting})
        if "class_name" in weights.dims:
            weights = weights.mean("class_name")
        known = ~np.isnan(weights.to_numpy()).any(axis=weights.get_axis_num("kernel"))
        weights = weights.isel(split=np.flatnonzero(known))
        if weights.sizes["split"]:
            found.append((place_of(node), weights.load()))
    return found


def selection_table(tree: xr.DataTree) -> pd.DataFrame:
    """Return how many kernels each method selects and how stable the selection is.

    A kernel is selected if its weight exceeds 0.001 of the sum of weights.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Returns
    -------
    DataFrame
        ``dataset``, ``bank``, ``method``, ``n_splits``, ``n_kernels``, ``selected_mean``,
        ``always`` (kernels selected in every split) and ``stability``, ``stability_low`` and
        ``stability_high`` by Nogueira et al. (2018); NaN for one split, or if all kernels are
        selected or none.
    """
    return stability_of(weights_at_best(tree))


def stability_of(found: Sequence[tuple[dict[str, str], xr.DataArray]]) -> pd.DataFrame:
    """Return the table of :func:`selection_table` from weights that have been read."""
    import pandas as pd

    rows = []
    for place, weights in found:
        chosen = is_selected(weights)
        nan = (np.nan,) * 3
        stability = selection_stability(chosen) if len(chosen) > 1 else nan
        rows.append(
            (*(place[name] for name in ("dataset", "bank", "method")), *chosen.shape,
             float(chosen.sum(axis=1).mean()), int(chosen.all(axis=0).sum()), *stability)
        )  # fmt: skip
    names = ["dataset", "bank", "method", "n_splits", "n_kernels", "selected_mean", "always",
             "stability", "stability_low", "stability_high"]  # fmt: skip
    return pd.DataFrame(rows, columns=names)


def is_selected(weights: xr.DataArray) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return which kernels are selected in each split, (J, M)."""
    values = np.abs(weights.transpose("split", "kernel").to_numpy())
    total = values.sum(axis=1, keepdims=True)
    share = np.divide(values, total, out=np.zeros_like(values), where=total > 0.0)
    found: np.ndarray[tuple[int, int], np.dtype[np.bool_]] = share > ACTIVE_THRESHOLD
    return found


def weight_by(weights: xr.DataArray, coordinate: str) -> pd.Series:
    """Return the mean over splits of the share of the weights, summed by a coordinate of kernels.

    Parameters
    ----------
    weights : DataArray
        Of :func:`weights_at_best`.
    coordinate : str
        A coordinate along ``kernel``, such as ``"width"``, ``"features"`` or ``"function"``.

    Returns
    -------
    Series
        The share of each value, in the order of the values; kernels without a value, such as the
        width of a linear kernel, are left out.
    """
    import pandas as pd

    values = weights.transpose("split", "kernel").to_numpy()
    total = np.abs(values).sum(axis=1, keepdims=True)
    shares = np.divide(values, total, out=np.zeros_like(values), where=total > 0.0).mean(axis=0)
    keys = weights[coordinate].to_numpy()
    known = keys != "" if keys.dtype.kind in "OU" else ~np.isnan(keys)
    series = pd.Series(shares[known], index=keys[known]).groupby(level=0, sort=True).sum()
    return series.rename_axis(coordinate)
