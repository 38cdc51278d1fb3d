"""The clock of a solver counts what runs and what is charged, and nothing else."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numba
import pytest

from mkldist import compiled as compiled_module
from mkldist.compiled import preparation
from mkldist.solvers import clock as clock_module
from mkldist.solvers.clock import Clock


@pytest.fixture
def now(monkeypatch):
    """Return the time that the clock reads, for the test to change."""
    now = [100.0]
    for module in (clock_module, compiled_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now[0]))
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


def compiled_for(now, seconds, inner=0.0):
    """Say that this thread compiles a function for some seconds, and another one within."""
    clock_module._compiler_listener.notify(SimpleNamespace(is_start=True))
    now[0] += seconds
    if inner:
        compiled_for(now, inner)
    clock_module._compiler_listener.notify(SimpleNamespace(is_start=False))


def test_a_clock_stands_still_while_its_thread_compiles(now):
    clock = Clock()
    now[0] += 1.0
    compiled_for(now, 5.0, inner=3.0)
    now[0] += 1.0
    assert clock.elapsed == pytest.approx(2.0)
    clock.pause()
    compiled_for(now, 5.0)
    clock.resume()
    now[0] += 1.0
    assert clock.elapsed == pytest.approx(3.0)


def test_a_clock_stands_still_while_python_calls_what_is_not_compiled(now, monkeypatch):
    monkeypatch.setattr(compiled_module, "SECONDS_IN_PYTHON", 60.0)

    def takes(seconds):
        now[0] += seconds

    def takes_more(seconds):
        in_python(seconds)
        compiled_for(now, seconds)

    python_first = compiled_module.compiled(python_first=True)
    in_python, with_another, clock = python_first(takes), python_first(takes_more), Clock()
    now[0] += 1.0
    in_python(3.0)
    with_another(5.0)
    now[0] += 1.0
    assert clock.elapsed == pytest.approx(2.0)


def test_a_clock_goes_on_while_another_thread_compiles(now):
    clock = Clock()
    other = threading.Thread(target=compiled_for, args=(now, 5.0))
    other.start()
    other.join()
    assert clock.elapsed == pytest.approx(5.0)


def test_the_compiler_tells_when_it_compiles(monkeypatch):
    before = Clock() and preparation.seconds
    told, notify = [], clock_module._CompilerListener.notify
    monkeypatch.setattr(
        clock_module._CompilerListener,
        "notify",
        lambda self, e: (told.append(e.is_start), notify(self, e)),
    )
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert told[0] is True
    assert told[-1] is False
    assert preparation.seconds > before
