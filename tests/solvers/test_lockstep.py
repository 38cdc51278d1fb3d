"""Solvers in lockstep, and the passes that are counted."""

from dataclasses import replace

import numpy as np
import pytest

from mkldist.bank.bank import MemoryBank, MemoryBudget
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii
from mkldist.bank.view import make_views
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.lockstep import Job, RequestCount, drive, solve_alone
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.manifolds import manifold
from tests.variants import quick

GRID = tuple(np.geomspace(1.0, 1000.0, 8))


def balanced_bank():
    """Return an instance, a bank of its kernels and the view of all points."""
    instance = instances.balanced()
    bank = MemoryBank.from_grams(instance.grams)
    return instance, bank, make_views(bank, [None], ())[0]


def make_job(view, y, n_kernels, name="level", key=None, **params):
    method = METHODS[name]
    problem = Problem(y=y, n_kernels=n_kernels)
    return Job(key or name, view, problem, method.solve(problem, method.params(**params)))


def run_all(bank, jobs):
    outcomes, times = {}, {}

    def done(key, outcome, spent):
        outcomes[key], times[key] = outcome, spent

    drive(bank, jobs, done)
    return outcomes, times


def grid_jobs(bank, y, name="level", tol=1e-6):
    view = make_views(bank, [None], ())[0]
    return [make_job(view, y, bank.n_kernels, name, key=f"C={C:g}", C=C, tol=tol) for C in GRID]


@pytest.mark.slow
@pytest.mark.parametrize("name", quick(["level", "simplemkl"]))
def test_eight_values_in_lockstep_use_less_than_a_third_of_the_passes(name):
    instance = instances.more_kernels_than_points()
    together = MemoryBank.from_grams(instance.grams)
    shared, _ = run_all(together, grid_jobs(together, instance.y, name))
    alone_passes = 0
    for C in GRID:
        alone = MemoryBank.from_grams(instance.grams)
        [own] = [job for job in grid_jobs(alone, instance.y, name) if job.key == f"C={C:g}"]
        solution = solve_alone(alone, own)
        alone_passes += alone.counter.passes
        other = shared[f"C={C:g}"]
        assert solution.converged
        assert other.objective == pytest.approx(solution.objective, rel=1e-12)
        np.testing.assert_allclose(
            other.kernel_weights, solution.kernel_weights, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            other.dual_variables, solution.dual_variables, rtol=1e-9, atol=1e-9
        )
        assert other.counters == solution.counters
    assert together.counter.passes < alone_passes / 3


def test_different_methods_share_passes_and_agree():
    instance, bank, view = balanced_bank()
    names = ("level", "simplemkl", "uniform", "best_single", "majority")
    jobs = [make_job(view, instance.y, bank.n_kernels, name, C=10.0) for name in names]
    outcomes, times = run_all(bank, jobs)
    assert set(outcomes) == set(names)
    assert outcomes["level"].objective == pytest.approx(outcomes["simplemkl"].objective, rel=0.01)
    assert outcomes["level"].objective <= outcomes["uniform"].objective * 1.01
    alone_passes = 0
    for name in names:
        alone = MemoryBank.from_grams(instance.grams)
        own_view = make_views(alone, [None], ())[0]
        solution = solve_alone(
            alone, make_job(own_view, instance.y, len(own_view.scale), name, C=10.0)
        )
        np.testing.assert_allclose(solution.kernel_weights, outcomes[name].kernel_weights)
        alone_passes += alone.counter.passes
    assert bank.counter.passes < alone_passes
    assert all(spent.wall_seconds >= spent.own_seconds >= 0 for spent in times.values())
    assert times["majority"].rounds == 0


@pytest.mark.slow
def test_folds_on_one_bank_share_passes():
    instance = instances.balanced()
    rng = np.random.default_rng(0)
    folds = [np.sort(rng.choice(60, 40, replace=False)) for _ in range(5)]
    bank = MemoryBank.from_grams(instance.grams)
    views = make_views(bank, folds, ("trace",))
    jobs = [
        make_job(view, instance.y[rows], bank.n_kernels, key=str(i), C=100.0, tol=1e-7)
        for i, (view, rows) in enumerate(zip(views, folds, strict=True))
    ]
    outcomes, _ = run_all(bank, jobs)
    shared_passes = bank.counter.passes
    alone_passes = 0
    for i, rows in enumerate(folds):
        part = instance.grams[:, rows][:, :, rows]
        part = part / np.trace(part, axis1=1, axis2=2)[:, None, None]
        own = MemoryBank.from_grams(part)
        single = make_job(
            make_views(own, [None], ())[0], instance.y[rows], len(part), C=100.0, tol=1e-7
        )
        solution = solve_alone(own, single)
        alone_passes += own.counter.passes
        assert outcomes[str(i)].objective == pytest.approx(solution.objective, rel=2e-7)
        np.testing.assert_allclose(
            outcomes[str(i)].kernel_weights, solution.kernel_weights, atol=1e-2
        )
    assert shared_passes < alone_passes / 2


def test_a_failing_solver_is_reported_and_the_others_finish():
    instance, bank, view = balanced_bank()
    problem = Problem(y=instance.y, n_kernels=bank.n_kernels)

    def broken():
        yield Quadratic(instance.y)
        raise RuntimeError("broken on purpose")

    jobs = [
        Job("broken", view, problem, broken()),
        make_job(view, instance.y, bank.n_kernels, C=10.0),
    ]
    outcomes, _ = run_all(bank, jobs)
    assert isinstance(outcomes["broken"], RuntimeError)
    assert outcomes["level"].stop_reason is StopReason.CONVERGED
    with pytest.raises(RuntimeError, match="on purpose"):
        solve_alone(bank, Job("broken", view, problem, broken()))


MALFORMED = {
    "vector too long": lambda n: Quadratic(np.ones(n + 1)),
    "vectors of three axes": lambda n: Quadratic(np.ones((n, 2, 2))),
    "vector that is a list": lambda n: Quadratic([1.0] * n),
    "too few weights": lambda n: Combine(np.ones(3)),
    "more weights than kernels named": lambda n: Combine(np.ones((2, 3)), np.array([0, 1])),
    "kernel beyond the last": lambda n: Matvec(np.array([0, 99]), np.ones(n)),
    "negative kernel": lambda n: Combine(np.ones(1), np.array([-1])),
    "kernels that are no integers": lambda n: Quadratic(np.ones(n), np.array([0.5])),
    "one matrix": lambda n: Inner(np.ones((n, n))),
    "too few weights of points": lambda n: Diagonal(np.ones((n - 1, 1))),
    "point beyond the last": lambda n: Radii(np.array([n])),
}


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("own_kernels", [False, True])
def test_a_malformed_request_fails_its_own_job_only(malformed, own_kernels):
    instance, bank, view = balanced_bank()
    assert instance.grams.shape == (7, 60, 60)
    rows = np.arange(30) if own_kernels else None
    asked = make_views(bank, [rows], (), MemoryBudget(1 << 20))[0]
    problem = Problem(y=instance.y, n_kernels=bank.n_kernels)

    def steps():
        yield malformed(asked.n_points)

    broken = Job("broken", asked, problem, steps())
    sound = make_job(view, instance.y, bank.n_kernels, "uniform", C=1.0)
    outcomes, _ = run_all(bank, [broken, sound])
    assert isinstance(outcomes["broken"], Exception)
    assert outcomes["uniform"].converged


def test_a_malformed_request_after_the_solver_fails_its_own_job_only():
    instance, bank, view = balanced_bank()

    def after(solution):
        yield Quadratic(np.ones(5))

    first = make_job(view, instance.y, bank.n_kernels, "uniform", key="broken", C=1.0)
    sound = make_job(view, instance.y, bank.n_kernels, "uniform", C=1.0)
    outcomes, _ = run_all(bank, [replace(first, after=after), sound])
    assert "found shape (5,)" in str(outcomes["broken"])
    assert outcomes["uniform"].converged


@pytest.mark.slow
def test_shares_of_a_pass_add_up_to_what_was_read():
    instance = instances.more_kernels_than_points()
    bank = MemoryBank.from_grams(instance.grams)
    _, times = run_all(bank, grid_jobs(bank, instance.y))
    for shares in (
        [spent.bytes_read for spent in times.values()],
        [spent.pass_bytes for spent in times.values()],
    ):
        assert sum(shares) == pytest.approx(bank.counter.bytes_read)
    assert all(spent.pass_cpu_seconds > 0 for spent in times.values())


@pytest.mark.parametrize(
    ("asked", "end", "message"),
    [
        ([], None, "ended with NoneType instead of a Solution"),
        (["balls"], None, "asked with str instead of a request"),
        ([None], None, "asked with NoneType instead of a request"),
        ([], 3.0, "ended with float instead of a Solution"),
    ],
)
def test_a_solver_that_breaks_its_contract_fails_alone(asked, end, message):
    instance, bank, view = balanced_bank()

    def steps():
        yield Quadratic(instance.y)
        yield from asked
        return end

    problem = Problem(y=instance.y, n_kernels=bank.n_kernels)
    broken = Job("broken", view, problem, steps())
    sound = make_job(view, instance.y, bank.n_kernels, "uniform", C=1.0)
    outcomes, _ = run_all(bank, [broken, sound])
    assert isinstance(outcomes["broken"], TypeError)
    assert message in str(outcomes["broken"])
    assert isinstance(outcomes["uniform"], Solution)


def test_a_job_may_take_the_place_of_another_that_ended_or_failed():
    instance, bank, view = balanced_bank()
    n_kernels, seen = bank.n_kernels, []

    def failing():
        yield Quadratic(instance.y)
        raise RuntimeError("in the middle of a chain")

    problem = Problem(y=instance.y, n_kernels=n_kernels)
    following = [
        Job("second", view, problem, failing()),
        make_job(view, instance.y, n_kernels, key="third"),
    ]

    def done(key, outcome, times):
        seen.append((key, outcome))
        assert times.rounds >= 1
        return following.pop(0) if following and key != "beside" else None

    jobs = [make_job(view, instance.y, n_kernels, key=key) for key in ("first", "beside")]
    drive(bank, jobs, done)
    outcomes = dict(seen)
    assert [key for key, _ in seen if key != "beside"] == ["first", "second", "third"]
    assert isinstance(outcomes.pop("second"), RuntimeError)
    assert all(outcome.converged for outcome in outcomes.values())
    assert outcomes["third"].objective == outcomes["first"].objective


M, V = 4, np.ones(3)
DENSE, SPARSE = np.full(M, 0.25), np.array([0.5, 0.0, 0.0, 0.5])


@pytest.mark.parametrize(
    ("requests", "passes", "combines"),
    [
        ([], 0, 0),
        ([Quadratic(V)], 1, 0),
        ([Inner(np.ones((1, 3, 3)))], 1, 0),
        ([Radii()], 1, 0),
        ([Diagonal(np.ones((3, 1)))], 0, 0),
        ([Combine(DENSE)], 1, 1),
        ([Combine(SPARSE)], 0, 1),
        ([Combine(np.array([SPARSE, 1.0 - SPARSE]))], 1, 2),
        ([Combine(DENSE, np.arange(M))], 1, 1),
        ([Combine(SPARSE, np.arange(M))], 0, 1),
        ([Matvec(np.arange(M), V)], 1, 0),
        ([Matvec(np.array([0, 1]), V)] * 5, 0, 0),
        ([Matvec(np.array([0, 1]), V), Matvec(np.array([3, 2]), V)], 1, 0),
        ([Combine(np.eye(2), np.array([0, 1])), Combine(np.eye(2), np.array([2, 3]))], 1, 4),
        # A whole pass ends what was begun by parts.
        ([Quadratic(V, np.arange(3)), Quadratic(V), Quadratic(V, np.array([3]))], 1, 0),
    ],
)
def test_a_pass_ends_once_every_kernel_has_been_read_since_the_last(requests, passes, combines):
    count = RequestCount(M)
    for request in requests:
        count.count(request)
    assert (count.passes, count.combines) == (passes, combines)


MEAN_KERNEL = ("uniform", "lsvm", "lapsvm", "rls", "laprls")


def test_methods_on_the_mean_kernel_count_the_same_pass():
    shape = manifold("moons")
    for name in MEAN_KERNEL:
        laplacian = shape.laplacian if METHODS[name].needs_laplacian else None
        y = np.where(shape.y == 0, 1.0, shape.y) if name == "uniform" else shape.y
        counters = plain_bank.solve(name, shape.grams, y, laplacian=laplacian).counters
        assert (counters.passes, counters.combines) == (1, 1), name


def test_the_driver_counts_what_the_requests_say_beside_other_jobs_too():
    instance, bank, view = balanced_bank()
    names = ("simplemkl", "rmkl", "easymkl", "best_single", "alignf", "majority")
    jobs, expected, found = [], {}, {}
    for name in names:
        method = METHODS[name]
        params = method.params(tol=1e-3)
        alone = plain_bank.solve(name, instance.grams, instance.y, tol=1e-3)
        expected[name] = alone.counters
        problem = Problem(instance.y, bank.n_kernels)
        jobs.append(Job(name, view, problem, method.solve(problem, params)))
    drive(bank, jobs, lambda key, outcome, times: found.update({key: outcome.counters}))
    for name in names:
        assert found[name].passes == expected[name].passes
        assert found[name].combines == expected[name].combines
    assert (found["easymkl"].passes, found["easymkl"].combines) == (3, 2)
    assert (found["majority"].passes, found["majority"].combines) == (0, 0)
