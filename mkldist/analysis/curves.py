"""Curves of results.

The certified gap of traced runs against passes over the bank and seconds; the objective of each
method along a hyperparameter, such as its regularisation; its loss against the number of training
points, and against its number of kernels, those it selects or those it is given; and ROC,
precision-recall and calibration curves of its decisions on test rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkldist.analysis.comparison import Chosen, Results, methods_by_data_set, problem_settings
from mkldist.analysis.growth import series_names
from mkldist.analysis.losses import (
    Compared,
    at_best,
    compared_losses,
    loss_name,
    losses_at_best,
    overlap_of,
)
from mkldist.analysis.statistics import Overlap, known_interval
from mkldist.calibration import fit_calibration
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.errors import InputError, nearest
from mkldist.methods.registry import METHODS
from mkldist.results.rows import (
    complete_losses,
    complete_values,
    hyperparameters,
    method_nodes,
    place_of,
)
from mkldist.results.schema import CONVERGENCE, ITERATION, SPLIT

if TYPE_CHECKING:
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

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/growth")  # of several sizes  # doctest: +SKIP
    >>> curve = mkldist.analysis.learning_curve(tree)  # doctest: +SKIP
    >>> curve[["method", "n_train", "mean"]].round(3).head(4)  # doctest: +SKIP
                    method  n_train   mean
    0    level (random-10)       50  0.074
    1    level (random-10)      100  0.056
    2  uniform (random-10)       50  0.067
    3  uniform (random-10)      100  0.074
    """
    return curves_of(compared_losses(tree))


def curves_of(compared: Sequence[Compared]) -> pd.DataFrame:
    """Return the table of :func:`learning_curve` from losses that have been read."""
    rows = [
        {
            "dataset": one.series,
            "method": str(method),
            "n_train": round(one.overlap.n_train),
            **_loss_of(one.loss, one.losses[method].to_numpy(float), one.overlap),
        }
        for one in compared
        for method in one.losses
    ]
    table = pd.DataFrame(rows, columns=["dataset", "method", "n_train", *_LOSS])
    several = table.groupby("dataset")["n_train"].transform("nunique") > 1
    order = {name: place for place, name in enumerate(table["method"].unique())}
    return table[several].sort_values(
        ["dataset", "method", "n_train"],
        key=lambda values: values.map(order) if values.name == "method" else values,
        ignore_index=True,
    )


def _loss_of(loss: str, values: Floats, overlap: Overlap) -> dict[str, Any]:
    """Return the mean of a loss over the splits that have it, its interval, and their number."""
    interval = known_interval(values, overlap)._asdict()
    return {"loss": loss, **interval, "n_splits": int((~np.isnan(values)).sum())}


N_KERNELS = "n_kernels"
_LOSS = ("loss", "mean", "low", "high", "n_splits")


def loss_by_active_kernels(tree: xr.DataTree) -> pd.DataFrame:
    """Return the mean loss of each setting of each method, and how many kernels it selects.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it; the sweep may be running.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method and setting with a complete run: ``dataset``,
        ``bank``, ``method``, the hyperparameters, ``active_kernels`` (mean number of kernels of
        more than 0.001 of the largest weight), ``loss`` (name of the loss), ``mean``, ``low`` and
        ``high`` (the 95 % interval by Nadeau & Bengio 2003; NaN for one split) and ``n_splits``.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> table = mkldist.analysis.loss_by_active_kernels(tree)  # doctest: +SKIP
    >>> table = table.query("method == 'level'").round(3)  # doctest: +SKIP
    >>> table[["C", "active_kernels", "mean"]]  # doctest: +SKIP
          C  active_kernels   mean
    3   0.1            33.0  0.048
    4   1.0            38.4  0.037
    5  10.0            35.6  0.035
    """
    rows = [row for node in method_nodes(tree) for row in _settings(node)]
    columns = ["dataset", "bank", "method", "active_kernels", *_LOSS]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def loss_by_bank_size(tree: xr.DataTree) -> pd.DataFrame:
    """Return the mean loss of each method on each size of ``[[banks]] n_kernels = [...]``.

    On each bank a method has its setting chosen there: by validation in each split, else that of
    the least mean loss on the test parts.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it; the sweep may be running.

    Returns
    -------
    DataFrame
        A row for each data set, bank of several sizes, method and size: ``dataset``, ``bank``
        (without its size), ``method``, ``n_kernels``, and ``loss``, ``mean``, ``low``, ``high`` and
        ``n_splits`` as in :func:`loss_by_active_kernels`.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/growth")  # of several sizes  # doctest: +SKIP
    >>> table = mkldist.analysis.loss_by_bank_size(tree)  # doctest: +SKIP
    >>> table[["dataset", "method", "n_kernels", "mean"]].round(3).head(3)  # doctest: +SKIP
       dataset   method  n_kernels   mean
    0  wdbc-50    level         10  0.074
    1  wdbc-50  uniform         10  0.067
    2  wdbc-50    level         30  0.040
    """
    nodes = method_nodes(at_best(tree))
    banks = {path: bank for path, (_, bank) in series_names(nodes).items()}
    rows = []
    for node in nodes:
        loss = loss_name([node])
        values = losses_at_best(node, loss)
        if N_KERNELS in node.ds.coords and not np.isnan(values).all():
            n_kernels = int(node.ds[N_KERNELS].median())
            place = place_of(node) | {"bank": banks[node.path]}
            rows.append(
                {**place, N_KERNELS: n_kernels, **_loss_of(loss, values, overlap_of(node.ds))}
            )
    table = pd.DataFrame(rows, columns=["dataset", "bank", "method", N_KERNELS, *_LOSS])
    group = ["dataset", "bank", "method"]
    several = table.groupby(group)[N_KERNELS].transform("nunique") > 1
    return table[several].reset_index(drop=True)


def _settings(node: xr.DataTree) -> Iterator[dict[str, Any]]:
    """Yield the row of each setting of a node that has a complete run."""
    loss, dims = loss_name([node]), hyperparameters(node)
    if not {loss, "active_kernels"} <= set(node.data_vars):
        return
    losses = complete_losses(node, loss, (SPLIT, *dims))
    kernels = complete_values(node, "active_kernels", (SPLIT, *dims))
    for place in np.ndindex(losses.shape[1:]):
        values = losses[:, *place]
        known = ~np.isnan(values)
        if known.any():
            yield {
                **place_of(node),
                **{n: node.ds[n].to_numpy()[i].item() for n, i in zip(dims, place, strict=True)},
                "active_kernels": float(kernels[known, *place].mean()),
                **_loss_of(loss, values, overlap_of(node.ds)),
            }


def objective_path(tree: xr.DataTree, along: str = "C") -> pd.DataFrame:
    """Return the mean loss and objective of each method at each value of a hyperparameter.

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
        define them), ``method``, the value, ``loss`` (name of the loss), ``mean``, ``sd``,
        ``objective`` and ``objective_sd`` (means and deviations over the splits; NaN for one
        split), ``lower_bound`` (mean) and ``n_splits``.  Values without a complete run have no row.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> path = mkldist.analysis.objective_path(tree)  # doctest: +SKIP
    >>> path = path.query("method == 'uniform'").round(3)  # doctest: +SKIP
    >>> path[["C", "mean", "objective"]]  # doctest: +SKIP
           C   mean  objective
    9    0.1  0.051      7.786
    10   1.0  0.035     30.472
    11  10.0  0.034     63.621
    """
    columns = ["dataset", "bank", "problem", "method", along, "loss", "mean", "sd", "objective",
               "objective_sd", "lower_bound", "n_splits"]  # fmt: skip
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
    dims = (SPLIT, along, *(dim for dim in hyperparameters(node) if dim != along))
    losses, objectives, bounds = (
        values.reshape(*values.shape[:2], -1)
        for values in (
            complete_losses(node, loss, dims),
            *(complete_values(node, name, dims) for name in ("objective", "dual_objective")),
        )
    )
    for place, value in enumerate(node[along].to_numpy().tolist()):
        known = np.isfinite(losses[:, place]) & np.isfinite(objectives[:, place])
        means = pd.DataFrame(losses[:, place]).where(known).mean()
        if known.any():
            best = int(means.argmin())
            there = known[:, best]
            own = pd.DataFrame([losses[there, place, best], objectives[there, place, best]]).T
            of_both = [float(one) for name in own for one in (own[name].mean(), own[name].std())]
            lower = float(bounds[there, place, best].mean())
            yield value, loss, *of_both, lower, len(own)


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

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> curves = mkldist.analysis.convergence_curves(tree, against="passes")  # doctest: +SKIP
    >>> curves.columns.tolist()  # doctest: +SKIP
    ['dataset', 'bank', 'method', 'passes', 'gap_low', 'gap', 'gap_high', 'runs']
    """
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


GRID = np.linspace(0.0, 1.0, 101)
"""Rates at which curves of splits are averaged."""
BINS, ROUNDING = 10, 1e-12


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decision values of one class at the test rows of one split."""

    split: int  # The split
    rows: Ints  # (t,) intp: The rows
    positive: Bools  # (t,) bool: True for rows of the class
    values: Floats  # (t,) float64: Decision values: the larger, the more likely the class


def decisions_of(side: Chosen, class_name: str | None = None) -> list[Decisions]:
    """Return the decisions of a method on the test rows of each split that has recorded them."""
    data, found = side.data, []
    if "label" not in data.coords or side.node.attrs.get("task") == "regression":
        return []
    labels, n_test = data["label"].to_numpy(), data["n_test"].to_numpy()
    names = classes_of(side)
    place = names.index(class_name) if class_name in names else (1 if len(names) == 2 else 0)
    for split, record in enumerate(side.records):
        if record is None or not len(record.decision_values):
            continue
        test = slice(int(n_test[split]))
        rows, values = record.test_rows[test], np.atleast_2d(record.decision_values)[:, test]
        own = labels[rows]
        if len(values) > 1:
            positive, decided = own == place, values[place]
        else:
            positive = (own > 0) == (place == 1)
            decided = values[0] if place == 1 else -values[0]
        if positive.any() and not positive.all():
            found.append(Decisions(split, rows, positive, decided))
    return found


def classes_of(side: Chosen) -> list[str]:
    """Return the names of the classes of a method's data set, of two first that of -1."""
    names = side.data.coords.get("class_name")
    if names is None:
        names = side.node.ds.coords.get("class_name")
    return ["-1", "+1"] if names is None else [str(name) for name in names.to_numpy().tolist()]


def roc(decisions: list[Decisions]) -> pd.DataFrame:
    """Return the mean ROC curve of the splits.

    Columns ``false_positive_rate``, from 0 to 1, and ``true_positive_rate``, its mean over the
    splits, with ``sd`` over them. A curve of one split has the thresholds' own rates.
    """
    from sklearn.metrics import roc_curve

    def curve(one: Decisions) -> tuple[Floats, Floats]:
        rate, hits, _ = roc_curve(one.positive, one.values)
        return rate, hits

    return _mean_curve(decisions, curve, "false_positive_rate", "true_positive_rate")


def precision_recall(decisions: list[Decisions]) -> pd.DataFrame:
    """Return the mean precision-recall curve of the splits.

    Columns ``recall``, from 0 to 1, and ``precision``, its mean over the splits, with ``sd`` over
    them. The precision at a recall is that of the least recall of any threshold that is no less, as
    in the average precision.
    """
    from sklearn.metrics import precision_recall_curve

    def curve(one: Decisions) -> tuple[Floats, Floats]:
        precision, recall, _ = precision_recall_curve(one.positive, one.values)
        return GRID, precision[::-1][np.searchsorted(recall[::-1], GRID - ROUNDING)]

    return _mean_curve(decisions, curve, "recall", "precision")


def _mean_curve(
    decisions: list[Decisions], curve: Callable[[Decisions], tuple[Floats, Floats]], x: str, y: str
) -> pd.DataFrame:
    """Return the mean of curves over the splits, at equally spaced places of several."""
    curves = [curve(one) for one in decisions]
    if len(curves) == 1:
        [(places, heights)] = curves
        return pd.DataFrame({x: places, y: heights, "sd": np.nan})
    found = np.array([np.interp(GRID, places, heights) for places, heights in curves])
    sd = found.std(axis=0, ddof=1) if len(found) else np.full(len(GRID), np.nan)
    mean = found.mean(axis=0) if len(found) else np.full(len(GRID), np.nan)
    return pd.DataFrame({x: GRID, y: mean, "sd": sd})


def out_of_split_probabilities(decisions: list[Decisions]) -> list[Floats]:
    """Return probabilities of the class at the rows of each split, by a sigmoid of other splits.

    Rows that both have do not count.  One split has a sigmoid of its own rows, whose probabilities
    are fitted to their labels.
    """
    found = []
    for one in decisions:
        others = [other for other in decisions if other is not one]
        new = [~np.isin(other.rows, one.rows) for other in others]
        values = [other.values[own] for other, own in zip(others, new, strict=True)]
        positive = [other.positive[own] for other, own in zip(others, new, strict=True)]
        if not sum(map(len, values)):
            values, positive = [one.values], [one.positive]
        fitted = fit_calibration(np.concatenate(values), np.concatenate(positive))
        found.append(fitted.probabilities(one.values))
    return found


def calibration(decisions: list[Decisions], n_bins: int = BINS) -> pd.DataFrame:
    """Return how often rows of about equal probability are of the class.

    Probabilities are those of :func:`out_of_split_probabilities`, of all splits together.

    A row for each bin: ``probability``, the mean, ``frequency``, the share of rows of the class,
    and the number ``n`` of rows.
    """
    from sklearn.calibration import calibration_curve

    named = ["probability", "frequency", "n"]
    if not decisions:
        return pd.DataFrame(columns=named, dtype=float)
    probabilities = np.concatenate(out_of_split_probabilities(decisions))
    positive = np.concatenate([one.positive for one in decisions])
    n_bins = max(1, min(n_bins, len(positive) // 5))
    frequency, mean = calibration_curve(positive, probabilities, n_bins=n_bins, strategy="quantile")
    edges = np.percentile(probabilities, np.linspace(0.0, 100.0, n_bins + 1))
    bins = np.bincount(np.searchsorted(edges[1:-1], probabilities), minlength=n_bins)
    return pd.DataFrame({"probability": mean, "frequency": frequency, "n": bins[bins > 0]})


def prediction_curves(
    results: str | Path | Results, dataset: str, method: str, class_name: str | None = None
) -> dict[str, pd.DataFrame]:
    """Return the curves of a method's decisions on test rows.

    Parameters
    ----------
    results : str, Path or Results
        Output folder of a sweep with ``[outputs] predictions = true``.
    dataset, method : str
        Names in the results, the method as METHOD or BANK/METHOD.
    class_name : str, optional
        The class against the rest, of more than two; by default the first.

    Returns
    -------
    dict of str to DataFrame
        ``roc``, ``precision_recall`` and ``calibration``, as of the functions of these names.

    Raises
    ------
    mkldist.errors.InputError
        If the results have no such method, or no decisions of it.

    Examples
    --------
    >>> from mkldist import analysis
    >>> curves = analysis.prediction_curves("results/quickstart", "wdbc", "level")  # doctest: +SKIP
    >>> list(curves)  # doctest: +SKIP
    ['roc', 'precision_recall', 'calibration']
    """
    found = results if isinstance(results, Results) else Results.of(results)
    sides: dict[str, Any] = dict(methods_by_data_set(found, [method])).get(dataset, {})
    decisions = decisions_of(next(iter(sides.values())), class_name) if sides else []
    if not decisions:
        where = f"prediction_curves({dataset!r}, {method!r})"
        expected = "classes, with [outputs] predictions = true"
        raise InputError(where, "no decision values of test rows", expected)
    return {
        "roc": roc(decisions),
        "precision_recall": precision_recall(decisions),
        "calibration": calibration(decisions),
    }
