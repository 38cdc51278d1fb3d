"""What several methods take: weights of points, classes that share weights, paths."""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

import mkldist
from mkldist.errors import GramError, SpecError
from mkldist.methods.registry import METHODS
from mkldist.methods.single_kernel import stratified_folds
from tests.benchmarks import problems
from tests.methods import instances
from tests.methods.instances import factors
from tests.solvers.test_working_set import random_instance
from tests.variants import quick

ABLE = [name for name, method in METHODS.items() if method.weighs_points]
ON_SIMPLEX = ("level", "silp", "simplemkl", "hessianmkl", "group_mkl")
FIXED = ("uniform", "align", "alignf")  # kernel weights, whatever the weights of points
CHOSEN = ("best_single", "svm")  # one kernel, by cross-validation
ON_GRAPHS = ("lapmkl", "lapsvm", "laprls", "rls", "glks")
BLOCK_NORMS = {"spicymkl": "block1", "elastmkl": "elastic-net"}
TIGHT = {"C": 5.0, "tol": 1e-7}


@pytest.fixture(scope="module")
def instance():
    return instances.balanced()


@pytest.fixture(scope="module")
def weights(instance):
    return np.random.default_rng(3).uniform(0.1, 4.0, len(instance.y))


def test_the_methods_that_take_weights():
    listed = {*ON_SIMPLEX, "lp_mkl", *FIXED, *CHOSEN, "majority"}
    listed |= {"primalmkl", *ON_GRAPHS, *BLOCK_NORMS}
    assert set(ABLE) == listed, "name the method among those of its problem, above"


@pytest.mark.parametrize("name", CHOSEN)
def test_the_kernel_is_chosen_by_weighted_errors_of_weighted_machines(name, instance, weights):
    y, options = instance.y, {"tol": 1e-7, "folds": 3}
    options |= {"C": 5.0} if name == "best_single" else {"C_min": 5.0, "C_num": 1}
    solution = mkldist.solve(name, instance.grams, y, weights=weights, **options)
    folds, errors = stratified_folds(y, 3), []
    for K in instance.grams:
        wrong = 0.0
        for held_out in folds:
            rest = ~held_out
            machine = SVC(C=5.0, kernel="precomputed", tol=1e-8)
            machine.fit(K[np.ix_(rest, rest)], y[rest], weights[rest])
            miss = machine.predict(K[np.ix_(held_out, rest)]) != y[held_out]
            wrong += weights[held_out][miss].sum()
        errors.append(wrong / weights.sum())
    chosen = int(np.flatnonzero(solution.kernel_weights)[0])
    assert solution.extra["cv_error"] == pytest.approx(min(errors))
    assert errors[chosen] == pytest.approx(min(errors))
    machine = SVC(C=5.0, kernel="precomputed", tol=1e-8).fit(instance.grams[chosen], y, weights)
    np.testing.assert_allclose(
        solution.decision_function(instance.grams),
        machine.decision_function(instance.grams[chosen]),
        atol=1e-4,
    )


def test_the_heavier_class_is_the_majority_and_of_equal_ones_that_of_more_points(instance):
    y = np.array([1.0, -1.0, -1.0, -1.0])
    grams = np.eye(4)[None]
    for weights, bias, value in (
        ([4.0, 1.0, 1.0, 1.0], 1.0, 6.0),
        ([2.0, 1.0, 1.0, 1.0], -1.0, 4.0),
        ([3.0, 1.0, 1.0, 1.0], -1.0, 6.0),
    ):
        found = mkldist.solve("majority", grams, y, weights=weights)
        assert found.bias == bias
        assert found.objective == found.dual_objective == value
        assert found.dual_variables.sum() == pytest.approx(value)
        assert (found.dual_variables <= weights).all()
        assert found.dual_variables @ y == pytest.approx(0.0)


LOSSES = ("squared-hinge", "squared", "epsilon-squared", "one-class")
STEPS = (
    {"acceleration": "none"},
    {"inner": "pcg"},
    {"inner": "newton", "norm": 2.0},
    {"coupled": False},
    {"coupled": False, "machine": "one-step"},
)


@pytest.mark.parametrize("options", [*({"loss": loss} for loss in LOSSES), *STEPS], ids=str)
def test_a_whole_weight_is_a_point_repeated_to_squared_losses(options, instance):
    loss = options.get("loss", "squared-hinge")
    y = np.ones(len(instance.y)) if loss == "one-class" else instance.y
    y = y * np.random.default_rng(2).uniform(1, 2, len(y)) if loss[-7:] == "squared" else y
    counts = np.random.default_rng(5).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(counts)), counts)
    settings = {"C": 1 / 0.3, "tol": 1e-7, **options}
    plain = mkldist.solve("primalmkl", instance.grams[:, rows][:, :, rows], y[rows], **settings)
    weighted = mkldist.solve("primalmkl", instance.grams, y, weights=counts, **settings)
    assert plain.converged
    assert weighted.converged
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-6)
    assert weighted.dual_objective == pytest.approx(plain.objective, rel=1e-6)
    np.testing.assert_allclose(weighted.kernel_weights, plain.kernel_weights, atol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "epsilon"])
@pytest.mark.parametrize("name", BLOCK_NORMS)
def test_a_whole_weight_is_a_point_repeated_to_losses_with_block_norms(name, loss, instance):
    y = instance.y * np.random.default_rng(2).uniform(1, 2, len(instance.y))
    y = np.sign(y) if loss in ("logistic", "hinge") else y
    counts = np.random.default_rng(5).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(counts)), counts)
    settings = {"loss": loss, "C": 1.0, "tol": 1e-7, "regularizer": BLOCK_NORMS[name]}
    plain = mkldist.solve(name, instance.grams[:, rows][:, :, rows], y[rows], **settings)
    for acceleration in ("working-set", "none"):
        found = mkldist.solve(
            name, instance.grams, y, weights=counts, acceleration=acceleration, **settings
        )
        assert found.converged
        assert found.objective == pytest.approx(plain.objective, rel=1e-6)
        assert found.dual_objective == pytest.approx(plain.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in ON_GRAPHS]
    + [("lapmkl", {"form": "shared"}), ("lapmkl", {"coupled": False}), ("lapsvm", {"inner": "pcg"})]
    + [("rls", {"bias": False}), ("glks", {"bias": False}), ("glks", {"acceleration": "none"})],
    ids=str,
)
def test_a_labelled_point_on_a_graph_may_count_several_times(name, options, instance):
    """Its repetitions have its decision value, and no edges."""
    n = len(instance.y)
    y = np.where(np.arange(n) % 3 == 0, instance.y, 0.0)
    counts = np.where(y != 0.0, np.random.default_rng(5).integers(1, 4, n), 1)
    rows = np.concatenate([np.arange(n), np.repeat(np.arange(n), counts - 1)])
    L = np.zeros((len(rows), len(rows)))
    L[:n, :n] = np.diag(np.full(n, 1.0)) - 1.0 / n
    found = []
    for points, graph, weights in ((rows, L, None), (np.arange(n), L[:n, :n], counts)):
        settings = {"gamma_a": 0.1, "tol": 1e-6, "weights": weights, **options}
        settings |= {} if name == "rls" else {"gamma_i": 0.01, "laplacian": graph}
        grams = instance.grams[:, points][:, :, points]
        found.append(mkldist.solve(name, grams, y[points], **settings))
    plain, weighted = found
    assert weighted.converged
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-5)
    if not options.get("form"):
        assert weighted.dual_objective == pytest.approx(plain.objective, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["level", "silp"])
def test_a_path_carries_cuts_within_each_points_bound(name, instance, weights):
    path = mkldist.solve_path(
        name, instance.grams, instance.y, weights=weights, C=[50.0, 1.0, 5.0], tol=1e-7
    )
    for C, solution in zip((50.0, 1.0, 5.0), path, strict=True):
        alone = mkldist.solve(name, instance.grams, instance.y, weights=weights, C=C, tol=1e-7)
        assert solution.objective == pytest.approx(alone.objective, rel=1e-6)


@pytest.mark.parametrize("name", ["level", "simplemkl", "hessianmkl", "uniform"])
def test_classes_that_share_kernel_weights_share_the_points_weights(name, instance, weights):
    """Two columns of opposite labels are twice the problem of one."""
    columns = np.stack([instance.y, -instance.y], axis=1)
    one = mkldist.solve(name, instance.grams, instance.y, weights=weights, **TIGHT)
    both = mkldist.solve(name, instance.grams, columns, weights=weights, **TIGHT)
    assert both.objective == pytest.approx(2.0 * one.objective, rel=1e-6)


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(ABLE)))
def test_other_methods_refuse_weights_and_name_those_that_take_them(name, instance):
    n = len(instance.y)
    options = {"laplacian": n * np.eye(n) - 1} if METHODS[name].needs_laplacian else {}
    with pytest.raises(SpecError, match=f"weights for {name}, which gives every point the same"):
        mkldist.solve(name, instance.grams, instance.y, weights=np.ones(n), **options)


@pytest.mark.parametrize(
    ("value", "message"),
    [(0.0, r"weights\[3\]: found 0"), (-1.0, r"weights\[3\]"), (np.nan, "found nan"),
     (1e200, "from 1e-100 to 1e\\+100")],
)  # fmt: skip
def test_weights_that_are_not_positive_or_overflow_are_refused(value, message, instance):
    weights = np.ones(len(instance.y))
    weights[3] = value
    with pytest.raises(GramError, match=message):
        mkldist.solve("level", instance.grams, instance.y, weights=weights)


@pytest.mark.filterwarnings("ignore::mkldist.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["level", "group_mkl"])
def test_bounds_hold_where_one_weight_hides_the_others(name, instance):
    weights = np.full(len(instance.y), 1e-12)
    weights[0] = 1e12
    solution = mkldist.solve(name, instance.grams, instance.y, weights=weights)
    one_side = weights[instance.y != instance.y[0]].sum()
    assert 0.0 <= solution.dual_objective <= 2.0 * one_side


def test_another_number_of_weights_is_refused(instance):
    with pytest.raises(GramError, match=r"weights: found shape \(3,\); expected \(60,\)"):
        mkldist.solve("level", instance.grams, instance.y, weights=[1, 2, 3])


C = 20.0
SIMPLEX = ("level", "silp", "simplemkl", "hessianmkl")
TOL = 1e-8


@cache
def three_classes() -> tuple[np.ndarray, np.ndarray]:
    """Return (M, n, n) kernels of unit trace, one of them zero and one twice, and (n, 3) labels."""
    rng = np.random.default_rng(7)
    number = np.repeat([0, 1, 2], [12, 18, 24])
    x = rng.normal(size=(54, 5))
    x[:, 0] += np.array([-1.5, 0.0, 1.5])[number]
    x[:, 1] += np.array([0.0, 1.0, 0.0])[number] * np.sign(x[:, 2])
    grams = [rbf_kernel(x[:, [j]], gamma=g) for j in range(5) for g in (0.1, 1.0)]
    grams += [linear_kernel(x), polynomial_kernel(x, degree=2), linear_kernel(x)]
    stack = np.array(grams)
    stack /= np.trace(stack, axis1=1, axis2=2)[:, None, None]
    stack = np.concatenate([stack, np.zeros((1, 54, 54))])
    return stack, np.where(number[:, None] == np.arange(3), 1.0, -1.0)


@cache
def shared_optimum(C: float = C, unit: float = C) -> float:
    """Optimum of max sum_c 1'a_c - t, t >= 1/2 sum_c ||F_m (a_c*y_c)||^2 for all m.

    The conic solver sees a in multiples of `unit`.
    """
    grams, y = three_classes()
    a, t = cp.Variable(y.shape), cp.Variable()
    constraints = [a >= 0, a <= C / unit, cp.sum(cp.multiply(y, a), axis=0) == 0, t >= 0]
    constraints += [
        0.5 * unit * cp.sum_squares(root @ cp.multiply(y, a)) <= t
        for root in factors(grams)
        if len(root)
    ]
    problem = cp.Problem(cp.Maximize(cp.sum(a) - t), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return unit * float(problem.value)


def test_uniform_weights_are_as_many_machines():
    grams, y = three_classes()
    shared = mkldist.solve("uniform", grams, y, C=C, tol=TOL)
    own = [mkldist.solve("uniform", grams, column, C=C, tol=TOL) for column in y.T]
    assert shared.objective == pytest.approx(sum(one.objective for one in own))
    np.testing.assert_allclose(shared.coefficients.T, [one.coefficients for one in own])
    assert shared.counters.svm_solves == 3
    assert shared.counters.combines == 1


def test_alignment_with_all_classes():
    grams, y = three_classes()
    n = len(y)
    H = np.eye(n) - 1.0 / n
    centred, target = H @ grams @ H, H @ y @ y.T @ H
    v = cp.Variable(len(grams), nonneg=True)
    root = centred.reshape(len(grams), -1).T
    distance = cp.sum_squares(root @ v - target.ravel())
    cp.Problem(cp.Minimize(distance)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    combined = root @ v.value
    solution = mkldist.solve("alignf", grams, y, C=C)
    best = combined @ target.ravel() / np.linalg.norm(combined) / np.linalg.norm(target)
    mixed = root @ solution.kernel_weights
    found = mixed @ target.ravel() / np.linalg.norm(mixed) / np.linalg.norm(target)
    assert found == pytest.approx(best, rel=1e-6)
    assert solution.extra["alignment"] == pytest.approx(found, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMPLEX)
@pytest.mark.parametrize(("C", "unit"), [(1e-6, 1e-6), (1e6, 300.0)])
def test_extremes_have_bounds_of_the_optimum(name, C, unit):
    grams, y = three_classes()
    solution, optimum = mkldist.solve(name, grams, y, C=C, tol=1e-3), shared_optimum(C, unit)
    assert np.isfinite(solution.coefficients).all()
    assert solution.converged
    assert solution.gap <= 1e-3
    assert solution.dual_objective <= optimum * (1 + 1e-6)
    assert solution.objective >= optimum * (1 - 1e-6)


def test_a_method_that_cannot_share_weights_names_those_that_can():
    grams, y = three_classes()
    with pytest.raises(SpecError, match=r"gmkl with labels of shape \(54, 3\).*level, simplemkl"):
        mkldist.solve("gmkl", grams, y)


def test_every_column_has_both_classes():
    grams, y = three_classes()
    wrong = y.copy()
    wrong[:, 1] = 1.0
    with pytest.raises(GramError, match="both classes"):
        mkldist.solve("level", grams, wrong)
    with pytest.raises(GramError, match=r"found shape \(3, 54\)"):
        mkldist.solve("level", grams, y.T)


VALUES = {
    "level": np.geomspace(1, 1000, 13),
    "silp": np.geomspace(1, 1000, 13),
    "group_mkl": np.geomspace(1, 1000, 13),
    "spicymkl": np.geomspace(2, 200, 13),
    "elastmkl": np.geomspace(2, 200, 13),
    "primalmkl": np.geomspace(1, 1000, 13),
}


COLD, WARM = 12, 3  # passes


def along(name: str, grams: np.ndarray, y: np.ndarray, values, **params) -> list:
    return mkldist.solve_path(name, grams, y, C=list(values), **params)


@cache
def solved_alone(name: str, make, value: float):
    """Return the solution of an instance at one value of the path, found without a path."""
    instance = make()
    return mkldist.solve(name, instance.grams, instance.y, tol=1e-8, max_iter=5000, C=value)


def test_every_method_with_a_path_is_tested():
    assert set(VALUES) == {name for name, method in METHODS.items() if method.has_path}


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_a_path_takes_few_passes(name):
    grams, y = problems.grams(None), problems.xu2008(None).y
    path = along(name, grams, y, VALUES[name], tol=0.01)
    passes = [s.counters.passes + s.extra.get("partial_passes", 0) for s in path]
    assert all(solution.converged for solution in path)
    assert passes[0] <= COLD
    assert sum(passes[1:]) <= WARM * len(passes[1:])
    assert max(passes) <= COLD
    alone = mkldist.solve(name, grams, y, tol=0.01, C=float(VALUES[name][-1]))
    assert alone.counters.passes <= COLD
    assert alone.dual_objective <= path[-1].objective
    assert path[-1].dual_objective <= alone.objective


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("acceleration", quick(["working-set", "none"]))
@pytest.mark.parametrize("make", quick([instances.balanced, instances.more_kernels_than_points]))
def test_a_path_has_the_optima_of_its_points(name, acceleration, make):
    instance, values = make(), VALUES[name][[6, 0, 12, 3]]
    settings = {"acceleration": acceleration, "max_iter": 5000}
    path = along(name, instance.grams, instance.y, values, tol=1e-6, **settings)
    for value, solution in zip(values, path, strict=True):
        assert solution.converged
        assert solution.state is None
        alone = solved_alone(name, make, float(value))
        assert solution.objective == pytest.approx(alone.objective, rel=2e-6)
        slack = 1e-9 * abs(alone.objective)
        assert solution.dual_objective <= alone.objective + slack
        assert alone.dual_objective <= solution.objective + slack


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spicymkl", "elastmkl", "primalmkl"])
def test_without_acceleration_too_a_path_goes_on_from_its_last_solution(name):
    instance = instances.more_kernels_than_points()
    values = np.geomspace(VALUES[name][4], VALUES[name][8], 9)
    settings = {"acceleration": "none", "tol": 1e-4}
    path = along(name, instance.grams, instance.y, values, **settings)
    alone = [
        mkldist.solve(name, instance.grams, instance.y, C=float(value), **settings)
        for value in values
    ]
    assert all(solution.converged for solution in [*path, *alone])
    warm, cold = (sum(one.counters.newton_steps for one in found[1:]) for found in (path, alone))
    assert warm < 0.8 * cold


@pytest.mark.parametrize("name", ["silp", "level"])
def test_a_leap_of_the_value_along_a_path_is_no_stall(name):
    x, flat = np.random.default_rng(3).normal(size=(16, 2)), np.ones((16, 16))
    distances = ((x[:, None] - x) ** 2).sum(axis=2)
    grams = np.array([flat + 1e-9 * np.eye(16), np.exp(-1e-6 * distances), np.exp(-distances / 2)])
    y = np.where(np.arange(16) % 3, 1.0, -1.0)
    path = along(name, grams, y, [1.0, 1e5], tol=1e-6)
    assert path[1].objective > 50 * path[0].objective
    assert [solution.stop_reason.value for solution in path] == ["converged", "converged"]
    machine = SVC(C=1e5, kernel="precomputed", tol=1e-10).fit(grams[2], y)
    signed = np.zeros(16)
    signed[machine.support_] = machine.dual_coef_[0]
    optimum = np.abs(signed).sum() - 0.5 * signed @ grams[2] @ signed
    assert path[1].kernel_weights[2] == pytest.approx(1.0)
    assert path[1].dual_objective == pytest.approx(optimum, rel=1e-5)


@pytest.mark.slow
def test_hinge_and_several_classes_have_paths_too():
    grams, y = random_instance(3)
    hinge = along("spicymkl", grams, y, VALUES["spicymkl"], loss="hinge", tol=1e-4)
    assert all(solution.converged for solution in hinge)
    columns = np.stack([y, np.roll(y, 3), np.where(np.arange(len(y)) < 9, 1.0, -1.0)], axis=1)
    several = along("level", grams, columns, [1.0, 10.0, 100.0], tol=1e-4)
    for C, solution in zip([1.0, 10.0, 100.0], several, strict=True):
        alone = mkldist.solve("level", grams, columns, C=C, tol=1e-6)
        assert solution.objective == pytest.approx(alone.objective, rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spicymkl", "primalmkl"])
def test_kernels_screened_along_a_path_have_no_weight(name):
    grams, y = random_instance(4)
    values = VALUES[name][:8]
    path = along(name, grams, y, values, tol=1e-7)
    screened = [int(solution.extra["screened"]) for solution in path]
    assert max(screened) > 0
    for value, solution, count in zip(values, path, screened, strict=True):
        plain = mkldist.solve(name, grams, y, tol=1e-9, acceleration="none", C=float(value))
        assert count <= (plain.kernel_weights < 1e-6).sum()
        assert solution.objective == pytest.approx(plain.objective, rel=2e-7)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("simplemkl", {"C": [1.0]}, r"found simplemkl.*level"),
        ("level", {"C": 1.0}, r"level\.C: found 1\.0; expected a list of numbers"),
        ("level", {}, r"level\.C: found none"),
        ("primalmkl", {"C": [1.0, -1.0]}, r"primalmkl\.C"),
        ("levle", {"C": [1.0]}, r"level"),
    ],
)
def test_what_cannot_be_a_path_is_refused_by_name(name, params, message):
    grams, y = random_instance(5)
    with pytest.raises(SpecError, match=message):
        mkldist.solve_path(name, grams, y, **params)
