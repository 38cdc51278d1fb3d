"""The cache of banks: found by content, bounded in bytes, one user of a bank at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.fit.bank import BankCache, BankRequest
from mkldist.fit.inputs import Rows
from mkldist.kernels import Custom, Gaussian, Linear

X = np.random.default_rng(0).normal(size=(50, 3))


def request(kernels=None, normalisation="trace", groups=None, backend="auto", seed=0):
    return BankRequest(kernels or [Gaussian(width=1.0)], normalisation, groups, backend, seed)


def lent(cache, asked, points=X, names=None):
    with cache.bank(asked, Rows(points, names)) as bank:
        return bank


def test_equal_content_is_the_same_bank():
    cache = BankCache(2**20)
    same = request([{"function": "gaussian", "widths": 1.0, "features": "all"}])
    assert lent(cache, request()) is lent(cache, same, X.copy())


@pytest.mark.parametrize(
    ("asked", "points", "names"),
    [
        (request([Gaussian(width=2.0)]), X, None),
        (request([Linear()]), X, None),
        (request(normalisation="none"), X, None),
        (request(normalisation=["centre", "trace"]), X, None),
        (request(backend="recompute"), X, None),
        (request(seed=1), X, None),
        (request(groups={"two": [0, 1]}), X, None),
        (request(), X + 1e-9, None),
        (request(), X[::-1].copy(), None),
        (request(), X, ("a", "b", "c")),
    ],
)
def test_other_content_is_another_bank(asked, points, names):
    cache = BankCache(2**20)
    assert lent(cache, asked, points, names) is not lent(cache, request())
    assert len(cache) == 2


def test_functions_of_one_name_have_banks_of_their_own(tmp_path, monkeypatch):
    pair = [lambda x, z: x @ z.T, lambda x, z: 2.0 * (x @ z.T)]
    cache = BankCache(2**20)
    banks = [lent(cache, request([call], "none")) for call in (*pair, pair[0])]
    assert banks[0] is banks[2] is not banks[1]
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "kernels_of_one_name.py"
    banks = []
    for factor in (1, 2, 1):
        file.write_text(f"def k(x, z):\n    return {factor} * (x @ z.T)\n")
        banks.append(lent(cache, request([Custom("kernels_of_one_name:k")], "none")))
    assert banks[0] is banks[2] is not banks[1]
    assert len(cache) == 4


def test_the_banks_used_longest_ago_go_first():
    cache = BankCache(2**30)
    first = lent(cache, request(seed=0))
    cache.limit = 3 * cache.n_bytes
    second, third = (lent(cache, request(seed=seed)) for seed in (1, 2))
    assert lent(cache, request(seed=0)) is first
    lent(cache, request(seed=3))
    assert len(cache) == 3
    assert cache.n_bytes <= cache.limit
    assert lent(cache, request(seed=0)) is first
    assert lent(cache, request(seed=2)) is third
    assert lent(cache, request(seed=1)) is not second


def test_a_bank_above_the_limit_is_lent_and_forgotten():
    cache = BankCache(1000)
    assert len(lent(cache, request())) == 1
    assert len(cache) == 0


def test_a_bank_that_cannot_be_made_leaves_nothing_behind():
    cache = BankCache(2**20)
    with pytest.raises(SpecError, match="features"):
        lent(cache, request([Linear(features="x9")]))
    assert cache.n_bytes == 0
    with pytest.raises(SpecError, match="features"):
        lent(cache, request([Linear(features="x9")]))
    cache.clear()
    assert len(cache) == 0


def test_threads_take_turns_on_a_bank_that_is_made_once():
    cache, using, most, banks = BankCache(2**20), [0], [0], set()
    lock = threading.Lock()

    def use(_: int) -> None:
        with cache.bank(request(), Rows(X)) as bank:
            with lock:
                using[0] += 1
                most[0] = max(most[0], using[0])
            banks.add(id(bank))
            with lock:
                using[0] -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(40)))
    assert most == [1]
    assert len(banks) == 1
