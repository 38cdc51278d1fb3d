"""Infinity in a setting: which parameters take it, how it is left out and read back."""

from __future__ import annotations

import json
import math

import pytest

import mkldist
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.grids import expand
from mkldist.solvers.solver_params import plain_settings, setting, validate
from tests.methods import instances


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
