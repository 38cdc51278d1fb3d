"""Fields of a record from the solutions of a run: one solution, or one for each class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.solvers.base import Solution
from mkldist.solvers.outcome import STATIONARITY, StopReason
from mkldist.solvers.proximity import exact_proximity_of, proximity_of


def solution_fields(solutions: Sequence[Solution]) -> dict[str, Any]:
    """Return the fields of a record that solutions determine.

    Parameters
    ----------
    solutions : sequence of Solution
        The only solution, or one solution for each of several classes.

    Returns
    -------
    dict of str to object
        Fields by name.  Objectives, bounds and work of several solutions are summed; of their
        stationarities the largest counts, and a gap they have only together.  The stop reason is
        that of the first solution that did not converge.
    """
    if len(solutions) > 1:
        return _of_each_class(solutions)
    solution = solutions[0]
    kernels = np.flatnonzero(solution.kernel_weights)
    fields = {
        "n_kernels": len(solution.kernel_weights),
        "kernels": kernels,
        "weights": np.asarray(solution.kernel_weights, dtype=np.float64)[kernels],
        "coefficients": np.asarray(solution.coefficients, dtype=np.float64).T,
        "objective": float(solution.objective),
        "dual_objective": float(solution.dual_objective),
        "gap": float(solution.gap),
        "stop_reason": str(solution.stop_reason),
        "counters": solution.counters.as_dict(),
        "trace": {name: np.asarray(values) for name, values in solution.trace.items()},
        "extra": _scalars(solution),
    }
    if solution.coefficients.ndim == 1:
        return fields | {"bias": float(solution.bias)}
    biases = np.asarray(solution.bias, dtype=np.float64)
    return fields | {"bias": math.nan, "of_classes": {"class_bias": biases}}


def _of_each_class(solutions: Sequence[Solution]) -> dict[str, Any]:
    weights = np.array([solution.kernel_weights for solution in solutions], dtype=np.float64)
    kernels = np.flatnonzero(weights.any(axis=0))
    objective = sum(solution.objective for solution in solutions)
    dual = sum(solution.dual_objective for solution in solutions)
    reasons = [solution.stop_reason for solution in solutions]
    early = [reason for reason in reasons if reason is not StopReason.CONVERGED]
    proximity, exact = proximity_of(solutions), exact_proximity_of(solutions)
    work = [solution.counters.as_dict() for solution in solutions]
    return {
        "n_kernels": weights.shape[1],
        "kernels": kernels,
        "weights": weights[:, kernels],
        "coefficients": np.array([solution.coefficients for solution in solutions]),
        "bias": math.nan,
        "objective": float(objective),
        "dual_objective": float(dual),
        "gap": math.nan,
        **({} if STATIONARITY in proximity else proximity),
        "extra": exact | (proximity if STATIONARITY in proximity else {}),
        "stop_reason": str((early or reasons)[0]),
        "counters": {name: sum(one[name] for one in work) for name in work[0]},
        "trace": _traces([solution.trace for solution in solutions]),
        "of_classes": {
            "class_bias": np.array([solution.bias for solution in solutions], dtype=np.float64),
            "class_objective": np.array([solution.objective for solution in solutions]),
            "class_dual_objective": np.array([solution.dual_objective for solution in solutions]),
            **_extras([_scalars(solution) for solution in solutions]),
        },
    }


def _scalars(solution: Solution) -> dict[str, float]:
    """Return what a solution reports besides, with the bound of one on factors of kernels."""
    reported = {**solution.extra, **exact_proximity_of([solution])}
    return {name: float(value) for name, value in reported.items()}


def _extras(extras: Sequence[dict[str, float]]) -> dict[str, Floats]:
    """Return further scalars of the classes, NaN for a class that did not report one."""
    names = dict.fromkeys(name for extra in extras for name in extra)
    return {
        f"class_{name}": np.array([extra.get(name, math.nan) for extra in extras], dtype=np.float64)
        for name in names
    }


def _traces(traces: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
    """Return the traces of classes stacked, the shorter ones filled up with NaN."""
    stacked = {}
    for name in dict.fromkeys(name for trace in traces for name in trace):
        rows = [np.asarray(trace.get(name, np.empty(0)), dtype=np.float64) for trace in traces]
        shape = tuple(max(sizes) for sizes in zip(*(r.shape for r in rows if r.size), strict=True))
        stacked[name] = np.full((len(rows), *shape), np.nan)
        for target, row in zip(stacked[name], rows, strict=True):
            if row.size:
                target[tuple(slice(size) for size in row.shape)] = row
    return stacked
