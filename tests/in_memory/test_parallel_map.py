"""Parts of work on kernels in threads: each done once, and the first error in their order."""

from __future__ import annotations

import threading

import numpy as np  # noqa: F401  # loads the library whose threads are pluralize
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mkldist.fit import bank as module
from mkldist.fit.bank import parallel_map


@pytest.mark.parametrize(("n_kernels", "entries"), [(1, 10), (500, 10_000), (7, 2**20)])
@pytest.mark.parametrize("available", [1, 2, 5])
def test_every_kernel_is_worked_on_once(monkeypatch, n_kernels, entries, available):
    monkeypatch.setattr(module, "n_processors", lambda: available)
    done, threads = [], set()

    def work(kernels):
        done.extend(range(kernels.start, kernels.stop))
        threads.add(threading.get_ident())

    parallel_map(work, n_kernels, entries)
    assert sorted(done) == list(range(n_kernels))
    assert len(threads) <= available
    if available == 1 or n_kernels * entries < module.FEW_ENTRIES:
        assert threads == {threading.get_ident()}
    else:
        assert threading.get_ident() not in threads


@pytest.mark.parametrize("available", [1, 2])
def test_the_first_error_in_the_order_of_the_kernels_is_raised(monkeypatch, available):
    monkeypatch.setattr(module, "n_processors", lambda: available)
    second_has_failed = threading.Event()

    def work(kernels):
        if kernels.start == 0 and available > 1:
            assert second_has_failed.wait(60)
        second_has_failed.set()
        raise ValueError(f"kernel {kernels.start}")

    with pytest.raises(ValueError, match=r"kernel 0$"):
        parallel_map(work, 8, 2**20)


def test_beside_other_threads_each_has_one_thread_of_linear_algebra(monkeypatch):
    monkeypatch.setattr(module, "n_processors", lambda: 2)
    seen = []

    def work(_):
        pools = threadpool_info()
        seen.append({pool["num_threads"] for pool in pools if pool["user_api"] == "blas"})

    with threadpool_limits(limits=2, user_api="blas"):
        parallel_map(work, 3, 2**20)
    assert seen == [{1}] * 3
