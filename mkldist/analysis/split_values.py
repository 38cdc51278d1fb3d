"""Values of results by split: as they are, as ratios of two methods, and over data sets."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.analysis.comparison import loss_name
from mkldist.analysis.pairing import Chosen, Results
from mkldist.analysis.published_number import Published
from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.errors import DataError, nearest
from mkldist.results.rows import hyperparameters, place_of
from mkldist.results.schema import CONVERGENCE, SPLIT, STATE
from mkldist.results.state import RunState
from mkldist.solvers.outcome import StopReason
from mkldist.spec.toml_texts import TooLongError, parsed_toml

if TYPE_CHECKING:
    import xarray as xr


def weight_changes(trace: xr.Dataset) -> Floats:
    """Return the mean change of the five largest kernel weights between two iterations of each run.

    A change is the sum of ``|d_m(t) - d_m(t - 1)|`` over the kernels that are among the five
    largest in one of the two iterations; a weight that is not kept counts as 0.

    Parameters
    ----------
    trace : xarray.Dataset
        The group ``convergence`` of a method at one setting, with the dim ``split``.

    Returns
    -------
    (J,) float64
        One number a split; NaN for a run without two iterations.
    """
    parts = [
        trace[name].transpose("split", "iteration", "rank").to_numpy()
        for name in ("largest_kernels", "largest_weights")
    ]
    return np.array([_mean_change(names, weights) for names, weights in zip(*parts, strict=True)])


def _mean_change(names: npt.NDArray[np.object_], weights: Floats) -> float:
    """Return the mean change of one run, of names and weights (T, R); '' where there is none."""
    known = names != ""
    last = int(known.any(axis=1).sum())
    if last < 2:
        return math.nan
    kept = np.where(known, weights, 0.0)
    now, before = slice(1, last), slice(last - 1)
    same = (names[now, :, None] == names[before, None, :]) & known[now, :, None]
    followed = np.abs(kept[now, :, None] - kept[before, None, :])
    change = np.where(same, followed, 0.0).sum(axis=(1, 2))
    change += np.where(same.any(axis=2), 0.0, kept[now]).sum(axis=1)  # came among the largest
    change += np.where(same.any(axis=1), 0.0, kept[before]).sum(axis=1)  # left them
    return float(change.mean())


PROCESSOR = "processor_seconds"
"""Processor time of a run, that of its share of the passes included."""
OF_PROCESSOR = ("cpu_seconds", "pass_cpu_seconds")
OF_WALL = ("own_seconds", "pass_seconds")
TIMES = frozenset(("seconds", "wall_seconds", PROCESSOR, *OF_PROCESSOR, *OF_WALL))
CHANGE = "weight_change"
"""Mean change of the five largest kernel weights between two iterations, of runs with a trace."""
GROWING = TIMES | Counters().as_dict().keys()
"""What grows as long as a solver works."""
EVERY = "*"
LEAST = "least"


def our_values(results: Results, one: Published) -> Floats | str:
    """Return our values on the splits with complete runs, or why there are none.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    one : Published
        Data set, method, setting and metric.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    values = values_by_split(results, one)
    if isinstance(values, str):
        return values
    known = values[~np.isnan(values)]
    return known if len(known) else "no complete run"


def values_by_split(results: Results, one: Published) -> Floats | str:
    """Return our value on each split, NaN without a complete run, or why there are none.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    one : Published
        Data set, method, setting and metric.  The data set ``*`` stands for all: the mean of each
        is one value.  The metric ``NAME/METHOD`` is the ratio to that of a method on the same
        split.  In the setting, ``kernel_number=least`` is the value of least mean over the splits.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    if one.dataset == EVERY:
        return _means_of_datasets(results, one)
    metric, _, other = one.metric.partition("/")
    if other and metric in TIMES and not is_isolated(results):
        return "runs share passes, so that their times do not compare"
    values = _values(results, replace(one, metric=metric))
    if not other or isinstance(values, str):
        return values
    rival = _values(results, replace(one, metric=metric, method=other))
    return rival if isinstance(rival, str) else values / np.where(rival != 0.0, rival, math.nan)


def is_isolated(results: Results) -> bool:
    """Return True if the sweep did one run at a time, so that times compare."""
    spec: dict[str, Any] = json.loads(str(results.tree.attrs["spec"]))
    return bool(spec.get("execution") == "isolated")


def any_cut_short(results: Results, one: Published) -> bool:
    """Return True if the limit of time ended a run that a number of times or counts is of.

    Such a number is less than what the method needs.
    """
    if one.metric not in GROWING:
        return False
    chosen = _chosen(results, one)
    if isinstance(chosen, str) or "stop_reason" not in chosen.data:
        return False
    reasons = chosen.data["stop_reason"].to_numpy()[chosen.complete]
    return bool((reasons == StopReason.TIME_LIMIT.value).any())


def nodes_of(results: Results, one: Published) -> list[xr.DataTree]:
    """Return the nodes of the data set and the method of a number, one for each bank."""
    return [
        node
        for node in results.nodes()
        if place_of(node)["dataset"] == one.dataset and one.method in _names(node)
    ]


def parsed_setting(setting: str, place: str) -> dict[str, Any]:
    """Return the hyperparameters of ``C=100, p=2``.

    Raises
    ------
    mkldist.errors.DataError
        For a part without a name or a value.
    """
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in setting.split(","))):
        name, equals, value = (text.strip() for text in part.partition("="))
        if not equals or not name:
            raise DataError(f"{place}, column 'setting'", repr(setting), "C=100 or C=100, p=2")
        try:
            found[name] = parsed_toml(f"value = {value}")["value"]
        except TooLongError as error:
            raise DataError(f"{place}, column 'setting'", error.found, error.expected) from None
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


def _means_of_datasets(results: Results, one: Published) -> Floats | str:
    """Return the mean of each data set, or why one has none."""
    means = []
    for name in dict.fromkeys(place_of(node)["dataset"] for node in results.nodes()):
        values = our_values(results, replace(one, dataset=name))
        if isinstance(values, str):
            return f"{values} of {name}"
        means.append(float(values.mean()))
    return np.array(means)


def _values(results: Results, one: Published) -> Floats | str:
    """Return a metric of one method on each split; processor seconds are a sum of two."""
    if one.metric == CHANGE:
        return _of_trace(results, one)
    if one.metric != PROCESSOR:
        return _of_node(results, one)
    own, passes = (_of_node(results, replace(one, metric=name)) for name in OF_PROCESSOR)
    if isinstance(own, str) or isinstance(passes, str):
        return own if isinstance(own, str) else passes
    return own + passes


def _of_node(results: Results, one: Published) -> Floats | str:
    """Return a variable of the runs of one method on each split."""
    chosen = _chosen(results, one)
    if isinstance(chosen, str):
        return chosen
    if one.metric not in chosen.data:
        return f"no {one.metric} in the results"
    _check_metric(chosen, one)
    return chosen.values(one.metric)


def _of_trace(results: Results, one: Published) -> Floats | str:
    """Return how much the weights of one method change, at a setting that is one for all splits."""
    chosen = _chosen(results, one)
    if isinstance(chosen, str):
        return chosen
    at = {name: chosen.data[name] for name in hyperparameters(chosen.node)}
    if CONVERGENCE not in chosen.node or any(value.ndim for value in at.values()):
        return "no trace of one setting in the results"
    changes = weight_changes(chosen.node[CONVERGENCE].to_dataset().sel(at))
    return np.where(chosen.complete, changes, math.nan)


def _chosen(results: Results, one: Published) -> Chosen | str:
    """Return the runs of one method at its setting, or why there are none."""
    nodes = nodes_of(results, one)
    if not nodes:
        return "not in the results"
    if len(nodes) > 1:
        return "in several banks: name it BANK/METHOD"
    (node,) = nodes
    chosen = results.chosen(node, loss_name([node]))
    if one.setting:
        data = _at(node, parsed_setting(one.setting, one.source), one.metric)
        if data is None:
            return "setting not in the results"
        chosen = Chosen(results, node, data, chosen.loss)
    return chosen


def _check_metric(chosen: Chosen, one: Published) -> None:
    """Refuse a metric of which a run does not have one number, such as text."""
    allowed = chosen.metrics()
    if one.metric not in allowed:
        raise DataError(
            f"{one.line or one.source}, column 'metric'",
            repr(one.metric),
            f"a variable of one number a run: {', '.join(allowed)}",
            nearest(one.metric, allowed),
        )


def _names(node: xr.DataTree) -> Iterator[str]:
    place = place_of(node)
    yield from (place["method"], f"{place['bank']}/{place['method']}")


def _at(node: xr.DataTree, setting: Mapping[str, Any], metric: str) -> xr.Dataset | None:
    """Return a node at a setting; None if it was not run or leaves a hyperparameter open."""
    data = node.to_dataset()
    for name in hyperparameters(node):
        values = data[name].to_numpy().tolist()
        if setting.get(name) == LEAST:
            continue
        if name not in setting and len(values) > 1:
            return None
        places = [i for i, value in enumerate(values) if _equal(value, setting.get(name, value))]
        if not places:
            return None
        data = data.isel({name: places[0]})
    if not {*setting} <= {*hyperparameters(node)}:
        return None
    return _least(data, [name for name in setting if setting[name] == LEAST], metric)


def _least(data: xr.Dataset, names: list[str], metric: str) -> xr.Dataset | None:
    """Return runs where a metric has its least mean, of settings complete on all splits."""
    if not names or metric not in data:
        return None if names else data
    done = (data[STATE.name] == RunState.COMPLETE.value).all(SPLIT)
    means = data[metric].mean(SPLIT, skipna=False).where(done)
    if means.isnull().all():
        return None
    return data.isel(means.argmin(names))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9)
    return str(one) == str(other)
