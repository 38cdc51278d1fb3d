"""Kernels and settings that are selected, and how much the selection is worth.

Stability of selected kernels is that of Nogueira, Sechidis & Brown (2018).

A sweep with ``[selection]`` cross-validates every setting on the training part of each split.  The
validation loss of the selected setting is the least of many, and so too low on average; its loss on
the test part, which took no part in the selection, is not (Varma & Simon 2006; Cawley & Talbot
2010).  Their difference is the bias, or *optimism*, of the selection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mkldist.analysis.losses import at_best, loss_name, overlap_of
from mkldist.analysis.statistics import frequencies, known_interval, selection_stability
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.errors import InputError
from mkldist.results.rows import (
    complete_values,
    hyperparameters,
    is_validated,
    method_nodes,
    place_of,
    settings_of,
)
from mkldist.results.schema import CLASS, RUNGS, SPLIT, metric_of
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


NestedRule = Literal["best", "sparsest"]
RULES: tuple[NestedRule, ...] = ("best", "sparsest")
PLACE = ("dataset", "bank", "method", "rule")


def nested_selection(tree: xr.DataTree) -> pd.DataFrame:
    """Return the setting that each rule selects in each split, with its losses.

    The rules are ``"best"``, the setting of least validation loss, and ``"sparsest"``, that of
    fewest active kernels among those whose validation error is within one standard error of the
    least (Breiman, Friedman, Olshen & Stone 1984).  The standard error is theirs,
    ``sqrt(e (1 - e) / n)`` for the error e on the n training points of a split.  Other metrics
    have no such formula, and their ``"sparsest"`` setting is left out.  Of equal settings the
    first counts, and runs that are not complete do not.

    Parameters
    ----------
    tree : xarray.DataTree
        Results of a sweep with ``[selection]``, from :func:`mkldist.open_results`.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method, rule and split: ``loss`` (name of the test loss),
        the hyperparameters, ``validation`` and ``test`` (losses of the selected setting),
        ``optimism`` (test minus validation), ``active_kernels``, ``n_settings``, and
        ``least_test``: the least test loss of all settings, which a selection on the test part
        would report.  Losses are shares, or in the units of the labels.

    Raises
    ------
    mkldist.errors.InputError
        If the sweep had no inner folds, or searched its settings by halving, whose rungs do not
        compare.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/selected")  # doctest: +SKIP
    >>> table = mkldist.analysis.nested_selection(tree).query("rule == 'best'")  # doctest: +SKIP
    >>> table[["method", "split", "C", "test"]].round(3)  # doctest: +SKIP
        method  split    C   test
    0    level      0  3.0  0.049
    1    level      1  1.0  0.032
    2    level      2  3.0  0.032
    6  uniform      0  1.0  0.042
    7  uniform      1  1.0  0.028
    8  uniform      2  1.0  0.039
    """
    import pandas as pd

    _check(tree)
    rows = [row for node in method_nodes(tree) for row in _rows(node)]
    columns = [*PLACE, SPLIT, "loss", "validation", "test", "optimism", "active_kernels",
               "least_test", "n_settings"]  # fmt: skip
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def selection_bias(tree: xr.DataTree) -> pd.DataFrame:
    """Return the mean optimism of each rule, with its corrected 95 % interval over the splits.

    Parameters
    ----------
    tree : xarray.DataTree
        As for :func:`nested_selection`.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method and rule: ``loss``, ``n_splits``, ``n_settings``, the
        means ``validation``, ``test``, ``least_test`` and ``active_kernels``, and ``optimism`` with
        the ends ``low`` and ``high`` of its interval by Nadeau & Bengio (2003), which are NaN for
        one split.

    Raises
    ------
    mkldist.errors.InputError
        As for :func:`nested_selection`.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/selected")  # doctest: +SKIP
    >>> table = mkldist.analysis.selection_bias(tree).query("rule == 'best'")  # doctest: +SKIP
    >>> table[["method", "validation", "test"]].round(3)  # doctest: +SKIP
        method  validation   test
    0    level       0.033  0.037
    2  uniform       0.036  0.036
    """
    import pandas as pd

    nodes = {tuple(place_of(node).values()): node.to_dataset() for node in method_nodes(tree)}
    table = nested_selection(tree)
    found = []
    for key, some in table.groupby(list(PLACE), sort=False):
        place = [str(part) for part in key]
        data = nodes[tuple(place[:3])]
        number = np.flatnonzero(np.isin(data[SPLIT].to_numpy(), some[SPLIT].to_numpy()))
        overlap = overlap_of(data, number.tolist())
        _, low, high = known_interval(some["optimism"].to_numpy(float), overlap)
        names = ["validation", "test", "least_test", "active_kernels", "optimism"]
        means = {name: float(some[name].mean()) for name in names}
        counts = {"n_splits": len(some), "n_settings": int(some["n_settings"].max())}
        own = dict(zip(PLACE, place, strict=True))
        found.append({**own, "loss": some["loss"].iloc[0], **counts, **means,
                      "low": low, "high": high})  # fmt: skip
    return pd.DataFrame(found)


def within_one_standard_error(errors: Floats, n_points: int) -> Bools:
    """Return which settings have an error within one standard error of the least.

    Shapes: errors (S,).
    """
    least = float(np.nanmin(errors))
    limit = least + math.sqrt(least * (1.0 - least) / n_points)
    within: Bools = errors <= limit
    return within


def _check(tree: xr.DataTree) -> None:
    """Refuse results that do not tell what nested selection would select."""
    if not is_validated(tree):
        raise InputError(
            "nested_selection",
            "results of a sweep without inner folds",
            "validation scores, by which to select",
            "Add [selection] to the sweep file and repeat the sweep",
        )
    if any(RUNGS in node.attrs for node in method_nodes(tree)):
        raise InputError(
            "nested_selection",
            "a search by halving, whose trials are validated at unequal resources",
            'a grid, or a search of another kind such as "random"',
        )


def _rows(node: xr.DataTree) -> list[dict[str, Any]]:
    """Return a row for each rule and split of a node."""
    loss = loss_name([node])
    name = metric_of(node).variable("validation")
    *scores, kernels = (_flat(node, one) for one in (name, loss, "active_kernels"))
    validation, test = map(metric_of(node).loss, scores)
    known = ~np.isnan(validation) & ~np.isnan(test)
    n_train = node.ds["n_train"].to_numpy()
    rows = []
    for rule in RULES if metric_of(node).name == "error" else RULES[:1]:
        for split in np.flatnonzero(known.any(axis=1)).tolist():
            errors = np.where(known[split], validation[split], np.nan)
            chosen = _choose(errors, kernels[split], int(n_train[split]), rule)
            rows.append(
                {
                    **place_of(node),
                    "rule": rule,
                    SPLIT: node.ds[SPLIT].to_numpy()[split].item(),
                    **_setting(node, split, chosen),
                    "loss": loss,
                    "validation": float(errors[chosen]),
                    "test": float(test[split, chosen]),
                    "optimism": float(test[split, chosen] - errors[chosen]),
                    "active_kernels": float(kernels[split, chosen]),
                    "least_test": float(test[split][known[split]].min()),
                    "n_settings": int(known[split].sum()),
                }
            )
    return rows


def _choose(losses: Floats, kernels: Floats, n_points: int, rule: NestedRule) -> int:
    """Return the position of the setting that a rule selects in a split."""
    if rule == "best":
        return int(np.nanargmin(losses))
    within: Ints = np.flatnonzero(within_one_standard_error(losses, n_points))
    return int(within[np.lexsort((losses[within], kernels[within]))[0]])


def _flat(node: xr.DataTree, name: str) -> Floats:
    """Return a variable as (splits, settings), NaN where no run is complete."""
    values = complete_values(node, name, (SPLIT, *hyperparameters(node)))
    return values.reshape(len(values), -1)


def _setting(node: xr.DataTree, split: int, chosen: int) -> dict[str, Any]:
    """Return the hyperparameters of a setting by its position among those of a split."""
    dims = hyperparameters(node)
    place = np.unravel_index(chosen, [node.sizes[name] for name in dims]) if dims else ()
    where: dict[str, Any] = {SPLIT: split, **dict(zip(dims, place, strict=True))}
    names: Sequence[str] = settings_of(node)
    found = {}
    for name in names:
        own = node.ds[name]
        value = own.isel({dim: where[str(dim)] for dim in own.dims})
        found[name] = value.item()
    return found
