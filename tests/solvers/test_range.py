"""Range of parameters: one message at its ends, and methods that hold inside it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mkldist
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.solver_params import SolverParams, within_range
from tests.methods import instances
from tests.variants import quick

WITH_C = sorted(name for name, method in METHODS.items() if "C" in method.params.model_fields)
WITH_C.remove("primalmkl")  # whose C has a range of its own
SHORT = [name for name in WITH_C if name != "rmkl"]  # which takes seconds at the upper end


@pytest.mark.parametrize("value", [0.0, 1e-100, -3.0, 1e100, math.inf, 5, True, "text", None])
def test_other_values_pass_as_they_are(value):
    assert within_range(value) is value


@pytest.mark.parametrize("C", [1e300, 1e101, 1e-101, 1e-300])
@pytest.mark.parametrize("name", WITH_C)
def test_numbers_that_would_overflow_are_refused_by_name(name, C):
    instance = instances.not_normalised()
    message = rf"{name}\.C: found {C:g}; expected a size from 1e-100 to 1e\+100".replace(
        "e+", r"e\+"
    )
    with pytest.raises(SpecError, match=message):
        mkldist.solve(name, instance.grams, instance.y, C=C)


def test_no_limit_of_time_stays_infinite():
    assert math.isinf(SolverParams().time_limit)
    assert math.isinf(SolverParams(time_limit=math.inf).time_limit)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "C"),
    [
        *quick(((name, C) for C in (1e-100, 1e100) for name in SHORT), 2 * len(SHORT)),
        *quick([("rmkl", 1e-100), ("rmkl", 1e100)]),
        *quick(((name, C) for C in (1e-30, 1e30) for name in WITH_C), 0),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_methods_hold_at_the_ends_of_the_range(name, C):
    method, instance = METHODS[name], instances.not_normalised()
    if method.needs_laplacian:
        pytest.skip("needs a graph")
    solution = mkldist.solve(name, instance.grams, instance.y, C=C, max_iter=30, time_limit=2.0)
    assert np.isfinite([solution.objective, solution.dual_objective]).all()
    assert np.isfinite(solution.coefficients).all()
    assert math.isnan(solution.gap) == ("stationarity" in solution.extra)
    assert solution.dual_objective <= solution.objective * (1 + 1e-9)
