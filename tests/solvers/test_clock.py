"""The clock of a solver counts what runs and what is charged, and nothing else."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numba
import pytest

from mkldist.core import compiled as compiled_module
from mkldist.core.compiled import compiled, preparation_seconds
from mkldist.solvers import progress as clock_module
from mkldist.solvers.progress import Clock


@pytest.fixture
def now(monkeypatch):
    """Return the time that the clock reads, for the test to change."""
    now = [100.0]
    for module in (clock_module, compiled_module):
        monkeypatch.setattr(
            module, "time", SimpleNamespace(perf_counter=lambda: now[0], thread_time=lambda: now[0])
        )
    return now


def test_a_clock_counts_while_it_runs_and_what_it_is_charged(now):
    clock = Clock()
    now[0] += 2.0
    assert clock.elapsed == 2.0
    clock.pause()
    now[0] += 50.0
    assert clock.elapsed == 2.0
    clock.charge(0.5)
    assert clock.elapsed == 2.5
    clock.resume()
    now[0] += 1.0
    assert clock.elapsed == 3.5
    assert clock.past(3.5)
    assert not clock.past(3.6)


@compiled
def plus_one(x):
    return x + 1


def test_a_clock_stands_still_while_its_thread_compiles(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    clock, begun = Clock(), time.perf_counter()
    assert plus_one(1) == 2
    took, counted = time.perf_counter() - begun, clock.elapsed
    assert counted < 0.5 * took
    wall, cpu = preparation_seconds()
    assert wall > 0.5 * took
    assert 0 < cpu <= wall


def test_a_clock_stands_still_while_python_calls_what_is_not_compiled(now, monkeypatch):
    monkeypatch.setattr(compiled_module, "SECONDS_IN_PYTHON", 60.0)

    def takes(seconds):
        now[0] += seconds

    def takes_more(seconds):
        in_python(seconds)
        now[0] += seconds

    python_first = compiled(python_first=True)
    in_python, with_another, clock = python_first(takes), python_first(takes_more), Clock()
    now[0] += 1.0
    in_python(3.0)
    with_another(5.0)
    now[0] += 1.0
    assert clock.elapsed == pytest.approx(2.0)


def test_a_clock_goes_on_while_another_thread_prepares(now, monkeypatch):
    monkeypatch.setattr(compiled_module, "SECONDS_IN_PYTHON", 60.0)

    def takes(seconds):
        now[0] += seconds

    clock = Clock()
    other = threading.Thread(target=compiled(python_first=True)(takes), args=(5.0,))
    other.start()
    other.join()
    assert clock.elapsed == pytest.approx(5.0)
