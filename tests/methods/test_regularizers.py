"""Regularisers against their definitions, and as text."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
import scipy.special
from scipy.optimize import minimize_scalar

from mkldist.errors import SpecError
from mkldist.methods import regularizers
from mkldist.methods.block_norm import BlockNormParams
from mkldist.methods.regularizers import (
    BlockQ,
    Concave,
    ElasticNet,
    Regularizer,
    block1,
    imported_by,
    read,
    uniform,
    written,
)
from mkldist.solvers.solver_params import plain_settings

HUBER = Concave(
    0.7,
    lambda u: 2 * (np.sqrt(1 + u) - 1),
    lambda u: 1 / np.sqrt(1 + u),
    lambda u: -0.5 * (1 + u) ** -1.5,
    largest_of_g=2.0,
)


ROOT = Concave(0.7, np.sqrt, lambda u: 0.5 / np.sqrt(u), lambda u: -0.25 * u**-1.5, 1.0, 1.0)


REGULARIZERS = {
    "block1": block1(0.7),
    "elastic-net": ElasticNet(0.7, 0.4),
    "uniform": uniform(0.7),
    "block-1.5": BlockQ(0.7, 1.5),
    "block-2": BlockQ(0.7, 2.0),
    "huber": HUBER,
    "root": ROOT,
}


every_regularizer = pytest.mark.parametrize(
    "regularizer", REGULARIZERS.values(), ids=REGULARIZERS.keys()
)


def maximum(regularizer: Regularizer, r: float, damping: float) -> tuple[float, float]:
    """Return max and argmax over s >= 0 of r s - psi(s) - damping/2 s^2 by a bounded search."""

    def loss(s: float) -> float:
        return float(regularizer.value(np.array([s]))[0]) + 0.5 * damping * s**2 - r * s

    found = minimize_scalar(loss, bounds=(0, 100), method="bounded", options={"xatol": 1e-10})
    return max(-found.fun, 0.0), found.x


@every_regularizer
@pytest.mark.parametrize("damping", [0.05, 2.0])
def test_response_is_the_maximum(regularizer, damping):
    r = np.array([0.0, 0.1, 0.5, 0.8, 1.0, 3.0])
    response = regularizer.response(r, damping)
    for i, radius in enumerate(r):
        value, s = maximum(regularizer, radius, damping)
        assert response.value[i] == pytest.approx(value, abs=1e-8)
        assert response.ratio[i] * radius == pytest.approx(s, abs=1e-4)
    step = 1e-6
    up, down = (regularizer.response(r + sign * step, damping) for sign in (1, -1))
    inner = r > regularizer.threshold + 1e-3
    np.testing.assert_allclose(
        response.slope[inner],
        ((up.ratio * (r + step) - down.ratio * (r - step)) / (2 * step))[inner],
        rtol=1e-4,
    )


@every_regularizer
def test_conjugate_is_the_supremum(regularizer):
    r = np.array([0.1, 0.4, 0.65, 0.69])
    for radius, conjugate in zip(r, regularizer.conjugate(r), strict=True):
        assert conjugate == pytest.approx(maximum(regularizer, radius, 0.0)[0], abs=1e-7)


def test_only_duals_without_a_wall_are_smooth():
    smooth = [name for name, regularizer in REGULARIZERS.items() if regularizer.smooth_dual]
    assert smooth == ["elastic-net", "uniform", "block-1.5", "block-2"]


def test_ends_of_the_elastic_net():
    s = np.array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(ElasticNet(0.7, 0.0).value(s), 0.7 * s)
    np.testing.assert_allclose(ElasticNet(0.7, 1.0).value(s), 0.35 * s**2)


@pytest.mark.parametrize("q", [1.01, 1.0001])
def test_steep_powers_of_any_dual_norm_are_finite_and_convex(q):
    r = np.logspace(-3, 12, 400)
    with np.errstate(over="raise", invalid="raise"):
        response = BlockQ(0.1, q).response(r, 0.0)
    moments = response.ratio * r  # the derivative of the conjugate
    assert np.isfinite([response.value, response.ratio, response.slope]).all()
    assert (np.diff(moments) >= 0.0).all()
    assert (np.diff(response.value) >= 0.0).all()
    middle = BlockQ(0.1, q).conjugate(np.array([0.09, 0.1001]))
    p = q / (q - 1.0)
    np.testing.assert_allclose(middle, 0.1 / p * np.array([0.9, 1.001]) ** p, rtol=1e-9)


S = np.linspace(0.1, 3.0, 7)


MODULE = """
from dataclasses import dataclass
import numpy as np
from mkldist.methods.regularizers import BlockQ, ElasticNet

def slope(u):
    return 0.5 / np.sqrt(u)

def bend(u):
    return -0.25 * u**-1.5

@dataclass(frozen=True)
class Named(BlockQ):
    name: str = "it's"

class Doubled(ElasticNet):
    def __init__(self, lam):
        super().__init__(2.0 * lam, 0.5)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Return a module of the user, importable."""
    (tmp_path / "mine_of_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("mine_of_tests")
    del sys.modules["mine_of_tests"]


def root(mine) -> Concave:
    return Concave(np.float64(0.05), np.sqrt, mine.slope, mine.bend, 1.0, largest_of_g=np.inf)


def test_a_text_makes_the_same_function(mine):
    for one in (ElasticNet(0.3, 0.25), BlockQ(2, 1.5), mine.Named(0.5, 1.25, "a: b"), root(mine)):
        text = str(written(one, "regularizer"))
        again = read(text)
        assert type(again) is type(one)
        np.testing.assert_array_equal(again.value(S), one.value(S))
        np.testing.assert_array_equal(again.derivative(S), one.derivative(S))
        assert (again.threshold, again.largest_slope) == (one.threshold, one.largest_slope)
        assert str(written(again, "regularizer")) == text


def test_functions_of_packages_are_named(mine):
    one = Concave(1.0, scipy.special.xlogy, np.sqrt, np.log1p)
    text = written(one, "regularizer")
    assert list(imported_by(text)) == []  # at hand
    assert list(imported_by(str(text))) == ["scipy.special.xlogy", "numpy.sqrt", "numpy.log1p"]
    assert list(imported_by("BlockQ(lam=1.0, q=1.5)")) == []
    assert "mine_of_tests.slope" in imported_by(str(written(root(mine), "regularizer")))


def test_other_code_has_another_text_and_refuses_the_old_one(mine, tmp_path):
    before = str(written(root(mine), "regularizer"))
    (tmp_path / "mine_of_tests.py").write_text(MODULE.replace("0.5 /", "0.50 /"))
    assert str(written(root(mine), "regularizer")) != before
    with pytest.raises(ValueError, match="other code"):
        read(before)


def test_what_no_text_makes_is_refused_with_its_place(mine):
    class Local(ElasticNet):
        pass

    closure = Concave(1.0, np.sqrt, lambda u: 0.5 / np.sqrt(u), mine.bend)
    for one in (closure, Local(1.0, 0.5), mine.Doubled(0.5), ElasticNet(np.ones(2), 0.5)):
        with pytest.raises(SpecError) as caught:
            written(one, "methods.spicymkl.regularizer")
        assert caught.value.where == "methods.spicymkl.regularizer"
        assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "ElasticNet(1.0, 0.5)", "ElasticNet(lam=1.0)", "ElasticNet(lam=1.0, mix=(0.5)",
        "Regularizer()",
        "np(lam=1.0)", "os.getcwd()", "no_such_module.Mine(lam=1.0)", "Concave(lam=1.0, g=1 + 1)",
        "ElasticNet(lam=1.0, mix=" + "-" * 1500 + "1)", "ElasticNet(lam=1.0, mix=0.5\0)",
        "ElasticNet(lam=__import__('os'), mix=0.5)", "ElasticNet(**{'lam': 1.0})",
    ],
)  # fmt: skip
def test_a_text_that_makes_none_is_a_mistake_of_the_sweep(text):
    with pytest.raises(ValueError, match=r"regularizer\n"):
        BlockNormParams(regularizer=text)


def test_parameters_keep_the_object_and_record_the_text(mine):
    params = BlockNormParams(regularizer=root(mine))
    settings = plain_settings(params)
    assert settings["regularizer"] == str(written(root(mine), "regularizer"))
    assert type(settings["regularizer"]) is str
    again = BlockNormParams(**settings)
    np.testing.assert_array_equal(again.make_regularizer().value(S), root(mine).value(S))
    assert BlockNormParams(regularizer="block-q").regularizer == "block-q"
    assert regularizers.block1(1.0) == read(str(written(regularizers.block1(1.0), "regularizer")))
