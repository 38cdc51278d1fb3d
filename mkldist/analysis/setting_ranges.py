"""What all settings of a method give where one of them was chosen: least, most, and ties."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mkldist.analysis.pairing import Results
from mkldist.analysis.published_number import Published
from mkldist.analysis.split_values import nodes_of
from mkldist.arrays import Floats
from mkldist.results.node_variables import metric_of
from mkldist.results.rows import hyperparameters
from mkldist.results.schema import SPLIT


class SettingRange(NamedTuple):
    """Means of a metric over the splits on which all settings are complete.

    Parameters
    ----------
    n_settings : int
        Number of settings; 0 if there was nothing to choose, or no such split.
    least, most : float
        Least and largest mean of a setting.
    n_tied : tuple of int
        How many settings share the best validation score, split by split.
    tied_least, tied_most : float
        Means over the splits of the least and the largest value of these.
    """

    n_settings: int = 0
    least: float = 0.0
    most: float = 0.0
    n_tied: tuple[int, ...] = ()
    tied_least: float = 0.0
    tied_most: float = 0.0


def setting_range(results: Results, one: Published) -> SettingRange:
    """Return what all settings give for a number that is published for a chosen one.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    one : Published
        Data set, method and metric; nothing is said of a number with a setting.
    """
    nodes = nodes_of(results, one)
    if one.setting or len(nodes) != 1 or one.metric not in nodes[0].data_vars:
        return SettingRange()
    (node,) = nodes
    dims, metric = hyperparameters(node), metric_of(node)
    validation = metric.variable("validation")
    if not dims or set(node[one.metric].dims) != {SPLIT, *dims} or validation not in node.data_vars:
        return SettingRange()
    values, errors = (
        node[name].transpose(SPLIT, *dims).to_numpy().reshape(node.sizes[SPLIT], -1)
        for name in (one.metric, validation)
    )
    errors = metric.loss(errors)
    whole = np.isfinite(values).all(axis=1) & np.isfinite(errors).all(axis=1)
    if values.shape[1] < 2 or not whole.any():
        return SettingRange()
    return _range(values[whole].astype(float), errors[whole])


def _range(values: Floats, errors: Floats) -> SettingRange:
    tied = errors == errors.min(axis=1, keepdims=True)
    means = values.mean(axis=0)
    low, high = np.where(tied, values, np.inf), np.where(tied, values, -np.inf)
    return SettingRange(
        values.shape[1],
        float(means.min()),
        float(means.max()),
        tuple(map(int, tied.sum(axis=1))),
        float(low.min(axis=1).mean()),
        float(high.max(axis=1).mean()),
    )
