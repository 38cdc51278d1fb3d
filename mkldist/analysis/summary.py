"""The results of a sweep in one table, averaged over the splits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.paired_losses import Standing, scored_part
from mkldist.core.arrays import Array, Bools, Floats, Ints
from mkldist.core.metrics import METRICS, PARTS, Metric, part_of_variable
from mkldist.results.rows import (
    hyperparameters,
    method_nodes,
    place_of,
    selected,
    selecting_losses,
    settings_of,
)
from mkldist.results.schema import (
    OF_SPLITS,
    RUN_ID,
    SPLIT,
    STATE,
    RunState,
    metric_in,
    metric_of,
    task_in,
    task_of,
)
from mkldist.solvers.outcome import SAMPLED, STATIONARITY, StopReason
from mkldist.spec.model import TRIAL

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from mkldist.results.tree import Snapshot
    from mkldist.spec.kinds import Task

Row = dict[str, Any]
ROUNDING = 1.0 + 1e-12  # of means that are equal but for the order of their sums
EARLY = tuple(reason for reason in StopReason if reason is not StopReason.CONVERGED)
IDENTITY_COLUMNS = 3  # data set, bank and method


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """Runs of one method on one data set and bank.

    Parameters
    ----------
    place : dict of str to str
        Names of the data set, the bank and the method.
    task : {"classification", "regression"}
        Task of the data set.
    metric : Metric
        By which the runs are ranked.
    dims : dict of str to array
        Values of the hyperparameters.
    planned : (n_splits, ...) bool
        Which splits and settings have a run, a dim for each hyperparameter.
    values : dict of str to (n_splits, ...) array
        Variables by name; those that the node lacks are left out.
    splits : dict of str to (n_splits,) array
        :data:`mkldist.results.schema.OF_SPLITS` by name; those that the tree lacks are left out.
    """

    place: Mapping[str, str]
    task: Task
    metric: Metric
    dims: Mapping[str, Array]
    planned: Array
    values: Mapping[str, Array]
    splits: Mapping[str, Array] = field(default_factory=dict)


def arrays_of(tree: xr.DataTree, names: Collection[str]) -> list[NodeArrays]:
    """Return the runs of a tree.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    names : collection of str
        Variables to read.
    """
    found = []
    for node in method_nodes(tree):
        data, dims = node.to_dataset(), hyperparameters(node)
        own = (name for name in names if name in data)
        found.append(
            NodeArrays(
                place_of(node),
                task_of(node),
                metric_of(node),
                {name: data[name].to_numpy() for name in dims},
                data[RUN_ID.name].transpose(SPLIT, *dims).to_numpy().astype(object) != "",
                {name: data[name].transpose(SPLIT, *dims).to_numpy() for name in own},
                {name: data[name].to_numpy() for name in OF_SPLITS if name in data.coords},
            )
        )
    return found


def recorded_arrays(held: Snapshot) -> list[NodeArrays]:
    """Return the runs of an output folder, read without xarray, which takes long to import."""
    found = []
    for node in held.layout.nodes:
        dataset, *_, method = node.path.split("/")
        splits = held.layout.shared[dataset]
        found.append(
            NodeArrays(
                {"dataset": dataset, "bank": node.attributes["bank"], "method": method},
                task_in(node.attributes),
                metric_in(node.attributes),
                {name: node.coordinates[name].values for name in node.dims if name != SPLIT},
                node.run_ids != "",
                held.values(node),
                {name: splits[name].values for name in OF_SPLITS if name in splits},
            )
        )
    return found


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
        ``early_max_iter``, ``early_time_limit``, ``early_stalled``, ``early_rank_limit``,
        ``early_memory_limit``
            numbers of these by the reason for which they stopped;
        ``metric``
            name of the metric by which the rows are ranked;
        ``test_error_mean``, ``test_error_sd``, ``test_error_low``, ``test_error_high``
            fraction of misclassified test points, and its 95 % interval by
            :func:`mkldist.analysis.loss_interval`; and so for every metric that the runs have:
            ``balanced_error``, ``auc``, ``average_precision``, ``f1``, ``log_loss``, ``brier``,
            or for regression ``rmse``, ``mae`` and ``r2``; with ``unlabelled_`` in front, those of
            unlabelled points, such as ``unlabelled_error_mean`` and ``unlabelled_auc_mean``;
        ``constant_mean``
            the metric of the best constant prediction, such as the most frequent class;
        ``no_better``
            true where the metric is no better than that by a one-sided corrected resampled t-test
            at 0.05, or by the interval where the splits give no test;
        ``active_mean``, ``active_sd``
            number of kernels of more than 0.001 of the largest weight;
        ``seconds_mean``, ``seconds_sd``
            own time of the run and its share of the passes;
        ``gap_max``
            the largest certified relative duality gap; NaN where no run has one;
        ``exact_gap_max``
            the largest gap to the kernels themselves, of runs on a bank of factors;
        ``sampled``
            number of runs of which a sample of the points told that gap;
        ``stationarity_max``
            the largest stationarity, of methods whose problem is not convex;
        ``validation_error_mean``, ``validation_error_sd``, ``validation_auc_mean`` …
            metrics on the inner folds of a sweep with ``[selection]``;
        ``lacking``
            number of splits on which another row of the data set has a complete run and this has
            none: their means are not of the same points;
        ``best``
            true in the rows of the smallest :func:`loss_of` their data set, among those that lack
            no split and are not ``no_better``;
        ``edge``
            in the row of a method's smallest loss, the hyperparameters whose value there is the
            least or the greatest of several, such as ``C = 1000``; else empty, as where another
            value gives the same loss.
    """
    import pandas as pd

    rows = summary_rows(arrays_of(tree, INPUTS))
    return pd.DataFrame(rows, columns=None if rows else [*_IDENTITY, "task"])


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
        ``edge`` names the hyperparameters whose selected value is the least or the greatest of its
        grid in most splits.
    """
    chosen = selected(tree)
    table = summary(chosen)
    names = dict.fromkeys(name for node in method_nodes(tree) for name in settings_of(node))
    values = {
        tuple(place_of(node).values()): _chosen_of(node, names) for node in method_nodes(chosen)
    }
    keys = list(zip(table["dataset"], table["bank"], table["method"], strict=True))
    for place, name in enumerate(names):
        column = [_span(values[key][name]) if name in values[key] else None for key in keys]
        table.insert(IDENTITY_COLUMNS + place, name, column)
    edges = {
        tuple(place_of(node).values()): _selected_edge(node, chosen[node.path].to_dataset())
        for node in method_nodes(tree)
    }
    table["edge"] = [edges[key] for key in keys]
    return table


def _chosen_of(node: xr.DataTree, names: Iterable[str]) -> dict[str, Array]:
    """Return the selected values of hyperparameters, of the splits that have a complete run."""
    complete = node[STATE.name].to_numpy() == RunState.COMPLETE.value
    return {name: node[name].to_numpy()[complete] for name in names if name in node.ds}


def _selected_edge(node: xr.DataTree, chosen: xr.Dataset) -> str:
    """Return the hyperparameters that most splits select at an end of their grid.

    A split counts if no setting with another value has the same loss.
    """
    dims = hyperparameters(node)
    losses = selecting_losses(node)
    least = np.fmin.reduce(losses.reshape(len(losses), -1), axis=1)
    tied = losses <= least.reshape(-1, *[1] * len(dims)) * ROUNDING
    n_splits = int((chosen[STATE.name] == RunState.COMPLETE.value).sum())
    found = []
    for axis, name in enumerate(dims, start=1):
        values = node[name].to_numpy() if name in settings_of(node) else np.empty(0)
        others = tuple(other for other in range(1, losses.ndim) if other != axis)
        shared = tied.any(axis=others)
        alone = shared.sum(axis=1) == 1
        for end in _ends(values):
            count = int((alone & shared[:, values == end].any(axis=1)).sum())
            if 2 * count > n_splits:
                found.append(f"{name} = {end:g} in {count} of {n_splits} splits")
    return ", ".join(found)


def _ends(values: Array) -> tuple[float, ...]:
    """Return the least and the greatest of several numbers; nothing for one value or for text."""
    if values.dtype.kind not in "fi" or len(values) < 2:
        return ()
    return float(values.min()), float(values.max())


def _span(values: np.ndarray[Any, Any]) -> str | None:
    """Return the values of some splits as a text; None without any."""
    if not len(values):
        return None
    if values.dtype.kind in "fiu":
        low, high = f"{values.min():g}", f"{values.max():g}"
        return low if low == high else f"{low}…{high}"
    return "|".join(dict.fromkeys(map(str, values)))


def loss_of(row: Row) -> float:
    """Return the loss of a row, by which the best one is found; NaN without one.

    It is that of the sweep's metric, of the part that :func:`ranked_by` names.
    """
    name = ranked_by(row)
    return float(METRICS[row["metric"]].loss(row[f"{name}_mean"])) if name else np.nan


def ranked_by(row: Row) -> str:
    """Return the name of the variable by which a row is ranked; empty without one.

    It is that of the sweep's metric on the inner folds, where there are any; else on the test part,
    or on the unlabelled points without a test part.
    """
    names = (METRICS[row["metric"]].variable(part) for part in PARTS)
    return next((name for name in names if not is_missing(row.get(f"{name}_mean"))), "")


def is_missing(value: Any) -> bool:
    """Return True for None and NaN."""
    return value is None or bool(value != value)


_DONE = "done"  # of a row, until it is returned: whether its run on each split is complete
_IDENTITY = ("dataset", "bank", "method")
SCORES = {m.variable(part): (m, part) for m in METRICS.values() for part in PARTS}
"""Metric and part of the split of every score of a row."""
INPUTS = (
    "state", "stop_reason", *SCORES, "active_kernels", "gap", "exact_gap", SAMPLED,
    STATIONARITY, "seconds",
)  # fmt: skip
"""Variables that :func:`summary_rows` needs."""


def summary_rows(nodes: Sequence[NodeArrays]) -> list[Row]:
    """Return the rows of :func:`summary`."""
    names = dict.fromkeys(name for node in nodes for name in node.dims)
    held = {name for node in nodes for name in node.values}
    held |= {node.metric.variable() for node in nodes}
    rows = []
    for node in nodes:
        own = list(_rows_of(node, names, [name for name in SCORES if name in held]))
        if own:
            _mark_edges(own, {} if TRIAL in node.dims else node.dims)
        rows += own
    for dataset in {row["dataset"] for row in rows}:
        own = [row for row in rows if row["dataset"] == dataset]
        able, whole = np.array([not row["no_better"] for row in own]), _lacking(own) == 0
        # Marks are of the test parts, which must not choose another row where inner folds choose.
        validated = any(part_of_variable(ranked_by(row)) == "validation" for row in own)
        best = able & _are_best(own, whole if validated else able & whole)
        for row, lacking, is_best in zip(own, _lacking(own).tolist(), best.tolist(), strict=True):
            row["lacking"], row["best"] = lacking, is_best
    for row in rows:
        del row[_DONE]
    return rows


def _lacking(rows: Sequence[Row]) -> Ints:
    """Return on how many splits others of the rows have a complete run and a row has none, (R,)."""
    done = np.array([row[_DONE] for row in rows])
    lacking: Ints = (done.any(axis=0) & ~done).sum(axis=1)
    return lacking


def _are_best(rows: Sequence[Row], able: Bools) -> Bools:
    """Return whether each row has the least loss, but for rounding, of those that are able to.

    The mean of a row that lacks splits is one of other points, perhaps of easier ones.
    """
    losses = np.where(able, [loss_of(row) for row in rows], np.nan)
    best: Bools = losses <= np.fmin.reduce(losses) * ROUNDING
    return best


def _rows_of(
    node: NodeArrays, names: Sequence[str] | dict[str, None], scores: Sequence[str]
) -> Iterator[Row]:
    """Yield the row of each setting of a node, in the order of their first runs."""
    n_splits, *grid = node.planned.shape
    planned = node.planned.reshape(n_splits, -1)
    flat = {name: values.reshape(n_splits, -1) for name, values in node.values.items()}
    state = flat.get("state", np.full(planned.shape, np.nan))
    complete = planned & (state == RunState.COMPLETE.value)
    failed = planned & (state == RunState.FAILED.value)
    columns = _averages(planned, complete, failed, flat, scores)
    columns |= _inferences(node, complete, flat, scores)
    settings = np.flatnonzero(planned.any(axis=0))
    for number in sorted(settings.tolist(), key=lambda setting: planned[:, setting].argmax()):
        place = np.unravel_index(number, grid) if grid else ()
        of = dict(zip(node.dims, place, strict=True))
        own = {n: node.dims[n][of[n]] if n in of else np.nan for n in names}
        yield {
            **node.place,
            **{n: value.item() if hasattr(value, "item") else value for n, value in own.items()},
            "task": node.task,
            "metric": node.metric.name,
            _DONE: complete[:, number],
            **{name: column[number].item() for name, column in columns.items()},
        }


def _mark_edges(rows: Sequence[Row], grid: Mapping[str, Array]) -> None:
    """Set in the rows of least loss which hyperparameters lie at an end of their grid."""
    are_best = _are_best(rows, _lacking(rows) == 0)
    best = [row for row, is_best in zip(rows, are_best, strict=True) if is_best]
    for row in rows:
        row["edge"] = ""
    for row in best:
        at_end = {
            name: f"{name} = {row[name]:g}"
            for name, values in grid.items()
            if row[name] in _ends(values) and all(other[name] == row[name] for other in best)
        }
        row["edge"] = ", ".join(at_end.values())


def _averages(
    planned: Array,
    complete: Array,
    failed: Array,
    values: dict[str, Array],
    names: Sequence[str],
) -> dict[str, Array]:
    """Return counts of states, and means and deviations over the splits, by setting."""
    nothing = np.full(planned.shape, np.nan)
    reason = values.get("stop_reason", nothing)
    early = complete & (reason != StopReason.CONVERGED.value)

    def of_complete(name: str) -> Floats:
        return np.where(complete, values.get(name, nothing).astype(float), np.nan)

    scores = {score: _mean_sd(of_complete(score)) for score in names}
    active, taken = _mean_sd(of_complete("active_kernels")), _mean_sd(of_complete("seconds"))
    return {
        "complete": complete.sum(axis=0),
        "failed": failed.sum(axis=0),
        "waiting": (planned & ~complete & ~failed).sum(axis=0),
        "early": early.sum(axis=0),
        **{f"early_{one}": (complete & (reason == one.value)).sum(axis=0) for one in EARLY},
        **{f"{score}_mean": mean for score, (mean, _) in scores.items()},
        **{f"{score}_sd": sd for score, (_, sd) in scores.items()},
        "active_mean": active[0],
        "active_sd": active[1],
        "seconds_mean": taken[0],
        "seconds_sd": taken[1],
        "gap_max": np.fmax.reduce(of_complete("gap"), axis=0),
        "exact_gap_max": np.fmax.reduce(of_complete("exact_gap"), axis=0),
        "sampled": (~np.isnan(of_complete(SAMPLED))).sum(axis=0),
        "stationarity_max": np.fmax.reduce(of_complete(STATIONARITY), axis=0),
    }


def _inferences(
    node: NodeArrays, complete: Array, values: dict[str, Array], scores: Sequence[str]
) -> dict[str, Array]:
    """Return the intervals of the scores of test or unlabelled parts, and who beats a constant."""
    n_settings = complete.shape[1]
    scored = scored_part(node.splits)
    constants = node.splits.get("constant_score", np.full(len(complete), np.nan))
    no_better = np.zeros(n_settings, dtype=np.bool_)
    found: dict[str, Array] = {
        "constant_mean": _mean_sd(np.where(complete, constants[:, None], np.nan))[0]
    }
    for name in scores:
        metric, part = SCORES[name]
        if part != scored:
            continue
        ends = np.full((2, n_settings), np.nan)
        for setting in range(n_settings) if name in values else ():
            own = np.where(complete[:, setting], values[name][:, setting].astype(float), np.nan)
            standing = Standing.of(own, metric, node.splits, part)
            if standing is not None:
                ends[:, setting] = standing.low, standing.high
                no_better[setting] |= metric is node.metric and standing.no_better
        found |= {f"{name}_low": ends[0], f"{name}_high": ends[1]}
    return found | {"no_better": no_better}


def _mean_sd(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation over the splits, of the values that are not NaN."""
    count = (~np.isnan(values)).sum(axis=0)
    mean = np.nansum(values, axis=0) / np.where(count > 0, count, np.nan)
    squares = np.nansum((values - mean) ** 2, axis=0)
    return mean, np.sqrt(squares / np.where(count > 1, count - 1, np.nan))
