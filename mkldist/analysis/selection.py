"""Kernels that are selected, how often, and how stable the selection is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.losses import at_best
from mkldist.analysis.statistics import frequencies, selection_stability
from mkldist.core.arrays import Bools, Floats
from mkldist.results.rows import (
    method_nodes,
    place_of,
)
from mkldist.results.schema import CLASS
from mkldist.solvers.progress import is_active

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


FREQUENCIES = ("frequency", "frequency_low", "frequency_high")
"""Columns of the share of the splits that select something, and its interval."""


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
        ``kernel``, and ``class_name`` where classes have their own.  Methods without weights and
        splits without a complete run are left out.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> found = mkldist.analysis.weights_at_best(tree)  # doctest: +SKIP
    >>> [(place["method"], weights.dims) for place, weights in found][:2]  # doctest: +SKIP
    [('best_single', ('split', 'kernel')), ('level', ('split', 'kernel'))]
    """
    found = []
    for node in method_nodes(at_best(tree)):
        if "kernel_weights" in node.ds:
            weights = node.ds["kernel_weights"]
            known = weights.notnull().all([dim for dim in weights.dims if dim != "split"])
            weights = weights.isel(split=np.flatnonzero(known))
            if weights.sizes["split"]:
                found.append((place_of(node), weights.load()))
    return found


def selection_table(tree: xr.DataTree) -> pd.DataFrame:
    """Return how many kernels each method selects and how stable the selection is.

    A kernel is selected if it has more than 0.001 of the largest weight, of some class.

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

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> table = mkldist.analysis.selection_table(tree)  # doctest: +SKIP
    >>> table = table.query("method in ['level', 'spicymkl']")  # doctest: +SKIP
    >>> table[["method", "selected_mean", "stability"]].round(2)  # doctest: +SKIP
         method  selected_mean  stability
    1     level           37.6       0.24
    3  spicymkl           29.8       0.29
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


def selection_frequency(tree: xr.DataTree, by: str = "kernel") -> pd.DataFrame:
    """Return how often the splits select each kernel, or the kernels of each width or group.

    A kernel is selected if it has more than 0.001 of the largest weight, of some class; a width or
    group, if one of its kernels is.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    by : str
        ``"kernel"`` or a coordinate along it: ``"width"``, ``"features"``, ``"feature_group"``,
        ``"view"``, ``"function"``, ``"family"``, ``"degree"``.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method and value: ``dataset``, ``bank``, ``method``, the
        value in a column named as `by`, ``n_kernels`` that have it, ``share`` of the sum of
        weights, and ``frequency``, the share of the splits that select it, with Wilson's interval
        ``frequency_low`` and ``frequency_high``; both are means over the splits.  Banks without the
        coordinate have no rows, nor do kernels without a value.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> table = mkldist.analysis.selection_frequency(tree, by="width")  # doctest: +SKIP
    >>> table = table.query("method == 'level'")  # doctest: +SKIP
    >>> table[["width", "frequency"]].round(2).head(3)  # doctest: +SKIP
        width  frequency
    10   0.12        1.0
    11   0.25        1.0
    12   0.50        1.0
    """
    import pandas as pd

    tables = []
    for place, weights in weights_at_best(tree):
        if by in weights.coords:
            table = kernel_shares(weights, by)
            for column, name in enumerate(("dataset", "bank", "method")):
                table.insert(column, name, place[name])
            tables.append(table)
    columns = ["dataset", "bank", "method", by, "n_kernels", "share", *FREQUENCIES]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def weight_shares(weights: xr.DataArray) -> Floats:
    """Return the share of each kernel in the sum of weights of each split, (J, M).

    Weights of several classes are averaged.
    """
    values = np.abs(_by_class(weights).mean(axis=1))
    total = values.sum(axis=1, keepdims=True)
    found: Floats = np.divide(values, total, out=np.zeros_like(values), where=total > 0.0)
    return found


def is_selected(weights: xr.DataArray) -> Bools:
    """Return which kernels are selected in each split, for some class, (J, M)."""
    return np.asarray(is_active(_by_class(weights)).any(axis=1))


def _by_class(weights: xr.DataArray) -> Floats:
    """Return weights of J splits, k classes and M kernels, (J, k, M)."""
    own = weights if CLASS in weights.dims else weights.expand_dims(CLASS)
    found: Floats = own.transpose("split", CLASS, "kernel").to_numpy()
    return found


def kernel_shares(weights: xr.DataArray, by: str) -> pd.DataFrame:
    """Return the shares of the weights, and how often they are selected, by values of a coordinate.

    The value in a column named as `by`, in the order of the values, ``n_kernels``, ``share``,
    ``frequency`` and its interval, as in :func:`selection_frequency`.
    """
    import pandas as pd

    keys = weights[by].to_numpy()
    known = keys != "" if keys.dtype.kind in "OUT" else ~np.isnan(keys)
    keys = keys[known]
    shares = pd.DataFrame(weight_shares(weights).T[known]).groupby(keys)
    selected = pd.DataFrame(is_selected(weights).T[known]).groupby(keys)
    chosen = selected.any()
    columns = {"n_kernels": shares.size(), "share": shares.sum().mean(axis=1)}
    found = pd.DataFrame(columns).rename_axis(by).reset_index()
    found[[*FREQUENCIES]] = frequencies(chosen.to_numpy().T)
    return found
