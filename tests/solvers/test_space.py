"""Spans and choices of a `space`: quantiles, whole numbers, bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.grids import Span, searched

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
