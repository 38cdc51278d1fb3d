"""Parameters of methods: what they take, and their plain settings."""

import json
import math

import numpy as np
import pytest
from pydantic import ValidationError

import mkldist
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.grids import expand
from mkldist.solvers.solver_params import (
    SolverParams,
    plain_settings,
    setting,
    validate,
    within_range,
)
from tests.methods import instances


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
    "kernel_number", "penalty", "unit_norm",
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


@pytest.mark.parametrize("name", sorted(METHODS))
def test_settings_are_json_and_make_the_same_parameters_again(name):
    params = METHODS[name].params
    for given in ({}, {"time_limit": 5.0}):
        point = params(**given)
        plain = plain_settings(point)
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert params(**plain) == point
        used = point.model_dump(mode="json", exclude_none=True)
        assert {field: setting(plain, field) for field in used} == used
        assert plain.keys() <= used.keys()
    assert "time_limit" not in plain_settings(params())
    assert setting(plain_settings(params()), "time_limit") == math.inf


def test_a_parameter_that_is_not_used_is_left_out():
    params = METHODS["lapsvm"].params
    assert "kernel_number" not in plain_settings(params())
    assert plain_settings(params(kernel_number=0))["kernel_number"] == 0


@pytest.mark.parametrize("name", sorted(METHODS))
def test_only_parameters_without_a_limit_by_default_take_infinity(name):
    params = METHODS[name].params
    numbers = {field for field, value in params() if isinstance(value, float)}
    taken = set()
    for field in numbers:
        try:
            validate(params, name, {field: math.inf})
            taken.add(field)
        except SpecError:
            pass
    assert "time_limit" in numbers
    assert taken == {field for field in numbers if getattr(params(), field) == math.inf}


def test_infinity_elsewhere_is_refused_by_name():
    said = r"level\.tol: found inf; expected a finite number"
    with pytest.raises(SpecError, match=said):
        expand(METHODS["level"], "level", {"tol": [0.1, math.inf]}, None)
    instance = instances.balanced()
    with pytest.raises(SpecError, match=said):
        mkldist.solve("level", instance.grams, instance.y, tol=math.inf)


def test_no_limit_is_a_value_of_a_grid():
    grid = expand(METHODS["level"], "level", {"time_limit": [5.0, math.inf]}, None)
    assert grid.dims["time_limit"] == [5.0, math.inf]
    assert [setting(plain, "time_limit") for plain in grid.settings] == [5.0, math.inf]
    assert [plain.get("time_limit") for plain in grid.settings] == [5.0, None]


SPICY = METHODS["spicymkl"]


def test_a_parameter_may_matter_for_some_losses_of_a_grid():
    grid = expand(SPICY, "m", {"loss": ["squared", "epsilon"], "epsilon": 0.2}, None)
    assert [(p.loss, p.epsilon) for p in grid.points] == [("squared", 0.2), ("epsilon", 0.2)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "squared", "epsilon": [0.1, 0.2]}, "m.epsilon: found epsilon with "
         'loss = "squared", where it has no effect; expected loss = "epsilon", or no epsilon'),
        ({"loss": ["epsilon", "squared"], "epsilon": [0.1, 0.2]}, "m.epsilon: found epsilon with "
         'loss = "squared", where it has no effect; expected loss = "epsilon", or no epsilon. '
         "Give the others an entry of [[methods]] with a label of its own."),
        ({"q": 1.2}, 'm.q: found q with regularizer = "block1", where it has no effect; expected '
         'regularizer = "block-q", or no q'),
    ],
)  # fmt: skip
def test_parameters_that_would_only_repeat_runs_are_refused(settings, message):
    with pytest.raises(SpecError) as caught:
        expand(SPICY, "m", settings, None)
    assert str(caught.value) == message


def test_a_parameter_that_no_method_has_is_named_with_the_one_that_is_meant():
    with pytest.raises(SpecError, match=r"spicymkl.regulariser: .*Did you mean 'regularizer'"):
        validate(SPICY.params, "spicymkl", {"regulariser": "block1"})


# Range of parameters: one message at its ends, and methods that hold inside it.


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "C"), [*((name, C) for C in (1e-100, 1e100) for name in SHORT), ("rmkl", 1e-100)]
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
