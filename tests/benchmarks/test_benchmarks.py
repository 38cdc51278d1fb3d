"""Each group times ours against a plain way of doing the same, in one run.

``pytest tests/benchmarks --benchmark-only --benchmark-group-by=group`` prints both sides and, in
brackets, their ratio; ``--data-dir`` with an ionosphere.csv gives the problem of Xu et al. 2008.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Quadratic
from mkldist.bank.view import make_views
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem
from mkldist.solvers.lockstep import Job, solve_alone
from mkldist.solvers.svm import solve_svm
from tests.benchmarks import problems
from tests.benchmarks.reach import one_kernel_at_a_time
from tests.benchmarks.straightforward_level import level as straightforward_level


@pytest.mark.benchmark(group="Gram build, xu2008")
class TestGramBuild:
    def test_ours(self, benchmark, data_dir):
        bank = benchmark(problems.built, problems.xu2008(data_dir))
        reference = one_kernel_at_a_time(problems.xu2008(data_dir))
        got = bank.layout.unpack(bank._values[-1])
        np.testing.assert_allclose(got, reference[-1], atol=1e-9)

    def test_loop_over_scikit_learn(self, benchmark, data_dir):
        points = problems.xu2008(data_dir)
        assert len(benchmark(one_kernel_at_a_time, points)) == len(points.kernels)


@pytest.mark.parametrize("n_vectors", [1, 8, 64])
@pytest.mark.benchmark(group="Quadratic pass")
class TestQuadraticPass:
    def test_ours(self, benchmark, data_dir, n_vectors):
        bank = problems.bank(data_dir)
        vectors = np.random.default_rng(0).normal(size=(bank.n_points, n_vectors))
        assert benchmark(answer, bank, [Quadratic(vectors)])[0].shape[1] == n_vectors

    def test_dense_numpy(self, benchmark, data_dir, n_vectors):
        flat = problems.grams(data_dir).reshape(len(problems.grams(data_dir)), -1)
        n = problems.bank(data_dir).n_points
        vectors = np.random.default_rng(0).normal(size=(n, n_vectors))

        def one_after_the_other() -> np.ndarray:
            return np.array([flat @ np.outer(v, v).ravel() for v in vectors.T])

        assert benchmark(one_after_the_other).shape[0] == n_vectors


@pytest.mark.parametrize("active", ["all", "twenty"])
@pytest.mark.benchmark(group="Combine")
class TestCombine:
    def weights(self, n_kernels: int, active: str) -> np.ndarray:
        weights = np.zeros(n_kernels)
        weights[:: 1 if active == "all" else n_kernels // 20] = 1.0
        return weights

    def test_ours(self, benchmark, data_dir, active):
        bank = problems.bank(data_dir)
        K = benchmark(answer, bank, [Combine(self.weights(bank.n_kernels, active))])[0]
        assert K.shape == (bank.n_points, bank.n_points)

    def test_dense_numpy(self, benchmark, data_dir, active):
        grams = problems.grams(data_dir)
        flat = grams.reshape(len(grams), -1)
        weights = self.weights(len(grams), active)
        assert benchmark(lambda: weights @ flat).shape == (flat.shape[1],)


@pytest.mark.benchmark(group="SVM on the mean kernel, C = 100")
class TestSvm:
    def test_ours_cold(self, benchmark, data_dir):
        K, y = problems.grams(data_dir).mean(axis=0), problems.xu2008(data_dir).y
        assert benchmark(solve_svm, K, y, 100.0, tol=1e-4).gap <= 1e-4

    def test_ours_warm(self, benchmark, data_dir):
        K, y = problems.grams(data_dir).mean(axis=0), problems.xu2008(data_dir).y
        start = solve_svm(K, y, 95.0, tol=1e-4).alpha
        assert benchmark(solve_svm, K, y, 100.0, tol=1e-4, start=start).gap <= 1e-4

    def test_scikit_learn(self, benchmark, data_dir):
        K, y = problems.grams(data_dir).mean(axis=0), problems.xu2008(data_dir).y
        svc = SVC(C=100.0, kernel="precomputed", tol=1e-4)
        assert benchmark(svc.fit, K, y).fit_status_ == 0


@pytest.mark.benchmark(group="Level on xu2008, C = 100, relative gap 0.01, bank built")
class TestLevel:
    def test_ours(self, benchmark, data_dir):
        bank, y = problems.bank(data_dir), problems.xu2008(data_dir).y
        [view] = make_views(bank, [None], ("trace",))
        method = METHODS["level"]

        def run():
            problem = Problem(y, bank.n_kernels)
            steps = method.solve(problem, method.params(C=100.0))
            return solve_alone(bank, Job("level", view, problem, steps))

        assert benchmark(run).gap <= 0.01

    def test_straightforward(self, benchmark, data_dir):
        grams, y = problems.grams(data_dir), problems.xu2008(data_dir).y
        objective, gap, _ = benchmark.pedantic(
            straightforward_level, (grams, y, 100.0), rounds=3, warmup_rounds=1
        )
        assert objective > 0
        assert gap <= 0.01
