"""Other norms of the weights: lp-norm, groups of kernels, at most k kernels."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mkldist
from mkldist.bank.requests import Combine, Quadratic
from mkldist.errors import GramError, SpecError
from mkldist.methods.l0_mkl import L0MklParams, solve_on
from mkldist.methods.lp_mkl import Anderson, LogWeights, normalised, updated
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Counters, Problem
from mkldist.solvers.progress import Clock, StopReason
from mkldist.solvers.svm import solve_svm
from tests.methods import instances, plain_bank
from tests.methods.instances import Instance
from tests.methods.plain_bank import solve
from tests.methods.references.recorded import optimum_of
from tests.methods.references.simplex_svm import CASES, group_norm_value, groups_of, simplex_optimum
from tests.methods.test_abilities import shared_optimum, three_classes
from tests.variants import quick


@pytest.mark.parametrize("p", [1.1, 2.0, 5.0])
def test_update_is_the_minimiser_at_fixed_norms(p):
    rng = np.random.default_rng(0)
    d, q = rng.uniform(0.1, 1, 4), rng.uniform(0.1, 2, 4)
    squares = d**2 * q
    found = minimize(
        lambda log_d: 0.5 * (squares / np.exp(log_d - np.log(np.exp(p * log_d).sum()) / p)).sum(),
        np.zeros(4),
        method="BFGS",
        options={"gtol": 1e-10},
    ).x
    expected = np.exp(found - np.log(np.exp(p * found).sum()) / p)
    moved = np.exp(updated(np.log(d), q, p))
    assert np.linalg.norm(moved, ord=p) == pytest.approx(1.0)
    np.testing.assert_allclose(moved, expected, rtol=1e-4)


def test_kernels_of_no_use_leave_and_may_return():
    log_d = normalised(np.array([0.0, 0.0, -np.inf]), 2.0)
    moved = np.exp(updated(log_d, np.array([1.0, 0.0, 0.5]), 2.0))
    assert moved[1] == 0.0
    assert moved[2] > 0.0


@pytest.mark.parametrize("p", [1.05, 2.0])
def test_acceleration_reaches_the_papers_solution_in_fewer_iterations(p):
    instance = instances.balanced()
    settings = {"C": instance.C, "p": p, "tol": 1e-8}
    plain = solve("lp_mkl", instance.grams, instance.y, accelerate=False, **settings)
    mixed = solve("lp_mkl", instance.grams, instance.y, **settings)
    assert plain.converged
    assert mixed.converged
    assert mixed.objective == pytest.approx(plain.objective, rel=2e-8)
    assert 2 * mixed.counters.outer_iterations < plain.counters.outer_iterations


def test_plain_updates_descend_at_every_iteration():
    instance = instances.more_kernels_than_points()
    values = []

    def watch(request, answer):
        weights = getattr(request, "weights", None)
        if weights is not None:
            values.append(solve_svm(answer.copy(), instance.y, instance.C, tol=1e-12).objective)

    solve("lp_mkl", instance.grams, instance.y, watch, C=instance.C, accelerate=False, tol=1e-7)
    assert (np.diff(values) <= 1e-9 * values[0]).all()


def test_an_iteration_reads_the_bank_for_its_machine_and_for_its_forms():
    instance = instances.balanced()
    seen = []
    solution = solve(
        "lp_mkl", instance.grams, instance.y, lambda request, _: seen.append(request), C=10.0
    )
    counters = solution.counters
    assert counters.combines == counters.svm_solves == counters.outer_iterations == len(seen) / 2
    assert counters.passes == len(seen)  # no weight is zero


def moved(weights: LogWeights, target: np.ndarray, A: np.ndarray) -> None:
    """Move by the linear map ``log -> target + A (log - target)``, slow where A is near 1."""
    weights.update(target + A @ (weights.log - target), np.ones(len(target)))


def test_mixing_finds_the_fixed_point_of_a_linear_map_in_as_many_steps_as_weights():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    A = Q @ np.diag([0.99, 0.9, 0.5, -0.3]) @ Q.T
    target = rng.normal(size=4)
    mixed, plain = (LogWeights(np.zeros(4), lambda mixed, plain: mixed) for _ in range(2))
    for _ in range(6):
        moved(mixed, target, A)
        plain.replace(target + A @ (plain.log - target))
    np.testing.assert_allclose(mixed.d, np.exp(target), rtol=1e-6)
    assert not np.allclose(plain.d, np.exp(target), rtol=0.1)


def test_a_weight_that_becomes_zero_ends_the_mixing():
    weights = LogWeights(np.zeros(3), lambda mixed, plain: mixed)
    for _ in range(3):
        moved(weights, np.array([1.0, 2.0, 3.0]), 0.5 * np.eye(3))
    assert weights.mixed
    gone = np.array([0.1, -np.inf, 0.3])
    weights.update(gone, np.ones(3))
    assert not weights.mixed
    np.testing.assert_array_equal(weights.log, gone)
    assert weights.d[1] == 0.0


def test_only_admissible_weights_are_taken():
    bounded = LogWeights(np.zeros(2), lambda mixed, plain: np.clip(mixed, -0.5, 0.5))
    for _ in range(4):
        moved(bounded, np.array([3.0, -3.0]), 0.9 * np.eye(2))
        assert np.abs(bounded.log).max() <= 0.5


def contraction(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(size, size))
    return 0.9 * A / np.linalg.norm(A, 2), rng.normal(size=size)


def test_the_residual_of_the_combination_is_smallest_in_the_scaled_norm():
    A, b = contraction(1, 6)
    rng = np.random.default_rng(2)
    points, scale = rng.normal(size=(3, 6)), rng.uniform(0.1, 2.0, 6)
    images = points @ A.T + b
    anderson = Anderson()
    for point, image in zip(points, images, strict=True):
        mixed = anderson.mix(point, image, scale)
    residuals = images - points
    # Shares s that sum to one and minimise ||scale * sum_j s_j r_j||, by their normal equations.
    gram = (residuals * scale) @ (residuals * scale).T
    shares = np.linalg.solve(gram, np.ones(3))
    np.testing.assert_allclose(mixed, shares / shares.sum() @ images, rtol=1e-8)


def test_only_the_last_points_are_remembered():
    A, b = contraction(3, 4)
    points = np.random.default_rng(4).normal(size=(5, 4))
    short, fresh = Anderson(size=1), Anderson()
    for point in points:
        last = short.mix(point, A @ point + b, np.ones(4))
    for point in points[-2:]:
        expected = fresh.mix(point, A @ point + b, np.ones(4))
    np.testing.assert_allclose(last, expected)
    short.forget()
    np.testing.assert_array_equal(short.mix(points[0], points[1], np.ones(4)), points[1])


TOL = 1e-8
VIEWS = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}


@pytest.fixture(scope="module")
def points():
    X = np.random.default_rng(0).normal(size=(60, 6))
    return X, np.sign(X[:, 0] * X[:, 1] + X[:, 2])


@pytest.fixture(scope="module")
def bank(points):
    gaussians = {"function": "gaussian", "widths": [0.5, 1, 2], "features": ["a", "b", "c"]}
    return mkldist.KernelBank(points[0], [gaussians], groups=VIEWS, normalisation="trace")


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c.method == "group_mkl"], ids=str)
@instances.every_instance
def test_the_returned_functions_attain_the_optimum_in_group_norms(case, make):
    instance = make()
    params = case.params(instance)
    groups = groups_of(len(instance.grams))
    found = mkldist.solve("group_mkl", instance.grams, instance.y, groups=groups, tol=TOL, **params)
    value = group_norm_value(instance, instance.y, params, found)
    assert value == pytest.approx(optimum_of(str(case), make), rel=1e-6)
    assert value <= found.objective * (1 + 1e-12)


def test_whole_groups_are_selected_and_counted(points, bank):
    found = mkldist.solve("group_mkl", bank, points[1], C=1.0, tol=1e-6, trace=True)
    weights = found.kernel_weights.reshape(3, 3)  # by view
    assert (weights == weights[:, :1]).all()
    assert (
        0
        < (weights[:, 0] > 0).sum()
        == found.extra["active_groups"]
        < found.extra["kernel_groups"]
        == 3
    )
    assert weights.sum() == pytest.approx(1.0)
    last = {name: column[-1] for name, column in found.trace.items()}
    assert last["active_kernels"] == 3 * found.extra["active_groups"]
    assert last["largest_kernels"].shape == (5,)
    assert last["largest_weights"][0] == pytest.approx(weights.max(), rel=0.1)


def test_kernels_on_the_same_features_form_a_group_unless_others_are_given(points, bank):
    X, y = points
    assert bank.groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert bank[[8, 0, 7]].groups.tolist()[0] == bank[[8, 0, 7]].groups.tolist()[2]
    own = mkldist.solve("group_mkl", bank, y, tol=TOL)
    named = mkldist.solve("group_mkl", bank, y, tol=TOL, groups=[*"aaabbbccc"])
    assert named.objective == own.objective
    apart = mkldist.solve("group_mkl", bank, y, tol=TOL, groups=[None] * 9)
    assert apart.objective == pytest.approx(
        mkldist.solve("level", bank, y, tol=TOL).objective, rel=2 * TOL
    )
    assert apart.objective < own.objective
    assert own.decision_function(bank.on(X)).shape == y.shape


def test_no_group_is_visited_by_itself_but_for_those_at_work():
    # 60 groups of 3: the working set starts from 20, and passes certify the others.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 60))
    y = np.sign(X[:, 0] + 0.5 * X[:, 7])
    grams = np.array([np.exp(-s * np.subtract.outer(x, x) ** 2) for x in X.T for s in (0.1, 1, 5)])
    groups, seen = np.repeat(np.arange(60), 3), []
    watch, params = (lambda request, _: seen.append(request)), {"C": 1.0, "tol": 1e-4}
    found = solve("group_mkl", grams, y, watch, groups=groups, **params)
    assert found.converged
    passes = [r for r in seen if isinstance(r, Quadratic) and r.kernels is None]
    assert 2 <= len(passes) < 0.5 * found.counters.outer_iterations
    named = [r.kernels for r in seen if isinstance(r, Combine)]
    assert all(kernels is not None and len(kernels) < len(grams) for kernels in named)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"] * 3, "groups: found 3 for 4 kernels; expected 4 names or numbers, one a kernel"),
        ("abcd", "groups: found 'abcd'; expected 4 names or numbers, one a kernel"),
        (4, "groups: found 4; expected 4 names or numbers, one a kernel"),
        ([0, 1.5, 0, 0], r"groups\[1\]: found 1.5; expected a name, a number or None"),
        ([0, 1, ["a"], 0], r"groups\[2\]: found \['a'\]; expected a name, a number or None"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups, message):
    instance = instances.not_normalised()
    with pytest.raises(GramError, match=message):
        mkldist.solve("group_mkl", instance.grams, instance.y, groups=groups)


def test_methods_without_groups_name_those_that_take_them():
    instance = instances.not_normalised()
    message = "groups for level, which takes each kernel by itself; expected none, .*: group_mkl"
    with pytest.raises(SpecError, match=message):
        mkldist.solve("level", instance.grams, instance.y, groups=[0, 0, 1, 1])


LONG = (instances.more_kernels_than_points, instances.unbalanced)
SHORT = [make for make in instances.INSTANCES if make not in LONG]
every_instance = pytest.mark.parametrize(
    "make", quick([*SHORT, *LONG], len(SHORT)), ids=lambda f: f.__name__
)


def conic_optimum(instance: Instance, kernels: np.ndarray) -> float:
    part = Instance("part", instance.grams[kernels], instance.y, instance.C)
    return simplex_optimum(part, instance.y, {"C": instance.C})


@pytest.mark.slow
@every_instance
def test_two_kernels_are_the_best_of_all_pairs(make):
    instance = make()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=2, tol=1e-8)
    assert solution.objective == pytest.approx(optimum_of("l0_mkl-two", make), rel=1e-6)


@pytest.mark.slow
@every_instance
@pytest.mark.parametrize("k", quick([3, 1]))
def test_what_it_claims_of_its_support_is_true(make, k):
    instance = make()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k, tol=1e-7)
    kernels = np.flatnonzero(solution.kernel_weights)
    assert len(kernels) <= k
    assert solution.kernel_weights.sum() == pytest.approx(1.0)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.gap <= 1e-7 or solution.stationarity <= 1e-7
    assert solution.objective == pytest.approx(conic_optimum(instance, kernels), rel=1e-6)
    assert solution.dual_objective == pytest.approx(optimum_of("level", make), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("make", [instances.more_kernels_than_points, instances.ill_conditioned])
@pytest.mark.parametrize("k", [2, 4, 6])
def test_it_is_no_worse_than_the_largest_weights_of_the_relaxation(make, k):
    instance, tol = make(), 1e-6
    relaxed = solve("level", instance.grams, instance.y, C=instance.C, tol=tol)
    largest = np.argsort(-relaxed.kernel_weights)[:k]
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k, tol=tol)
    assert solution.objective <= conic_optimum(instance, largest) * (1 + tol)


@pytest.mark.parametrize("k", [1, 2])
def test_it_does_not_choose_a_kernel_twice_as_the_largest_weights_of_the_relaxation_do(k):
    instance = instances.duplicated_kernels()
    relaxed = solve("level", instance.grams, instance.y, C=instance.C, tol=1e-6)
    largest = np.argsort(-relaxed.kernel_weights)[:k]
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k)
    assert solution.objective < 0.9 * conic_optimum(instance, largest)


@pytest.mark.slow
def test_more_kernels_cost_less_until_the_limit_does_not_bind():
    make, tol = instances.more_kernels_than_points, 1e-6
    instance = make()
    one, two, four, eight, all_kernels = (
        solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=k, tol=tol)
        for k in (1, 2, 4, 8, 60)
    )
    assert one.objective > two.objective > four.objective > eight.objective
    # Four kernels are worse than all: their bounds do not meet, and no gap is shown.
    assert four.objective - four.dual_objective > 0.01 * four.objective
    assert np.isnan(four.gap)
    assert four.stationarity <= tol
    assert eight.gap <= tol
    assert np.isnan(eight.stationarity)
    assert all_kernels.objective == pytest.approx(optimum_of("level", make), rel=tol)


@pytest.mark.slow
def test_each_move_takes_one_pass():
    instance, passes = instances.more_kernels_than_points(), []
    solution = solve(
        "l0_mkl",
        instance.grams,
        instance.y,
        lambda request, _: passes.append(
            isinstance(request, Quadratic) and request.kernels is None
        ),
        C=instance.C,
        k=4,
    )
    relaxed = solve("level", instance.grams, instance.y, C=instance.C)
    assert sum(passes) == solution.counters.passes
    assert solution.counters.passes == relaxed.counters.passes + solution.counters.outer_iterations


def test_a_limit_on_moves_returns_the_kernels_so_far():
    instance = instances.more_kernels_than_points()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=8, max_iter=3)
    assert solution.stop_reason is StopReason.MAX_ITER
    assert np.count_nonzero(solution.kernel_weights) <= 3


class StoppedClock(Clock):
    """A clock that stands still until it is told that time is up."""

    up = False

    @property
    def elapsed(self) -> float:
        return 2.0 if self.up else 0.0


def test_no_kernel_is_tried_once_time_is_up():
    make, method = instances.more_kernels_than_points, METHODS["l0_mkl"]
    instance, clock, after = make(), StoppedClock(), []

    def watch(request, _):
        of_a_trial = isinstance(request, Quadratic) and request.kernels is not None
        clock.up |= of_a_trial and len(request.kernels) == 2  # the first kernel and one more
        after.extend([request] if clock.up and isinstance(request, Combine) else [])

    params = method.params(C=instance.C, k=3, trials=3, tol=1e-9, time_limit=1.0)
    problem = Problem(instance.y, len(instance.grams), clock)
    solution = plain_bank.run(method.solve(problem, params), instance.grams, watch)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert len(after) <= 2
    assert solution.dual_objective <= optimum_of("level", make) * (1 + 1e-7)
    assert solution.objective >= optimum_of("level", make) * (1 - 1e-9)


@pytest.mark.slow
def test_a_near_support_saves_machines_and_leads_to_the_same_optimum():
    instance = instances.more_kernels_than_points()
    problem = plain_bank.problem(instance.grams, instance.y)
    params = L0MklParams(C=instance.C, tol=1e-6)
    kernels = np.array([2, 10, 20, 33, 45])

    def found(these, near=None):
        counters = Counters()
        steps = solve_on(these, problem, params, counters, near)
        return plain_bank.run(steps, instance.grams), counters.svm_solves

    fewer, _ = found(kernels[:-1])
    for these, near in ((kernels, fewer), (kernels[1:-1], fewer)):
        cold, cold_solves = found(these)
        warm, warm_solves = found(these, near)
        assert warm.value == pytest.approx(cold.value, rel=1e-6)
        assert warm.value == pytest.approx(conic_optimum(instance, these), rel=1e-6)
        assert warm_solves < cold_solves


@pytest.mark.slow
def test_several_classes_share_the_kernels():
    grams, y = three_classes()
    one = solve("l0_mkl", grams, y, C=20.0, k=1, tol=1e-6)
    assert np.count_nonzero(one.kernel_weights) == 1
    assert one.coefficients.shape == y.shape
    assert one.objective > shared_optimum() * 1.001
    assert one.dual_objective == pytest.approx(shared_optimum(), rel=1e-5)
    every = solve("l0_mkl", grams, y, C=20.0, k=len(grams), tol=1e-6)
    assert every.objective == pytest.approx(shared_optimum(), rel=1e-5)


def test_a_limit_on_time_leaves_true_bounds():
    make = instances.more_kernels_than_points
    instance = make()
    solution = solve("l0_mkl", instance.grams, instance.y, C=instance.C, k=2, time_limit=1e-9)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert solution.dual_objective <= optimum_of("level", make) * (1 + 1e-7)
    assert solution.objective >= optimum_of("l0_mkl-two", make) * (1 - 1e-6)
