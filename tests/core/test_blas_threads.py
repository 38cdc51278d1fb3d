"""One thread of linear algebra: as long as any task needs the limit, and no longer."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import numpy as np  # noqa: F401  # loads the library whose threads are pluralize
import pytest
import threadpoolctl
from threadpoolctl import threadpool_info, threadpool_limits

from mkldist.core import blas_threads
from mkldist.core.blas_threads import limit_new_libraries, single_threaded


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
