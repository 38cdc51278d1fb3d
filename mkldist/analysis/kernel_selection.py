"""Kernels that methods select, and how stable the selection is over splits.

Stability is that of Nogueira, Sechidis & Brown (2018).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy

from mkldist.analysis.comparison import best_setting, loss_name
from mkldist.analysis.resampling import Interval
from mkldist.core.arrays import Bools, Floats
from mkldist.results.rows import hyperparameters, is_validated, method_nodes, place_of, selected
from mkldist.results.schema import CLASS
from mkldist.solvers.outcome import is_active

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import xarray as xr


FEWEST_SPLITS = 5
"""With fewer splits, the large-sample interval of the measure means nothing."""


def frequencies(selected: npt.NDArray[np.bool_]) -> list[Interval]:
    """Return the share of the splits that select each of G sets, and its 95 % interval by Wilson.

    The interval takes the splits for independent; they share training rows.  Its ends are NaN for
    one split.

    Parameters
    ----------
    selected : (J, G) bool
        True where a split selects a set.
    """
    n_splits, counts = len(selected), np.asarray(selected).sum(axis=0).tolist()
    found = {count: Interval(count / n_splits, math.nan, math.nan) for count in counts}
    for count in found if n_splits > 1 else ():
        ends = scipy.stats.binomtest(count, n_splits).proportion_ci(method="wilson")
        found[count] = Interval(count / n_splits, float(ends.low), float(ends.high))
    return [found[count] for count in counts]


def selection_stability(selected: npt.NDArray[np.bool_]) -> Interval:
    """Return Nogueira's measure of the stability of selections, and its 95 % interval.

    The measure is 1 if all splits select the same kernels, 0 on average for random selections of
    the same sizes, and defined for selections of different sizes (their Definition 4)::

        Phi = 1 - mean_m s_m² / (kbar/M (1 - kbar/M)),   s_m² = J/(J-1) p_m (1 - p_m)

    with p_m the share of the J splits that select kernel m and kbar the mean number of kernels
    selected.  The interval is that of their Corollary 9, for a large number of splits; below
    :data:`FEWEST_SPLITS` there is none, because their own scatter then tells nothing of its width.

    Parameters
    ----------
    selected : (J, M) bool
        True where a split selects a kernel.

    Returns
    -------
    Interval
        NaN if all kernels or none are selected in every split, where stability has no meaning;
        its ends are NaN for too few splits.

    Raises
    ------
    ValueError
        If there are fewer than two splits.
    """
    z = np.asarray(selected, dtype=np.float64)
    n_splits, n_kernels = z.shape
    if n_splits < 2:
        raise ValueError(f"found {n_splits} split; expected at least two")
    shares, sizes = z.mean(axis=0), z.sum(axis=1)
    mean_size = float(sizes.mean())
    random = mean_size / n_kernels * (1.0 - mean_size / n_kernels)
    if random == 0.0:
        return Interval(math.nan, math.nan, math.nan)
    variances = n_splits / (n_splits - 1) * shares * (1.0 - shares)
    phi = 1.0 - float(variances.mean()) / random
    if n_splits < FEWEST_SPLITS:
        return Interval(phi, math.nan, math.nan)
    # Theorem 7: the contribution of each split.
    each = (
        z @ shares / n_kernels
        - sizes * mean_size / n_kernels**2
        + 0.5 * phi * (2 * mean_size * sizes / n_kernels**2 - (sizes + mean_size) / n_kernels + 1)
    ) / random
    variance = 4.0 / n_splits**2 * float(((each - each.mean()) ** 2).sum())
    half = float(scipy.stats.norm.ppf(0.975)) * math.sqrt(variance)
    return Interval(phi, phi - half, phi + half)


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
    """
    found = []
    chosen = selected(tree) if is_validated(tree) else tree
    for node in method_nodes(chosen):
        if "kernel_weights" not in node.ds:
            continue
        score = loss_name([node])
        _, setting = best_setting(node, score)
        dims = hyperparameters(node)
        weights = node.ds["kernel_weights"]
        weights = weights.sel({name: setting[name] for name in dims if name in setting})
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

    Parameters
    ----------
    weights : DataArray
        Of :func:`weights_at_best`.
    by : str
        ``"kernel"`` or a coordinate along it.

    Returns
    -------
    DataFrame
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
