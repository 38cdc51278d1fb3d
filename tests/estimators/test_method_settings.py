"""Parameters of methods, as estimators pass them on."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist.errors import SpecError
from mkldist.fit.estimators import method_settings, regularised, with_penalty
from mkldist.methods.registry import METHODS
from mkldist.solvers.targets import losses_by_target
from mkldist.target import Target


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_learns_the_target_or_is_refused(name, target):
    method = METHODS[name]
    if target in losses_by_target(method.params):
        settings = method_settings(name, target, 0.1, None)
        assert method.params(**settings).target is target
        assert settings["tol"] == 0.1
    else:
        with pytest.raises(SpecError, match=f"found '{name}', which learns"):
            method_settings(name, target, 0.1, None)


def test_the_users_parameters_go_first():
    given = {"tol": 0.5, "loss": "epsilon", "C": 3.0}
    settings = method_settings("spicymkl", Target.VALUES, 0.1, given)
    assert settings == given
    assert with_penalty(METHODS["spicymkl"], 1.0, settings) == given
    assert regularised(METHODS["spicymkl"], 1.0, settings) == given


def test_C_goes_to_methods_that_have_one():
    assert with_penalty(METHODS["level"], 3, {}) == {"C": 3.0}
    assert with_penalty(METHODS["easymkl"], 1.0, {"lam": 0.5}) == {"lam": 0.5}
    with pytest.raises(SpecError, match=r"Set the parameters of easymkl by method_params: lam"):
        with_penalty(METHODS["easymkl"], 3.0, {})


def test_the_strength_of_the_regulariser_has_the_methods_name():
    assert regularised(METHODS["primalmkl"], 2, {}) == {"lam": 2.0}
    assert regularised(METHODS["elastmkl"], 2, {}) == {"C": 2.0}
    assert regularised(METHODS["rls"], 2, {}) == {"gamma_a": 2.0}


@pytest.mark.parametrize("value", ["1", "x", True, None, 0.0, -1.0, float("nan")])
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (mkldist.MKLClassifier, "C"),
        (mkldist.OneClassMKL, "alpha"),
        (mkldist.MKLRegressor, "alpha"),
        (mkldist.SemiSupervisedMKLClassifier, "gamma_a"),
    ],
)
def test_strengths_are_numbers_above_zero(model, name, value):
    X = np.random.default_rng(0).normal(size=(8, 2))
    with pytest.raises(SpecError, match=rf"^{name}: found .*; expected a number above 0"):
        model(**{name: value}).fit(X, np.arange(8) % 2)


@pytest.mark.parametrize("value", ["1", None, True, -1.0, float("nan"), float("inf")])
def test_the_strength_on_the_graph_is_a_number_of_at_least_zero(value):
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = mkldist.SemiSupervisedMKLClassifier(gamma_i=value)
    with pytest.raises(SpecError, match=r"^gamma_i: found .*; expected a .*number of at least 0"):
        model.fit(X, np.arange(12) % 2)
    mkldist.SemiSupervisedMKLClassifier(gamma_i=0).fit(X, np.arange(12) % 2)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("10", "C: found '10'; expected a number above 0. Give the number 10 without quotes."),
        ("ten", "C: found 'ten'; expected a number above 0"),
        (float("inf"), "C: found inf; expected a finite number above 0"),
    ],
)
def test_the_text_of_a_number_is_to_lose_its_quotes(value, said):
    with pytest.raises(SpecError) as raised:
        with_penalty(METHODS["level"], value, {})
    assert str(raised.value) == said
