"""The cache of banks: found by content, bounded in bytes, gone with the last estimator."""

import gc
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mkldist
from mkldist import MKLClassifier
from mkldist.core.memory import physical_memory
from mkldist.errors import SpecError
from mkldist.fit.estimators import BANKS, BankCache
from mkldist.fit.inputs import Features
from mkldist.kernels import Custom, Gaussian, Linear

X = np.random.default_rng(0).normal(size=(50, 3))
Y = X[:, 0] > 0.0


def features(points, names=None):
    return Features(points, names or ("x0", "x1", "x2"), named=names is not None)


def lent(cache, kernels=None, points=X, names=None, **settings):
    usual = {"normalisation": "trace", "groups": {}, "views": {}, "backend": "auto", "seed": 0}
    kernels = kernels or [Gaussian(widths=1.0)]
    with cache.bank(features(points, names), kernels=kernels, **{**usual, **settings}) as bank:
        return bank


def test_equal_content_is_the_same_bank():
    cache = BankCache(2**20)
    same = [{"function": "gaussian", "widths": 1.0, "features": "all"}]
    assert lent(cache) is lent(cache, same, X.copy())


@pytest.mark.parametrize(
    "other",
    [
        {"kernels": [Gaussian(widths=2.0)]},
        {"kernels": [Linear()]},
        {"normalisation": "none"},
        {"normalisation": ["centre", "trace"]},
        {"backend": "recompute"},
        {"seed": 1},
        {"groups": {"two": [0, 1]}},
        {"views": {"two": [0, 1]}},
        {"missing": "zero"},
        {"points": X + 1e-9},
        {"points": X[::-1].copy()},
        {"names": ("a", "b", "c")},
    ],
)
def test_other_content_is_another_bank(other):
    cache = BankCache(2**20)
    assert lent(cache, **other) is not lent(cache)
    assert len(cache) == 2


def test_functions_of_one_name_have_banks_of_their_own(tmp_path, monkeypatch):
    pair = [lambda x, z: x @ z.T, lambda x, z: 2.0 * (x @ z.T)]
    cache = BankCache(2**20)
    banks = [lent(cache, [call], normalisation="none") for call in (*pair, pair[0])]
    assert banks[0] is banks[2] is not banks[1]
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "kernels_of_one_name.py"
    banks = []
    for factor in (1, 2, 1):
        file.write_text(f"def k(x, z):\n    return {factor} * (x @ z.T)\n")
        banks.append(lent(cache, [Custom("kernels_of_one_name:k")], normalisation="none"))
    assert banks[0] is banks[2] is not banks[1]
    assert len(cache) == 4


def test_the_banks_used_longest_ago_go_first():
    cache = BankCache(2**30)
    first = lent(cache, seed=0)
    cache.resize(3 * cache.n_bytes)
    second, third = (lent(cache, seed=seed) for seed in (1, 2))
    assert lent(cache, seed=0) is first
    lent(cache, seed=3)
    assert len(cache) == 3
    assert cache.n_bytes <= cache.limit
    assert lent(cache, seed=0) is first
    assert lent(cache, seed=2) is third
    assert lent(cache, seed=1) is not second


def test_a_bank_above_the_limit_is_lent_and_forgotten_and_leaves_others():
    cache = BankCache(30_000)
    small = lent(cache)
    assert len(lent(cache, [Gaussian(widths=[1.0, 2.0, 3.0])])) == 3
    assert lent(cache) is small
    assert len(cache) == 1


def test_a_bank_that_cannot_be_made_leaves_nothing_behind():
    cache = BankCache(2**20)
    for _ in range(2):
        with pytest.raises(SpecError, match="features"):
            lent(cache, [Linear(features="x9")])
    assert len(cache) == 0


def test_no_bank_is_lent_to_two_threads_at_once():
    cache, using = BankCache(2**20), []
    settings = {"normalisation": "trace", "groups": {}, "views": {}, "backend": "auto"}

    def use(_: int) -> None:
        with cache.bank(features(X), kernels=[Gaussian(widths=1.0)], **settings) as bank:
            assert id(bank) not in using
            using.append(id(bank))
            time.sleep(0.001)
            using.remove(id(bank))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(40)))
    assert len(cache) == 1


def test_the_default_bound_is_modest():
    assert BankCache().limit == min(2**30, physical_memory() // 8)


def test_bytes_stay_below_the_bound_that_is_set():
    model = MKLClassifier("uniform", kernels=[Gaussian(widths=1.0)])
    with mkldist.set_bank_cache(2**30):
        BANKS.clear()
        model.fit(X, Y)
        bound = 5 * BANKS.n_bytes // 2
        with mkldist.set_bank_cache(bound):
            for seed in range(5):
                model.set_params(random_state=seed).fit(X, Y)
                assert 0 < BANKS.n_bytes <= bound
            assert len(BANKS) == 2
        assert len(BANKS) == 2
        mkldist.set_bank_cache(bound // 2)
        assert len(BANKS) == 1


def test_a_cache_that_is_off_keeps_nothing():
    before = BANKS.limit
    model = MKLClassifier("uniform", kernels=[Gaussian(widths=1.0)])
    expected = model.fit(X, Y).decision_function(X)
    assert len(BANKS) > 0
    with mkldist.set_bank_cache(0):
        assert len(BANKS) == BANKS.n_bytes == 0
        np.testing.assert_array_equal(model.fit(X, Y).decision_function(X), expected)
        assert len(BANKS) == 0
    assert BANKS.limit == before
    model.fit(X, Y)
    assert len(BANKS) == 1


@pytest.mark.parametrize("n_bytes", [-1, 0.5, "1 GiB", True])
def test_other_bounds_are_refused(n_bytes):
    before = BANKS.limit
    with pytest.raises(SpecError, match="n_bytes"):
        mkldist.set_bank_cache(n_bytes)
    assert BANKS.limit == before


class User:
    """Stands for an estimator."""


def test_banks_go_with_the_last_user():
    cache, first, second = BankCache(2**20), User(), User()
    cache.serve(first)
    cache.serve(second)
    lent(cache)
    del first
    gc.collect()
    assert len(cache) == 1
    del second
    gc.collect()
    assert len(cache) == 0


LAST = """
import gc, pickle
import numpy as np
from sklearn.base import clone
import mkldist
from mkldist.fit.estimators import BANKS
X = np.random.default_rng(0).normal(size=(50, 3))
model = mkldist.OneClassMKL(kernels=[mkldist.kernels.Gaussian(widths=1.0)]).fit(X)
counts = [len(BANKS)]
copies = [clone(model), pickle.loads(pickle.dumps(model))]
while copies:
    del model
    gc.collect()
    counts.append(len(BANKS))
    model = copies.pop()
del model
gc.collect()
print(*counts, len(BANKS), BANKS.n_bytes)
"""


@pytest.mark.slow
def test_banks_go_with_the_last_estimator_copies_and_pickles_among_them():
    run = subprocess.run([sys.executable, "-c", LAST], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "1", "1", "0", "0"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_searches_in_threads_and_processes_give_the_same(backend):
    from joblib import parallel_config

    model = clone(MKLClassifier("uniform", kernels=[Gaussian(widths=1.0)]))
    grid = {"C": [0.1, 1.0, 10.0]}
    plain = GridSearchCV(model, grid, cv=3).fit(X, Y)
    with parallel_config(backend, n_jobs=2):
        found = GridSearchCV(model, grid, cv=3).fit(X, Y)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(X), plain.predict(X))


def test_a_column_by_number_is_not_one_by_name():
    cache, names = BankCache(2**20), ("1", "0", "2")
    kernels = [Gaussian(widths=1.0, features="one")]
    by_number = lent(cache, kernels, names=names, groups={"one": [0]})
    by_name = lent(cache, kernels, names=names, groups={"one": ["0"]})
    assert by_number.kernels["columns"].tolist() == [("1",)]
    assert by_name.kernels["columns"].tolist() == [("0",)]
