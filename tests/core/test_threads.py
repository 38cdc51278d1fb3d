"""Processors, linear algebra on one thread, and LAPACK beside other threads."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace

import numpy as np  # loads the library whose threads are pluralize
import pytest
import threadpoolctl
from dask.system import cpu_count
from threadpoolctl import threadpool_info, threadpool_limits

from mkldist.core import threads as blas_threads
from mkldist.core.threads import (
    has_cholesky_factor,
    limit_new_libraries,
    n_processors,
    quotas,
    single_threaded,
)


def test_the_count_is_that_of_dask():
    assert n_processors() == cpu_count()


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({"cpu,cpuacct/cpu.cfs_quota_us": "150000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
         [1.5]),
        ({"cpu,cpuacct/cpu.cfs_quota_us": "-1", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, []),
        ({"slice/job/cpu.max": "400000 100000\n"}, [4.0]),
        ({"slice/job/cpu.max": "max 100000\n"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_quotas_of_both_versions_are_read(tmp_path, files, granted):
    group, groups = tmp_path / "cgroup", tmp_path / "groups"
    group.write_text("0::/slice/job\n")
    for name, content in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(content)
    assert list(quotas(group, groups)) == granted


def test_a_quota_bounds_the_count(tmp_path, monkeypatch):
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("50000 100000")
    monkeypatch.setattr("mkldist.core.threads.GROUP", tmp_path / "cgroup")
    monkeypatch.setattr("mkldist.core.threads.GROUPS", tmp_path)
    assert n_processors.__wrapped__() == 1


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_limit_stays_until_the_last_task_ends():
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        first, second = single_threaded(), single_threaded()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == before


def test_any_thread_may_set_the_limit_and_any_other_remove_it():
    limits = [single_threaded() for _ in range(3)]
    own = threadpool_limits(limits=2, user_api="blas")
    before = threads()  # another thread may have been the first to limit one of the libraries
    assert 2 in before
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        for limit in limits:
            one.submit(limit.__enter__).result()
            assert threads() == {1}
            other.submit(limit.__exit__, None, None, None).result()
            assert threads() == before
    own.restore_original_limits()


def test_a_task_that_fails_leaves_no_limit_behind():
    def fail() -> None:
        with single_threaded():
            seen.append(threads())
            raise ValueError("broken")

    seen: list[set[int]] = []
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        with pytest.raises(ValueError, match="broken"):
            fail()
        assert seen == [{1}]
        assert threads() == before


def test_libraries_are_searched_once_and_again_after_imports(monkeypatch):
    searches: list[int] = []

    class Counted(threadpoolctl.ThreadpoolController):
        def __init__(self) -> None:
            searches.append(1)
            super().__init__()

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Counted)
    monkeypatch.setattr(blas_threads, "_LIMIT", blas_threads._SharedLimit())
    for _ in range(3):
        with single_threaded():
            pass
    assert len(searches) == 1
    monkeypatch.setitem(sys.modules, "a_module_with_a_library", ModuleType("a_module"))
    with single_threaded():
        pass
    assert len(searches) == 2


def test_libraries_that_are_loaded_under_the_limit_have_it_and_lose_it_with_the_others(monkeypatch):
    threads = {"of numpy": 4}

    class Controller:
        lib_controllers = ()

        def limit(self, limits):
            before = dict(threads)
            threads.update(dict.fromkeys(threads, limits))
            return SimpleNamespace(restore_original_limits=lambda: threads.update(before))

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Controller)
    monkeypatch.setattr(blas_threads, "_LIMIT", blas_threads._SharedLimit())
    for again in (False, True):
        with single_threaded():
            if not again:
                threads["of scipy"] = 2
                monkeypatch.setitem(sys.modules, "a_module_with_a_library", ModuleType("a_module"))
                assert threads == {"of numpy": 1, "of scipy": 2}
                limit_new_libraries()
            assert threads == {"of numpy": 1, "of scipy": 1}
        assert threads == {"of numpy": 4, "of scipy": 2}
    limit_new_libraries()
    assert threads == {"of numpy": 4, "of scipy": 2}


@pytest.mark.parametrize("n", [1, 2, 7, 64, 200])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_factor_exists_where_the_smallest_eigenvalue_is_positive(n, order):
    rng = np.random.default_rng(n)
    rotation = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.append(-0.25, rng.random(n - 1))
    matrix = np.array((rotation * values) @ rotation.T, order=order)
    given = matrix.copy()
    assert not has_cholesky_factor(matrix, 0.0)
    assert not has_cholesky_factor(matrix, 0.25 - 1e-9)
    assert has_cholesky_factor(matrix, 0.25 + 1e-9)
    np.testing.assert_array_equal(matrix, given)


def test_other_threads_run_meanwhile():
    """A thread that waits for its turn would find the factorisation done."""
    matrix = np.eye(1500) + 1.0
    done = threading.Event()

    def factorise():
        has_cholesky_factor(matrix, 0.0)
        done.set()

    thread = threading.Thread(target=factorise)
    turns = 0
    thread.start()
    while not done.is_set():
        turns += 1
    thread.join()
    assert turns > 100


FIRST = """
import numpy
from mkldist.core.threads import single_threaded
from mkldist.core.threads import has_cholesky_factor
from threadpoolctl import threadpool_info
with single_threaded():
    assert has_cholesky_factor(numpy.eye(200), 0.0)
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
print(*(pool["num_threads"] for pool in pools))
"""


def test_the_library_that_the_first_factorisation_loads_has_the_limit_of_the_others():
    """On one processor it has one thread in any case."""
    run = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) == {"1"}
