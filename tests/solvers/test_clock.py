"""The clock of a solver counts what runs and what is charged, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mkldist.solvers import clock as clock_module
from mkldist.solvers.clock import Clock


@pytest.fixture
def now(monkeypatch):
    """Return the time that the clock reads, for the test to change."""
    now = [100.0]
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(perf_counter=lambda: now[0]))
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
