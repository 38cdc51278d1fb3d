"""Which kernels, feature groups and widths carry the decision of a method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.compare_results import PairComparison
from mkldist.analysis.kernel_selection import is_selected, weight_shares
from mkldist.analysis.resampling import Interval
from mkldist.analysis.stability import selection_stability
from mkldist.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    import xarray as xr

GROUPINGS = ("feature_group", "features", "width", "function")
"""Coordinates of kernels by which shares are summed, where a bank has several values."""
LARGEST = 10
"""Kernels that are named one by one."""


@dataclass(frozen=True, eq=False)
class DecisionParts:
    """Decision functions of one split, kernel by kernel, at its scored rows.

    Parameters
    ----------
    kernels : (S,) intp
        Places of the active kernels in the bank.
    values : (t, S, k) float64
        Part of each kernel in the k decision functions, without the intercept, at t rows: the test
        rows, or the unlabelled ones where no row is held out.
    """

    kernels: Ints
    values: Floats


@dataclass(frozen=True)
class Share:
    """Shares of a kernel, or of all kernels of one value of a coordinate; means over the splits.

    Parameters
    ----------
    name : str or float
        The kernel, or the value.
    n_kernels : int
        Kernels of the bank that have it.
    weight, weight_sd : float
        Share of the sum of kernel weights, and its standard deviation over the splits.
    decision, decision_sd : float
        Share of the variance of the decision values; NaN where it is not known.
    frequency : float
        Share of the splits that select the kernel, or one of the kernels.
    """

    name: str | float
    n_kernels: int
    weight: float
    weight_sd: float
    decision: float
    decision_sd: float
    frequency: float


@dataclass(frozen=True)
class Grouping:
    """Shares of all values of one coordinate of the kernels.

    Parameters
    ----------
    coordinate : str
        ``feature_group``, ``features``, ``width`` or ``function``.
    shares : tuple of Share
        Widths ascending, others by falling weight.
    stability : Interval
        Nogueira's measure of which values are selected, with its interval; NaN for one split, or
        where every split selects all values or none.  Its ends are NaN for fewer than five splits.
    """

    coordinate: str
    shares: tuple[Share, ...]
    stability: Interval


@dataclass(frozen=True, eq=False)
class Explanation:
    """Kernels that carry the decisions of a method on one data set.

    Parameters
    ----------
    dataset, bank, method : str
        Its place.
    task : str
        ``"classification"`` or ``"regression"``.
    setting : dict of str to object
        Hyperparameters that were chosen: a value, or a list of one a split.
    validated : bool
        True if validation chose them.
    n_splits, n_kernels : int
        Splits with a complete run, and kernels of the bank.
    selected : float
        Mean number of kernels selected, those of a weight above 0.001 of the sum.
    always : int
        Kernels that every split selects.
    stability : Interval
        Nogueira's measure of the kernels selected.
    groupings : tuple of Grouping
        Shares by features, width and function.
    kernels : tuple of Share
        The kernels of largest weight.
    no_decision : str
        Why shares of the decision are not known; empty where they are.
    against_uniform : PairComparison or None
        The method against uniform weights, where the sweep has these.
    n_candidates : int
        Methods on banks among which it has the least mean loss; 1 where it alone was asked for.
    n_settings : int
        Settings of the method.
    """

    dataset: str
    bank: str
    method: str
    task: str
    setting: dict[str, Any]
    validated: bool
    n_splits: int
    n_kernels: int
    selected: float
    always: int
    stability: Interval
    groupings: tuple[Grouping, ...]
    kernels: tuple[Share, ...]
    no_decision: str
    against_uniform: PairComparison | None
    n_candidates: int = 1
    n_settings: int = 1

    def grouping(self, coordinate: str) -> Grouping | None:
        """Return the shares by a coordinate, None if the bank has one value of it."""
        return next((one for one in self.groupings if one.coordinate == coordinate), None)


def decision_shares(parts: Sequence[DecisionParts], n_kernels: int) -> Floats:
    """Return the share of each kernel in the variance of the decision values of each split, (J, M).

    With f = sum_m f_m + b, the share of kernel m is ``Cov(f_m, f) / Var(f)`` over the scored rows,
    of several classes the sum of the covariances by the sum of the variances.  Shares sum to 1.  A
    share is negative where a kernel pulls against the others.

    Parameters
    ----------
    parts : sequence of DecisionParts
        Those of each split.
    n_kernels : int
        Number M of kernels of the bank.

    Returns
    -------
    (J, M) float64
        NaN for a split whose decision values do not vary.
    """
    found = np.zeros((len(parts), n_kernels))
    for row, one in zip(found, parts, strict=True):
        centred = one.values - one.values.mean(axis=0)
        whole = centred.sum(axis=1)
        variance = float((whole**2).sum())
        if variance == 0.0:
            row[:] = math.nan
            continue
        row[one.kernels] = np.einsum("tsk,tk->s", centred, whole) / variance
    return found


def groupings_of(weights: xr.DataArray, decision: Floats | None) -> tuple[Grouping, ...]:
    """Return the shares by every coordinate of which the bank has several values.

    Groups of features are left out where each is the features of the same name.

    Parameters
    ----------
    weights : DataArray
        Weights with the dims ``split`` and ``kernel`` and the coordinates of kernels.
    decision : (J, M) float64, optional
        As :func:`decision_shares` returns it.
    """
    found = []
    for coordinate in GROUPINGS:
        if coordinate not in weights.coords:
            continue
        if coordinate == "feature_group" and groups_are_features(weights):
            continue
        keys = weights[coordinate].to_numpy()
        known = keys != "" if keys.dtype.kind in "OUT" else ~np.isnan(keys)
        values = sorted(set(keys[known].tolist()))
        if len(values) < 2:
            continue
        place = {value: number for number, value in enumerate(values)}
        group = np.array([place.get(key, -1) for key in keys.tolist()], dtype=np.intp)
        shares, chosen = _shares([_plain(value) for value in values], group, weights, decision)
        if coordinate != "width":
            shares.sort(key=lambda share: -share.weight)
        found.append(Grouping(coordinate, tuple(shares), stability_of_choice(chosen)))
    return tuple(found)


def groups_are_features(weights: xr.DataArray) -> bool:
    """Return True if groups of features say nothing else than the features, as views do."""
    both = "features" in weights.coords and "feature_group" in weights.coords
    return both and bool((weights["features"] == weights["feature_group"]).all())


def largest_kernels(weights: xr.DataArray, decision: Floats | None) -> tuple[Share, ...]:
    """Return the shares of the kernels of largest mean weight, at most ten."""
    means = weight_shares(weights).mean(axis=0)
    order = np.argsort(-means, kind="stable")[:LARGEST]
    order = order[means[order] > 0.0]
    named = "kernel" in weights.coords
    names = weights["kernel"].to_numpy()[order].tolist() if named else order.tolist()
    group = np.full(len(means), -1, dtype=np.intp)
    group[order] = np.arange(len(order))
    return tuple(_shares([str(name) for name in names], group, weights, decision)[0])


def stability_of_choice(chosen: Bools) -> Interval:
    """Return Nogueira's measure of a choice, (J, M); NaN for one split, its ends for few."""
    if len(chosen) < 2:
        return Interval(math.nan, math.nan, math.nan)
    return selection_stability(chosen)


def _shares(
    names: Sequence[str | float], group: Ints, weights: xr.DataArray, decision: Floats | None
) -> tuple[list[Share], Bools]:
    """Return the shares of G sets of kernels, and which of them each split selects, (J, G).

    `group` is the set of each kernel, -1 for none.
    """
    count = len(names)
    of_weight = _summed(weight_shares(weights), group, count)
    chosen: Bools = _summed(is_selected(weights).astype(float), group, count) > 0.0
    of_decision = np.full((1, count), math.nan)
    if decision is not None:
        of_decision = _summed(decision, group, count)
    sizes = np.bincount(group[group >= 0], minlength=count)
    shares = [
        Share(
            name,
            int(sizes[g]),
            *_mean_sd(of_weight[:, g]),
            *_mean_sd(of_decision[:, g]),
            float(chosen[:, g].mean()),
        )
        for g, name in enumerate(names)
    ]
    return shares, chosen


def _summed(values: Floats, group: Ints, count: int) -> Floats:
    """Return the sums of columns (J, M) over each of `count` sets, (J, count)."""
    found = np.zeros((count, len(values)))
    known = group >= 0
    np.add.at(found, group[known], values.T[known])
    return found.T


def _mean_sd(values: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of one value a split; the latter NaN for one split."""
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan, math.nan
    return float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else math.nan


def _plain(value: Any) -> str | float:
    return float(value) if isinstance(value, int | float) else str(value)
