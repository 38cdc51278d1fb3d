"""Settings of a method that a sweep ran: those of its grid, or those of its trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.results.node_arrays import NodeArrays
from mkldist.spec.kinds import Task
from mkldist.spec.trial import TRIAL


@dataclass(frozen=True, eq=False)
class SettingsRun:
    """Settings of one method on one data set and bank, each with its runs on all splits.

    Parameters
    ----------
    place : dict of str to str
        Names of the data set, the bank and the method.
    task : {"classification", "regression"}
        Task of the data set.
    names : tuple of str
        Parameters that vary.
    settings : tuple of dict
        Their values, setting by setting.
    planned : (n_splits, n_settings) bool
        Which splits and settings have a run.
    values : dict of str to (n_splits, n_settings) array
        Variables of the runs by name.
    """

    place: Mapping[str, str]
    task: Task
    names: tuple[str, ...]
    settings: tuple[dict[str, Any], ...]
    planned: Array
    values: Mapping[str, Array]

    @classmethod
    def of(cls, node: NodeArrays) -> SettingsRun:
        """Return the settings of a node; with halving, those on the last rung."""
        return _of_trials(node) if TRIAL in node.dims else _of_grid(node)

    @property
    def differ(self) -> bool:
        """True if splits ran different settings, so that no mean over them compares all."""
        return not self.planned.all(axis=0).all()

    def values_of(self, name: str) -> list[Any]:
        """Return the values of a parameter that were run."""
        return list(dict.fromkeys(own[name] for own in self.settings if name in own))

    def variable(self, name: str) -> Array:
        """Return a variable of the runs; NaN where the node lacks it."""
        return self.values.get(name, np.full(self.planned.shape, np.nan))


def _of_grid(node: NodeArrays) -> SettingsRun:
    n_splits, *grid = node.planned.shape
    return SettingsRun(
        node.place,
        node.task,
        tuple(node.dims),
        tuple(
            {name: _plain(node.dims[name][at]) for name, at in zip(node.dims, place, strict=True)}
            for place in np.ndindex(*grid)
        ),
        node.planned.reshape(n_splits, -1),
        {name: values.reshape(n_splits, -1) for name, values in node.values.items()},
    )


def _of_trials(node: NodeArrays) -> SettingsRun:
    """Return the settings of trials: those of equal values are one setting in all splits."""
    last = tuple(slice(None) if name == TRIAL else -1 for name in node.dims)
    planned = node.planned[(slice(None), *last)]
    columns: dict[tuple[Any, ...], int] = {}
    place_of: dict[tuple[int, int], tuple[int, int]] = {}
    for split, trial in np.argwhere(planned).tolist():
        setting = tuple(_plain(values[split, trial]) for values in node.trials.values())
        place_of[split, columns.setdefault(setting, len(columns))] = split, trial
    shape = len(planned), len(columns)
    is_run = np.zeros(shape, dtype=np.bool_)
    values = {
        name: np.full(shape, np.nan if array.dtype.kind == "f" else "", dtype=array.dtype)
        for name, array in node.values.items()
    }
    for to, of in place_of.items():
        is_run[to] = True
        for name, array in node.values.items():
            values[name][to] = array[(slice(None), *last)][of]
    names = tuple(node.trials)
    settings = tuple(dict(zip(names, setting, strict=True)) for setting in columns)
    return SettingsRun(node.place, node.task, names, settings, is_run, values)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
