"""Runs of one method at equal settings on equal inputs, whose bounds should agree."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.pairing import Pair
from mkldist.core.arrays import Array, Bools, Floats
from mkldist.methods.registry import METHODS
from mkldist.results.rows import hyperparameters
from mkldist.results.schema import SPLIT, STATE, RunState
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.model import TRIAL

if TYPE_CHECKING:
    import xarray as xr

ROUNDING = 1e-9


@dataclass(frozen=True)
class EqualSettings:
    """Runs of one method on the same Gram matrices, rows and settings, in two results.

    Parameters
    ----------
    n_runs : int
        Runs that are complete in both.
    objective_change : float
        Largest relative difference of the objectives.
    contradictions : int
        Runs whose intervals from lower bound to objective have no point in common, so that one of
        the two certificates is wrong.
    seconds_ratio : float
        Median over the runs of the seconds of the first, divided by those of the second.
    """

    n_runs: int
    objective_change: float
    contradictions: int
    seconds_ratio: float


def at_equal_settings(pair: Pair) -> EqualSettings | None:
    """Compare the runs of a method in two results at all settings that both have.

    Parameters
    ----------
    pair : Pair
        The method in both.

    Returns
    -------
    EqualSettings or None
        None if methods, Gram matrices or settings differ, so that objectives differ by right.
    """
    nodes = pair.first.node, pair.second.node
    if not (_solve_the_same(*nodes) and pair.same_bank):
        return None
    dims = hyperparameters(nodes[0])
    if {*dims} != {*hyperparameters(nodes[1])} or TRIAL in dims:
        return None
    common = {name: _common(nodes[0], nodes[1], name) for name in dims}
    if not all(common.values()):
        return None
    places = [list(one) for one in zip(*pair.splits, strict=True)]
    parts = [
        node.to_dataset().isel({SPLIT: rows}).sel(common)
        for node, rows in zip(nodes, places, strict=True)
    ]

    def values(name: str) -> tuple[Array, Array]:
        first, second = (part[name].transpose(SPLIT, *dims).to_numpy() for part in parts)
        return first, second

    states = values(STATE.name)
    done = (states[0] == RunState.COMPLETE.value) & (states[1] == RunState.COMPLETE.value)
    apart, disjoint = certificates_apart(values("objective"), values("dual_objective"))
    known = done & ~np.isnan(apart)
    if not known.any():
        return None
    seconds = values("seconds")
    timed = known & (seconds[1] > 0.0)
    ratio = float(np.median(seconds[0][timed] / seconds[1][timed])) if timed.any() else math.nan
    return EqualSettings(
        int(known.sum()), float(apart[known].max()), int(disjoint[known].sum()), ratio
    )


def certificates_apart(
    objectives: tuple[Floats, Floats], bounds: tuple[Floats, Floats]
) -> tuple[Floats, Bools]:
    """Compare the certificates of two results for the same problems.

    Parameters
    ----------
    objectives, bounds : pair of (n,) float64
        Objectives and lower bounds of both results.

    Returns
    -------
    apart : (n,) float64
        Differences of the objectives, divided by the larger one; NaN where one is unknown.
    disjoint : (n,) bool
        True where the intervals from lower bound to objective have no point in common.
    """
    size = np.maximum(np.abs(objectives[0]), np.abs(objectives[1]))
    apart = np.abs(objectives[0] - objectives[1]) / np.where(size > 0.0, size, 1.0)
    slack = ROUNDING * size
    disjoint = (bounds[0] > objectives[1] + slack) | (bounds[1] > objectives[0] + slack)
    return apart, disjoint


def _solve_the_same(first: xr.DataTree, second: xr.DataTree) -> bool:
    """Return True if two nodes are of one method whose settings define the same problem."""
    return bool(
        first.attrs["method"] == second.attrs["method"]
        and first.attrs.get("kernel_weights") == second.attrs.get("kernel_weights")
        and problem_settings(first) == problem_settings(second)
    )


def problem_settings(node: xr.DataTree) -> dict[str, Any]:
    """Return the settings that define the problem, of those that are no dims of the node."""
    settings = json.loads(str(node.attrs.get("settings", "{}")))
    name = str(node.attrs["method"])
    steering = (METHODS[name].params if name in METHODS else SolverParams).steering()
    return {name: value for name, value in settings.items() if name not in steering}


def _common(first: xr.DataTree, second: xr.DataTree, name: str) -> list[Any]:
    """Return the values of a hyperparameter that both nodes have."""
    known = set(second.ds[name].to_numpy().tolist())
    return [value for value in first.ds[name].to_numpy().tolist() if value in known]
