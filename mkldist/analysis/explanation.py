"""Which kernels are selected, how often, and which views and features carry the decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkldist.analysis.losses import at_best
from mkldist.analysis.statistics import (
    Interval,
    Overlap,
    frequencies,
    known_interval,
    loss_interval,
    selection_stability,
)
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.metrics import Metric
from mkldist.core.wording import html_of
from mkldist.results.rows import method_nodes, place_of
from mkldist.results.schema import CLASS
from mkldist.solvers.progress import is_active

if TYPE_CHECKING:
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
    1     level           33.8       0.24
    3  spicymkl           29.8       0.29
    """
    return stability_of(weights_at_best(tree))


def stability_of(found: Sequence[tuple[dict[str, str], xr.DataArray]]) -> pd.DataFrame:
    """Return the table of :func:`selection_table` from weights that have been read."""
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
        ``"view"``, ``"function"``, ``"family"``, ``"degree"``.  Features without a group have their
        own names among the groups.

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
    """Return the share of each kernel in the weights, mean over classes, of each split, (J, M)."""
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
    return own.transpose("split", CLASS, "kernel").to_numpy()


def kernel_shares(weights: xr.DataArray, by: str) -> pd.DataFrame:
    """Return the shares of the weights, and how often they are selected, by values of a coordinate.

    The value in a column named as `by`, in the order of the values, ``n_kernels``, ``share``,
    ``frequency`` and its interval, as in :func:`selection_frequency`.
    """
    keys = weights[by].to_numpy()
    if by == "feature_group":
        keys = np.where(np.isin(keys, (SINGLE, SEVERAL)), weights["features"].to_numpy(), keys)
    known = keys != "" if keys.dtype.kind in "OUT" else ~np.isnan(keys)
    keys = keys[known]
    shares = pd.DataFrame(weight_shares(weights).T[known]).groupby(keys)
    selected = pd.DataFrame(is_selected(weights).T[known]).groupby(keys)
    chosen = selected.any()
    columns = {"n_kernels": shares.size(), "share": shares.sum().mean(axis=1)}
    found = pd.DataFrame(columns).rename_axis(by).reset_index()
    found[[*FREQUENCIES]] = frequencies(chosen.to_numpy().T)
    return found


LEVELS = {
    "view": "views",
    "group": "groups of features",
    "feature": "features",
    "kernel": "kernels",
    "function": "kernel functions",
    "width": "widths",
}
"""Levels of sets of kernels, in words, those of a person's tables first."""
LARGEST, MOST = 10, 500
"""Kernels that are named one by one, and sets of a level whose absence is tried on each split."""
ALL, SINGLE, SEVERAL = "all", "single", "several"
"""Groups of features that nobody named, as results call them."""
UNKNOWN = Interval(math.nan, math.nan, math.nan)
EXACT = 1e9
"""Rows whose number bounds no interval, for shares that are not of rows."""
SHOWN = 10  # sets of a level, in figures and tables
EQUAL = 1e-9
"""Difference of shares that rounding makes."""


@dataclass(frozen=True, eq=False)
class DecisionParts:
    """Decision functions of one split, kernel by kernel, at its scored rows."""

    kernels: Ints  # (S,) intp: Places of the kernels of non-zero weight in the bank
    # (t, S, k) float64: Part of each kernel in the k decision functions at t rows: the test
    # rows, or the unlabelled ones where no row is held out
    values: Floats
    bias: Floats  # (k,) float64: Intercepts: ``values.sum(axis=1) + bias`` are the decision values
    # Loss of decision values (t, k) at these rows, in the metric of the sweep
    loss: Callable[[Floats], float]
    # Of levels of sets of features, the change of the decision values where the features of
    # each set leave their training means for their values in the row
    changes: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class KernelSets:
    """Sets of features, such as views, or of the kernels of a bank."""

    level: str  # One of LEVELS
    names: tuple[str | float, ...]  # G names
    place: Ints  # (M,) intp: Set of each kernel, all of whose features are in it, -1 for none
    # Features of each set; empty for sets of kernels, whose part is the sum of the kernels'
    columns: tuple[Ints, ...] = ()
    # (G, M) bool, optional: Where a kernel has a feature of a set; None for sets of kernels
    involved: Bools | None = None

    def selected(self, weights: xr.DataArray) -> Bools:
        """Return which splits have an active kernel that has to do with each set, (J, G)."""
        active = is_selected(weights).astype(float)
        counts = self.summed(active) if self.involved is None else active @ self.involved.T
        return np.asarray(counts > 0.0)

    def summed(self, values: Floats) -> Floats:
        """Return the sums over each set of values of the kernels, (J, M), as (J, G)."""
        found = np.zeros((len(self.names), len(values)))
        known = self.place >= 0
        np.add.at(found, self.place[known], values.T[known])
        return found.T


@dataclass(frozen=True)
class Share:
    """What a set of kernels contributes; means over the splits, with 95 % intervals."""

    level: str  # One of LEVELS
    name: str | float  # The view, group, feature, function, width or kernel
    n_kernels: int  # Kernels of the bank all of whose features are in the set
    # 1 for the largest share of the decision, of the weights where that is not known; equal
    # shares have the same rank
    rank: int
    decision: Interval  # Share of the variance of the decision values; NaN where it is not known
    weight: Interval  # Share of these kernels in the sum of kernel weights; NaN without one
    # Rise of the loss on the test rows, in the metric of the sweep, where the set's part of
    # the decision is replaced by its mean, without training again
    left_out: Interval
    # Share of the splits in which a kernel of the set is active, with Wilson's interval
    selected: Interval
    null: float  # Mean share of the decision after fits on permuted labels; NaN without such fits
    p_value: float  # ``(1 + number of permutations of at least this share) / (1 + permutations)``


@dataclass(frozen=True, eq=False)
class Explanation:
    """Views, groups and features that carry the decisions of a method on one data set."""

    dataset: str  # Its place
    bank: str
    method: str
    task: str  # ``"classification"`` or ``"regression"``
    metric: Metric  # The metric of `left_out`
    setting: dict[str, Any]  # Hyperparameters that were chosen: a value, or a list of one a split
    validated: bool  # True if validation chose them
    n_splits: int  # Splits with a complete run, and kernels of the bank
    n_kernels: int
    selected: float  # Mean number of active kernels, those of more than 0.001 of the largest weight
    always: int  # Kernels that are active in every split
    # Nogueira's measure of which sets are selected, by level; NaN for one split, or where
    # every split selects all or none. Its ends are NaN for fewer than five splits
    stability: dict[str, Interval]
    shares: tuple[Share, ...]  # One for each set, level by level, by rank
    no_decision: str  # Why shares of the decision are not known; empty where they are
    normalised: bool  # True if the bank scales its kernels, so that their weights compare
    n_permutations: int  # Fits on permuted labels, for each split
    # The constant prediction that the method is no better than by a test, in words; empty if
    # it is better, or if no constant is known
    no_better: str = ""
    # Methods on banks among which it has the least mean loss; 1 where it alone was asked for
    n_candidates: int = 1
    n_settings: int = 1  # Settings of the method

    def of(self, level: str) -> list[Share]:
        """Return the shares of a level by rank; none if the bank has one set of it."""
        return [share for share in self.shares if share.level == level]

    def shown(self, level: str) -> tuple[list[Share], list[Share]]:
        """Return the shares of a level that matter, at most ten active ones, and the others."""
        every = self.of(level)
        matter = [share for share in every if share.selected.mean > 0.0][:SHOWN]
        return matter, [share for share in every if share not in matter]

    def _repr_html_(self) -> str:
        """Return what is explained, and the shares, for a notebook."""
        facts = {name: getattr(self, name) for name in ("dataset", "bank", "method", "setting",
                 "n_splits", "n_kernels", "selected", "no_decision")}  # fmt: skip
        columns = ["level", "name", "n_kernels", "decision", "weight", "left_out", "selected"]
        return html_of("Explanation", facts, self.table.reindex(columns=columns))

    @property
    def table(self) -> pd.DataFrame:
        """The shares as a table, a row a set; intervals as three columns."""

        def row(share: Share) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name in (one.name for one in fields(Share)):
                value = getattr(share, name)
                ends = {name: value}
                if isinstance(value, Interval):
                    ends = {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
                found |= ends
            return found

        return pd.DataFrame([row(share) for share in self.shares])


def decision_shares(parts: Iterable[tuple[Ints, Floats]], n_kernels: int) -> Floats:
    """Return the share of each kernel in the variance of the decision values of one split, (M,).

    With f = sum_m f_m + b, the share of kernel m is ``Cov(f_m, f) / Var(f)`` over the scored rows,
    of several functions the sum of the covariances by the sum of the variances.  Shares sum to 1.
    A share is negative where a kernel pulls against the others.

    NaN for decision values that do not vary.
    """
    found, variance = np.zeros(n_kernels), 0.0
    for kernels, values in parts:
        centred = values - values.mean(axis=0)
        whole = centred.sum(axis=1)
        variance += float((whole**2).sum())
        found[kernels] += np.einsum("tsk,tk->s", centred, whole)
    return found / variance if variance > 0.0 else np.full(n_kernels, math.nan)


def set_shares(sets: KernelSets, of_kernels: Floats, changes: Sequence[Floats]) -> Floats:
    """Return the share of each set in the variance of the decision values of one split, (G,).

    Of sets of kernels it is the sum over the kernels.  Of sets of features it is ``Cov(c, f) /
    Var(f)`` with the change c of f where they leave their training means; where no kernel has
    features of two sets, both are the same.

    Shapes: of_kernels (M,); changes sequence of (t, 1 + G, k).
    """
    if not sets.columns:
        return np.asarray(sets.summed(of_kernels[None])[0])
    found, variance = np.zeros(len(sets.names)), 0.0
    for one in changes:
        centred = one - one.mean(axis=0)
        variance += float((centred[:, 0] ** 2).sum())
        found += np.einsum("tgk,tk->g", centred[:, 1:], centred[:, 0])
    return found / variance if variance > 0.0 else np.full(len(found), math.nan)


def losses_without(parts: DecisionParts, sets: KernelSets, shares: Floats) -> Floats:
    """Return the rise of the loss where the part of each set is replaced by its mean, (G,).

    Of more than :data:`MOST` sets, those of small decision `shares` (G,) have NaN.
    """
    place = sets.place[parts.kernels]
    whole = parts.values.sum(axis=1) + parts.bias
    loss, found = parts.loss(whole), np.zeros(len(sets.names))
    order = np.argsort(-np.abs(shares), kind="stable")
    found[order[MOST:]] = math.nan
    for g in order[:MOST].tolist():
        if sets.columns:
            own = parts.changes[sets.level][:, g]
        else:
            own = parts.values[:, place == g].sum(axis=1)
        if own.any():
            found[g] = parts.loss(whole - own + own.mean(axis=0)) - loss
    return found


def kernel_sets(weights: xr.DataArray) -> list[KernelSets]:
    """Return the sets of kernels of every level of which the bank has several."""
    found, divided = [], set()
    for level, keys in _keys(weights).items():
        place, names = pd.factorize(np.array(keys, dtype=object), sort=True)
        division = np.unique(place, return_index=True, return_inverse=True)[1:]
        told = division[0][division[1]].tobytes()  # the first kernel of each kernel's set
        if len(division[0]) > 1 and len(names) and told not in divided:
            found.append(KernelSets(level, tuple(names.tolist()), place.astype(np.intp)))
        divided.add(told)
    return found


def _keys(weights: xr.DataArray) -> dict[str, list[str | float | None]]:
    """Return the set of each kernel by level, None for none."""

    def texts(name: str) -> list[str]:
        known = name in weights.coords
        return weights[name].to_numpy().tolist() if known else [""] * weights.sizes["kernel"]

    named = "kernel" in weights.coords
    groups, unnamed = texts("feature_group"), {ALL: "(all features)", SEVERAL: "(several features)"}
    apart = list(zip(texts("view"), groups, texts("features"), strict=True))
    found: dict[str, list[str | float | None]] = {
        "view": [view or "(of no single view)" for view, _, _ in apart],
        "group": [None if g in ("", ALL, SINGLE, SEVERAL, view) else g for view, g, _ in apart],
        "feature": [feature if g == SINGLE else unnamed.get(g) for _, g, feature in apart],
        "kernel": [*texts("kernel")] if named else [*map(str, range(len(groups)))],
        "function": [name or None for name in texts("function")],
    }
    widths = "relative_width" if "relative_width" in weights.coords else "width"
    if widths in weights.coords:
        found["width"] = weights[widths].to_numpy().tolist()
    return found


def shares_of(
    sets: KernelSets,
    weights: xr.DataArray,
    overlap: Overlap,
    decision: Floats | None = None,
    left_out: Floats | None = None,
    null: Floats | None = None,
) -> list[Share]:
    """Return the shares of every set, by rank; of kernels, of the first ten.

    Shapes: decision (J, G); left_out (J, G); null (N, G).
    """
    n_sets, unknown = len(sets.names), np.full((1, len(sets.names)), math.nan)
    of_weight = sets.summed(weight_shares(weights))
    selected = frequencies(sets.selected(weights))
    of_decision = unknown if decision is None else decision
    rises = unknown if left_out is None else left_out
    sizes = np.bincount(sets.place[sets.place >= 0], minlength=n_sets)
    means = (of_weight if decision is None else np.nan_to_num(of_decision)).mean(axis=0)
    ranks = 1 + len(means) - np.searchsorted(np.sort(means), means + EQUAL, side="right")
    order = np.argsort(ranks, kind="stable")[: LARGEST if sets.level == "kernel" else None]
    permuted = unknown if null is None else null
    beyond = (permuted >= means - EQUAL).sum(axis=0)
    p_values = np.where(np.isnan(permuted[0]), math.nan, (1 + beyond) / (1 + len(permuted)))
    return [
        Share(
            sets.level,
            sets.names[g],
            int(sizes[g]),
            int(ranks[g]),
            known_interval(of_decision[:, g], overlap),
            _bounded(of_weight[:, g], overlap) if sizes[g] else UNKNOWN,
            known_interval(rises[:, g], overlap),
            selected[g],
            float(permuted[:, g].mean()),
            float(p_values[g]),
        )
        for g in order.tolist()
    ]


def _bounded(shares: Floats, overlap: Overlap) -> Interval:
    """Return the mean of shares between 0 and 1, with an interval that keeps to these bounds."""
    if len(shares) < 2:
        return Interval(float(shares[0]), math.nan, math.nan)
    return loss_interval(shares, overlap, EXACT, 1.0)


def stability_of_choice(sets: KernelSets | None, weights: xr.DataArray) -> Interval:
    """Return Nogueira's measure of which sets, or kernels, are selected; NaN for one split."""
    chosen = is_selected(weights) if sets is None else sets.selected(weights)
    return UNKNOWN if len(chosen) < 2 else selection_stability(chosen)
