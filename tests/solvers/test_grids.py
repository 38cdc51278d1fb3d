"""Grids and search spaces of the parameters of methods."""

import itertools
import math

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.grids import Span, expand, searched
from mkldist.spec import kinds

LEVEL = METHODS["level"]


def test_hyperparameters_are_dims_and_other_settings_only_as_lists():
    grid = expand(LEVEL, "m", {"C": 10, "far": 0.95, "near": [0.8, 0.9]}, None)
    assert grid.dims == {"C": [10.0], "near": [0.8, 0.9]}
    assert [(p.C, p.far, p.near) for p in grid.points] == [(10, 0.95, 0.8), (10, 0.95, 0.9)]


def test_without_settings_the_defaults_are_one_point():
    grid = expand(LEVEL, "m", {}, None)
    assert grid.points == (LEVEL.params(),)
    assert grid.dims == {"C": [LEVEL.params().C]}


def test_points_are_the_product_with_the_last_dim_fastest():
    grid = expand(LEVEL, "m", {"near": [0.8, 0.9, 0.99], "C": [1, 10]}, None)
    assert list(grid.dims) == ["C", "near"]
    assert [(p.C, p.near) for p in grid.points] == list(
        itertools.product([1.0, 10.0], [0.8, 0.9, 0.99])
    )


def test_the_sweeps_tolerance_is_that_of_methods_without_their_own():
    assert {p.tol for p in expand(LEVEL, "m", {}, 1e-3).points} == {1e-3}
    assert {p.tol for p in expand(LEVEL, "m", {"tol": 1e-5}, 1e-3).points} == {1e-5}
    assert expand(LEVEL, "m", {"tol": [1e-5, 1e-4]}, 1e-3).dims["tol"] == [1e-5, 1e-4]


@pytest.mark.parametrize(
    ("series", "values"),
    [
        ({"start": 1, "stop": 100, "num": 3, "scale": "log"}, [1, 10, 100]),
        ({"start": 1, "stop": 3, "num": 3}, [1, 2, 3]),
        ({"base": 2, "exponents": [-1, 0, 3]}, [0.5, 1, 8]),
        ("path", [0.3, 1, 3]),
    ],
)
def test_a_series_stands_for_its_numbers(series, values):
    assert expand(LEVEL, "m", {"C": series}, None).dims["C"] == pytest.approx(values)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": []}, "m.C: found an empty list; expected at least one value"),
        ({"C": [1, 1.0]}, "m.C: found [1, 1.0]; expected every value once"),
        ({"C": [1, "a"]}, 'm.C: found "a"; expected a number'),
        ({"C": [-1]}, "m.C: found -1; expected a number above 0"),
        ({"C": {"start": 1}}, "m.C: found start; expected start, stop and num, or base and "
         "exponents"),
        ({"C": [float("nan")]}, "m.C: found nan; expected a finite number"),
        ({"max_iter": 0}, "m.max_iter: found 0; expected a number of at least 1"),
        ({"trace": 1}, "m.trace: found 1; expected true or false"),
    ],
)  # fmt: skip
def test_mistakes_are_named(settings, message):
    with pytest.raises(SpecError) as caught:
        expand(LEVEL, "m", settings, None)
    assert str(caught.value) == message


@pytest.mark.parametrize("read", [expand, searched])
def test_a_grid_that_memory_does_not_hold_is_refused_before_it_is_made(monkeypatch, read):
    monkeypatch.setattr(kinds, "physical_memory", lambda: 10**6)
    many = {"start": 1, "stop": 2, "num": 1000}
    with pytest.raises(SpecError, match="m: found 1,000,000 settings, which need"):
        read(LEVEL, "m", {"C": many, "tol": many}, None)


C = {"low": 0.01, "high": 1000, "scale": "log"}


def space_of(method: str, **settings):
    return searched(METHODS[method], f"methods.{method}", settings, None)


def test_a_logarithmic_span_is_uniform_in_the_logarithm():
    span = Span(0.01, 100.0, log=True)
    shares = (np.arange(2000) + 0.5) / 2000
    logs = np.log([span.at(share) for share in shares])
    expected = math.log(0.01) + shares * math.log(1e4)
    np.testing.assert_allclose(logs, expected, atol=1e-5)


@pytest.mark.parametrize("log", [False, True])
def test_whole_numbers_are_all_drawn_and_never_others(log):
    span = Span(1, 4, log=log, whole=True)
    drawn = [span.at(share) for share in np.linspace(0, 0.9999, 4000)]
    counts = np.bincount(drawn, minlength=5)
    assert {type(value) for value in drawn} == {int}
    edges = np.array([0.5, 1.5, 2.5, 3.5, 4.5])
    widths = np.diff(np.log(edges) if log else edges)
    np.testing.assert_allclose(counts[1:] / 4000, widths / widths.sum(), atol=0.002)


def test_values_have_six_digits_and_stay_within_their_bounds():
    span = Span(0.1234564, 1.0)  # with six digits, the lower bound would be below itself
    assert span.at(0.0) == 0.1234564
    assert span.at(0.5) == 0.561728


def test_a_parameter_of_whole_numbers_draws_whole_numbers():
    grid = space_of("l0_mkl", k={"low": 1, "high": 5}, C=10.0)
    assert grid.space.spans["k"] == Span(1, 5, whole=True)
    assert {point.k for point in grid.points} == {1, 5}
    assert space_of("level", C={"low": 1, "high": 5}).space.spans["C"] == Span(1, 5)


def test_lists_beside_a_distribution_are_choices():
    grid = space_of("level", C=C, acceleration=["none", "working-set"])
    assert grid.space.at({"C": 0.0, "acceleration": 0.6}) == {
        "C": 0.01, "acceleration": "working-set",
    }  # fmt: skip
    plain = grid.plain_settings_at({"C": 3.0, "acceleration": "none", "tol": 0.2})
    assert (plain["C"], plain["acceleration"], plain["tol"]) == (3.0, "none", 0.2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"C": {"low": -1, "high": 5}}, r"methods.level.C: found -1.* above 0"),
        ({"C": {"low": 5, "high": 1}}, "low < high"),
        ({"C": {"low": 5}}, r"methods.level.C.high: found nothing"),
        ({"C": C | {"scale": "ln"}}, '"linear", "log"'),
        ({"D": C}, "unknown parameter"),
        ({"C": C, "acceleration": ["none", "none"]}, "every value once"),
        ({"C": C, "acceleration": C}, "acceleration"),
    ],
)
def test_mistakes_name_their_place(settings, said):
    with pytest.raises(SpecError, match=said):
        space_of("level", **settings)
