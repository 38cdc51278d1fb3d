"""Independent optima, one module a problem: what the conformance suite holds every method to.

A module lists `CASES`.  Each names a method, its parameters on an instance, the optimum of its
objective by a solver that shares no code with mkldist, and the objective's value at a predictor.
The optima themselves are kept as numbers, see :mod:`tests.methods.references.recorded`.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance

Params = dict[str, Any]

TOL = 1e-8  # relative duality gap that the suite asks for
UNITS = 5  # tried one after the other
SMALLEST = 1e-9  # optimum, below which a unit would only magnify rounding


@dataclass(frozen=True, eq=False)
class Case:
    """A method at one setting of its parameters."""

    method: str  # name in the registry
    # ``optimum(instance, y, params)``: the optimal value of the method's objective, from an
    # independent solver
    optimum: Callable[[Instance, np.ndarray, Params], float]
    # ``value(instance, y, params, solution)``: the objective at the returned weights, coefficients
    # and bias, in plain numpy
    value: Callable[[Instance, np.ndarray, Params, Any], float]
    # ``params(instance)``: the method's parameters without tol
    params: Callable[[Instance], Params]
    label: str = ""  # tells the case apart from the method's other ones
    # ``labels(instance)``: by default the classes of the instance
    labels: Callable[[Instance], np.ndarray] = field(default=lambda instance: instance.y)
    extremes: tuple[Params, ...] = ()  # parameters at the edge of what is permitted
    # ``laplacian(grams)``: the graph Laplacian that the method is given
    laplacian: Callable[[np.ndarray], np.ndarray] | None = None
    # ``groups(n_kernels)``: the groups of kernels that the method is given
    groups: Callable[[int], np.ndarray] | None = None
    tol: float = TOL  # relative duality gap that the case is asked for
    accuracy: float = 1e-6  # relative accuracy to which the optimum is held
    extreme_accuracy: float = 1e-5  # the same at extreme parameters and on the smallest inputs
    # Whether the problem depends on the order of the samples, by folds dealt out in that order
    folds: bool = False
    # Whether an earlier stage makes the kernel of the machine that the bounds belong to: a limit
    # that ends it leaves the bounds of another problem
    staged: bool = False
    # Whether the lower bound is that of a relaxation, and the search for the optimum a local one:
    # the bounds enclose the optimum, but they need not meet when the method has converged
    relaxed: bool = False

    def __str__(self) -> str:
        return f"{self.method}-{self.label}" if self.label else self.method


def all_cases() -> list[Case]:
    """Return the cases of every module of this package, by method."""
    cases: list[Case] = []
    for module in pkgutil.iter_modules(__path__):
        if module.name not in ("__main__", "recorded"):
            cases += importlib.import_module(f"{__name__}.{module.name}").CASES
    return sorted(cases, key=str)


def conic_value(problem: cp.Problem) -> float:
    """Return the optimal value, to the highest accuracy that Clarabel vouches for."""
    status = ""
    for tol in (1e-9, 1e-8, 1e-7):
        with warnings.catch_warnings(), suppress(cp.SolverError):
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        status = str(problem.status)
        if status == cp.OPTIMAL:
            return float(problem.value)
    raise cp.SolverError(f"Clarabel ended with {status}")


def in_its_own_unit(solve: Callable[[float], float], unit: float) -> float:
    """Return the optimum of a problem that is solved in the unit of its optimum at last.

    Conic solvers stop at absolute tolerances too, so that an optimum of 1e-7, or of 1e-7 of the
    unit, would have no digits.  ``solve(unit)`` is the optimum of the problem divided by the unit.
    """
    value = solve(unit)
    for _ in range(UNITS):
        if value <= SMALLEST or 0.1 <= value / unit <= 10.0:
            break
        unit = value
        with suppress(AssertionError):  # the last value that the solver vouched for stands
            value = solve(unit)
    return value


def with_C(instance: Instance) -> Params:
    """Return the instance's own C, the parameter of most methods."""
    return {"C": instance.C}


def real_values(instance: Instance) -> np.ndarray:
    """Return real targets for regression: the classes, shifted, with noise."""
    rng = np.random.default_rng(99)
    return 3.0 + instance.y + 0.5 * rng.normal(size=len(instance.y))


def decision(instance: Instance, solution: Any) -> np.ndarray:
    """Return f on the training points, bias included."""
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    return K @ solution.coefficients + solution.bias


def norms(instance: Instance, solution: Any) -> np.ndarray:
    """Return the norms ||f_m|| of the predictor's components, (M,)."""
    a = solution.coefficients
    q = np.einsum("i,mij,j->m", a, instance.grams, a)
    return solution.kernel_weights * np.sqrt(np.maximum(q, 0.0))
