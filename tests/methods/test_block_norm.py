"""Block norms: inner objective, Newton's method, bounds, losses and regularisers."""

import importlib
import sys
import warnings

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar

import mkldist
from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.passes import answered
from mkldist.errors import ConvergenceWarning, SpecError
from mkldist.methods import block_norm_dual as newton_model
from mkldist.methods import regularizers
from mkldist.methods.block_norm import BlockNormParams, dual_value
from mkldist.methods.block_norm_dual import (
    DenseModel,
    DualNewton,
    InnerObjective,
    InnerPoint,
    Iterate,
    Line,
    ThinHessian,
    ThinModel,
    enlarged,
)
from mkldist.methods.block_norm_losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    LossFunction,
    Smoothing,
    Squared,
)
from mkldist.methods.components import imported_by, read, written
from mkldist.methods.regularizers import (
    BlockQ,
    Concave,
    ElasticNet,
    Regularizer,
    block1,
    uniform,
)
from mkldist.optim import factored_matrix
from mkldist.solvers.base import Counters
from mkldist.solvers.solver_params import plain_settings
from tests.methods import instances, plain_bank
from tests.methods.references import real_values
from tests.methods.test_factors import factors_of, products_of

GAMMA = 10.0


def iterate_of(grams: np.ndarray, rho: np.ndarray, alphas: np.ndarray) -> Iterate:
    """Return the iterate of explicit coefficients alpha_m, (M, n)."""
    images = np.einsum("mij,mj->mi", grams, alphas)
    norms = np.sqrt(np.maximum(np.einsum("mi,mi->m", images, alphas), 0.0))
    return Iterate(rho, 0.1 * rho, np.arange(len(grams)), grams @ rho, images, norms)


def example(regularizer) -> tuple[np.ndarray, np.ndarray, InnerObjective]:
    """Return Gram matrices, coefficients alpha_m and phi with multipliers that are not zero."""
    instance = instances.balanced()
    rng = np.random.default_rng(0)
    alphas = 2.0 * rng.normal(size=(len(instance.grams), len(instance.y)))
    alphas[1::2] = 0.0
    rho = instance.y * rng.uniform(0.1, 0.9, len(instance.y))
    iterate = iterate_of(instance.grams, rho, alphas)
    smoothing = Smoothing(GAMMA)
    phi = InnerObjective(Logistic(instance.y), regularizer, iterate, smoothing, 1.0 / GAMMA)
    return instance.grams, alphas, phi


@pytest.mark.parametrize("regularizer", [block1(0.05), ElasticNet(0.05, 0.4), BlockQ(0.05, 1.5)])
def test_gradient_hessian_and_slopes_by_finite_differences(regularizer):
    grams, _, phi = example(regularizer)
    rng = np.random.default_rng(1)
    point = phi.at(phi.anchor.rho, phi.anchor.products)
    H = plain_bank.run(phi.hessian(point), grams)
    for _ in range(5):
        direction, step = rng.normal(size=len(point.rho)) * 1e-2, 1e-4
        up, down = (
            phi.at(rho, grams @ rho)
            for rho in (point.rho + step * direction, point.rho - step * direction)
        )
        slope = (up.value - down.value) / (2 * step)
        assert point.gradient @ direction == pytest.approx(slope, rel=1e-5, abs=1e-9)
        bend = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(H @ direction, bend, rtol=1e-4, atol=1e-6 * abs(bend).max())
        line = Line(phi, point, direction, grams @ direction)
        for length in (0.0, 0.3, 1.0):
            rho = point.rho + length * direction
            expected = phi.at(rho, grams @ rho).gradient @ direction
            assert line.slope_at(length) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("mix", [0.0, 0.4])
def test_the_proximal_step_is_the_soft_threshold_of_the_coefficients(mix):
    lam = 0.8 / (1.0 - mix)  # between the dual norms
    grams, alphas, phi = example(ElasticNet(lam, mix))
    moved = phi.proximal_step(phi.anchor, phi.at(phi.anchor.rho, phi.anchor.products))
    assert (moved.norms == 0.0).any()
    assert (moved.norms > 0.0).any()
    for m, (K, alpha) in enumerate(zip(grams, alphas, strict=True)):
        v = alpha + GAMMA * phi.anchor.rho
        length = np.sqrt(v @ K @ v)
        kept = max(length - GAMMA * lam * (1 - mix), 0.0) / (length * (1 + GAMMA * lam * mix))
        np.testing.assert_allclose(moved.images[m], kept * K @ v, rtol=1e-9, atol=1e-14)
        assert moved.norms[m] == pytest.approx(kept * length, rel=1e-9)


@pytest.fixture
def never_multiplied_out(monkeypatch):
    monkeypatch.setattr(factored_matrix, "FEW_POINTS", 0)


def hessians(regularizer) -> tuple[FactorBank, InnerPoint, np.ndarray, ThinHessian]:
    """Return factors, a point of phi on their products, and both forms of the Hessian there."""
    grams, _, phi = example(regularizer)
    factors = factors_of(grams, rank=9)
    grams = products_of(factors)
    point = phi.at(phi.anchor.rho, grams @ phi.anchor.rho)
    thin = answered(factors, phi.hessian(point))
    return factors, point, plain_bank.run(phi.hessian(point), grams), thin


@pytest.mark.parametrize("regularizer", [block1(0.05), ElasticNet(0.05, 0.4), BlockQ(0.05, 1.5)])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.usefixtures("never_multiplied_out")
def test_the_direction_is_that_of_the_hessian_with_all_entries(monkeypatch, regularizer, bounded):
    monkeypatch.setattr(newton_model, "RESIDUAL", 1e-10)
    _, point, dense, thin = hessians(regularizer)
    assert isinstance(thin, ThinHessian)
    found = ThinModel.of(thin, point.gradient, bounded)
    expected = DenseModel.of(dense, point.gradient, bounded)
    assert_allclose(found.direction, expected.direction, atol=1e-8)
    near = point.gradient + 1e-3 * found.direction
    gain = expected.left_to_gain(near)
    assert found.left_to_gain(near) == pytest.approx(gain, rel=1e-6)


def minimised(loss, regularizer, grams, damping, counters):
    """Minimise phi with alpha = 0 over all kernels; return it and the minimiser."""
    start = Iterate.without_kernels(loss.start())
    start = plain_bank.run(enlarged(start, np.arange(len(grams))), grams)
    phi = InnerObjective(loss, regularizer, start, Smoothing(10.0), damping)
    found, _ = plain_bank.run(DualNewton(counters).minimise(phi, start, 1e-14), grams)
    return phi, found


def test_a_quadratic_objective_takes_one_step_to_the_solution_of_a_linear_system():
    # phi = 1/2 rho'rho - y'rho + rho'K rho / (2 lam), with K the sum of the kernels, and 1'rho = 0.
    instance, lam = instances.balanced(), 0.3
    loss, n, counters = Squared(real_values(instance)), len(instance.y), Counters()
    _, found = minimised(loss, uniform(lam), instance.grams, 0.0, counters)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = np.eye(n) + instance.grams.sum(axis=0) / lam
    system[n, n] = 0.0
    expected = np.linalg.solve(system, np.append(loss.y, 0.0))[:n]
    np.testing.assert_allclose(found.rho, expected, atol=1e-10)
    np.testing.assert_allclose(found.products, instance.grams @ expected, atol=1e-10)
    assert counters.newton_steps <= 2


def test_points_beyond_the_largest_slope_are_scaled_down_to_it():
    y = np.array([1.0, -1.0])
    found = dual_value(Logistic(y), block1(0.5), np.array([0.4, -0.4]), np.array([0.2, 2.0]))
    assert found.scale == 0.25
    # -h of t = 0.1 twice; psi* is zero up to lam.
    assert found.value == pytest.approx(-2 * (0.1 * np.log(0.1) + 0.9 * np.log(0.9)))


CLASSES = np.array([1.0, -1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
VALUES = np.array([0.3, -1.2, 2.0, 0.0, 5.5, -0.7, 1.1])
SQUARED_HINGE = LossFunction(
    lambda u: 0.5 * np.maximum(0.0, 1.0 - u) ** 2,
    lambda u: -np.maximum(0.0, 1.0 - u),
    lambda u: (u < 1.0).astype(np.float64),
    of="margins", largest_slope=0.0,
)  # fmt: skip
HUBER = LossFunction(
    lambda u: np.where(np.abs(u) < 1.0, 0.5 * u**2, np.abs(u) - 0.5),
    lambda u: np.clip(u, -1.0, 1.0),
    lambda u: (np.abs(u) < 1.0).astype(np.float64),
    of="residuals", least_slope=-1.0, largest_slope=1.0,
)  # fmt: skip
LOGISTIC = LossFunction(
    lambda u: np.logaddexp(0.0, -u),
    lambda u: -scipy.special.expit(-u),
    lambda u: scipy.special.expit(u) * scipy.special.expit(-u),
    of="margins", least_slope=-1.0, largest_slope=0.0,
)  # fmt: skip
UNEQUAL = np.linspace(0.5, 2.0, 7)
OWN = {"squared hinge": SQUARED_HINGE.on(CLASSES), "Huber": HUBER.on(VALUES, UNEQUAL)}
LOSSES = [Logistic(CLASSES), Hinge(CLASSES), Squared(VALUES), EpsilonInsensitive(VALUES, 0.25)]
NAMES = [type(loss).__name__ for loss in LOSSES]
every_loss = pytest.mark.parametrize("loss", [*LOSSES, *OWN.values()], ids=[*NAMES, *OWN])


def inner_point(loss: Loss, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if loss.y is CLASSES:
        return loss.y * rng.uniform(0.1, 0.9, len(loss.y))
    return rng.uniform(-0.9, 0.9, len(loss.y))


@every_loss
@pytest.mark.parametrize("gamma", [0.5, 20.0])
@pytest.mark.parametrize("temperature", [0.0, 0.03, 1.0])
def test_gradient_and_hessian_of_the_smoothed_conjugate(loss, gamma, temperature):
    smoothing = Smoothing(gamma, temperature)
    rng = np.random.default_rng(1)
    rho = rng.normal(size=len(loss.y))
    z = rng.normal(size=len(rho))
    curve, step = loss.smoothed(rho, z, smoothing), 1e-6
    for i, unit in enumerate(np.eye(len(rho))):
        up = loss.smoothed(rho + step * unit, z, smoothing)
        down = loss.smoothed(rho - step * unit, z, smoothing)
        slope = (up.value - down.value) / (2 * step)
        bend = (up.gradient[i] - down.gradient[i]) / (2 * step)
        assert curve.gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-7)
        assert curve.hessian[i] == pytest.approx(bend, rel=1e-5, abs=1e-6)


@every_loss
def test_feasible_points_are_in_the_domain_and_sum_to_zero(loss):
    rng = np.random.default_rng(2)
    for rho in (loss.start(), loss.feasible(3 * rng.normal(size=len(loss.y)))):
        assert rho.sum() == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(loss.into_domain(rho), rho)
        assert np.isfinite(loss.conjugate(rho))


@every_loss
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_best_bias_minimises_the_loss(loss, scale):
    f = scale * np.random.default_rng(3).normal(size=len(loss.y))
    best = loss.value(f + loss.best_bias(f))
    search = minimize_scalar(
        lambda b: loss.value(f + b), bounds=(-5 * scale - 9, 5 * scale + 9), method="bounded"
    )
    assert best <= search.fun * (1 + 1e-9)


def problem(n=40, widths=(0.5, 1.0, 2.0, 4.0)):
    """Return Gram matrices of unit trace, and labels of -1 and +1."""
    x = np.random.default_rng(6).normal(size=(n, 2))
    squares = ((x[:, None] - x) ** 2).sum(axis=2)
    grams = np.array([np.exp(-squares / (2.0 * width**2)) for width in widths])
    return grams / n, np.where(x[:, 0] * x[:, 1] > 0.2, 1.0, -1.0)


@pytest.mark.parametrize("acceleration", ["working-set", "none", "printed"])
@pytest.mark.parametrize(("own", "named"), [(LOGISTIC, "logistic"), (HUBER, "squared")])
def test_a_loss_of_the_user_has_the_optimum_of_the_same_one_by_name(own, named, acceleration):
    grams, y = problem()
    y = y if named == "logistic" else 0.5 * y  # residuals of which none is beyond Huber's bend
    found, expected = (
        mkldist.solve("spicymkl", grams, y, loss=loss, C=2.0, tol=1e-8, acceleration=acceleration)
        for loss in (own, named)
    )
    assert found.gap < 1e-8
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    assert_allclose(found.kernel_weights, expected.kernel_weights, atol=1e-4)


@pytest.mark.parametrize("acceleration", ["working-set", "none", "printed"])
def test_bounds_hold_where_rounding_decides(acceleration):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4))
    y = 2.0 * x[:, 0] + np.sin(2.0 * x[:, 1]) + 0.2 * rng.normal(size=50)
    grams = 1e6 * np.array([*np.exp(-((x.T[:, :, None] - x.T[:, None]) ** 2) / 2.0), x @ x.T])
    options = {"C": 1e5, "regularizer": "uniform", "tol": 1e-5, "acceleration": acceleration}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = mkldist.solve("spicymkl", grams, y, loss="squared", **options)
    squares = found.kernel_weights**2 @ (grams @ found.coefficients @ found.coefficients)
    residual = y - found.decision_function(grams)
    value = 0.5 * residual @ residual + squares / 2e5
    assert found.objective >= value * (1.0 - 1e-6)
    assert found.dual_objective <= value * (1.0 + 1e-6)


@pytest.mark.parametrize(("own", "values"), [(SQUARED_HINGE, False), (HUBER, True)])
def test_a_loss_of_the_user_has_the_optimum_of_a_general_minimiser(own, values):
    grams, y = problem(n=30)
    y = 90.0 * grams[0][0] + y if values else y
    K, C = grams.sum(axis=0), 5.0

    def objective(z):
        f = K @ z[1:] + z[0]
        losses = own.value(y - f if values else y * f)
        return z[1:] @ K @ z[1:] / (2.0 * C) + losses.sum()

    least = minimize(objective, np.zeros(31), tol=1e-10, options={"maxiter": 3000}).fun
    found = mkldist.solve("spicymkl", grams, y, loss=own, C=C, regularizer="uniform", tol=1e-9)
    assert found.dual_objective <= least * (1 + 1e-9)
    assert found.objective == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize(
    ("functions", "more"),
    [
        ((np.square, np.negative, np.ones_like), {"of": "residuals"}),  # no slope of the value
        ((np.sin, np.cos, np.sin), {"of": "residuals"}),  # not convex
        ((np.exp, np.exp, np.exp), {"of": "margins"}),  # rises with the margin
        ((np.square, lambda u: 2.0 * u, np.ones_like), {"of": "labels"}),
        ((np.square, lambda u: 2.0 * u, np.ones_like), {"of": "residuals", "largest_slope": 1.0}),
        ((np.negative, lambda u: -np.ones_like(u), np.zeros_like),
         {"of": "margins", "least_slope": -1.0, "largest_slope": -1.0}),  # without a minimum
    ],
)  # fmt: skip
def test_functions_that_are_no_loss_are_refused(functions, more):
    with pytest.raises(ValueError, match=r"found .*; expected "):
        LossFunction(*functions, **more)


def test_the_envelope_of_the_logistic_loss_is_a_minimum():
    loss, gamma, step = Logistic(np.array([-1.0])), 7.0, 1e-4
    for v in (-3.0, -0.4, -1e-9, 0.2, 50.0):
        grid = np.arange(step, 1.0, step)
        entropy = grid * np.log(grid) + (1 - grid) * np.log1p(-grid)
        least = (entropy + 0.5 * gamma * (-grid - v) ** 2).min()
        curve = loss.smoothed(np.array([v]), np.zeros(1), Smoothing(gamma))
        assert curve.value == pytest.approx(least, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("loss", [Hinge(CLASSES), EpsilonInsensitive(VALUES, 0.25)])
@pytest.mark.parametrize("gamma", [0.5, 1e6])
def test_a_falling_temperature_leads_to_the_envelope_of_the_polyhedral_loss(loss, gamma):
    rng = np.random.default_rng(4)
    rho, z = rng.normal(size=len(loss.y)), rng.normal(size=len(loss.y))
    plain = loss.smoothed(rho, z, Smoothing(gamma))
    for temperature in (1e-2, 1e-5, 1e-9):
        curve = loss.smoothed(rho, z, Smoothing(gamma, temperature))
        lowered, rounding = plain.value - curve.value, 1e-13 * abs(plain.value)
        assert -rounding <= lowered <= temperature * 2 * len(rho) * np.log(2) + rounding
        moved = np.abs(curve.multipliers - plain.multipliers).max()
        assert moved <= 50 * temperature + 1e-14 * gamma


@pytest.mark.parametrize("loss", [Hinge(CLASSES), EpsilonInsensitive(VALUES, 0.25)])
def test_the_entropy_bounds_what_a_temperature_lowers(loss):
    rho = inner_point(loss)
    for temperature in (1e-6, 0.1, 1.0):  # a penalty so large that only the entropy is felt
        curve = loss.smoothed(rho, np.zeros(len(rho)), Smoothing(1e9, temperature))
        lowered = loss.conjugate(rho) - curve.value
        assert 0 < lowered <= temperature * loss.entropy(rho) + 1e-7


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
