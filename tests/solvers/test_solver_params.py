"""Parameters that every method has, and those that matter with the values of others."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from mkldist.methods.registry import METHODS
from mkldist.solvers.solver_params import SolverParams


def test_a_parameter_matters_with_the_values_that_its_method_names():
    params = METHODS["spicymkl"].params
    assert params(loss="epsilon").has_effect("epsilon")
    assert not params(loss="squared").has_effect("epsilon")
    assert params(loss="squared").has_effect("C")


@pytest.mark.parametrize(
    "words", [{"tol": 0.0}, {"tol": math.inf}, {"max_iter": 0}, {"time_limit": 0.0}, {"toll": 0.1}]
)
def test_values_out_of_range_and_unknown_names_are_refused(words):
    with pytest.raises(ValidationError):
        SolverParams(**words)


def test_only_the_limit_on_time_may_be_infinite():
    assert SolverParams().time_limit == math.inf


DEFINE = {
    "C", "lam", "p", "k", "q", "mix", "norm", "scale", "sigma", "bias", "loss", "epsilon", "form",
    "regularizer", "gamma_a", "gamma_i", "gamma_sigma", "C_min", "C_max", "C_num", "folds",
    "kernel_number", "unit_norm",
}  # fmt: skip
"""Parameters that define a problem, or choose one, in every method that has them."""


@pytest.mark.parametrize("name", list(METHODS))
def test_every_parameter_either_defines_the_problem_or_steers_the_solver(name):
    params = METHODS[name].params
    assert not params.steering() & DEFINE
    assert params.steering() | DEFINE >= set(params.model_fields)
    assert params.steering() <= set(params.model_fields)


def test_what_steers_is_that_of_all_classes_above():
    assert METHODS["level"].params.steering() == {
        "tol", "max_iter", "time_limit", "trace", "acceleration", "far", "near", "stop",
    }  # fmt: skip
