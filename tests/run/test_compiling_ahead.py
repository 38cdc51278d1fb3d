"""The process that compiles beside the workers: where there is one, and what it is given."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from mkldist.run import fork_server
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import compiling_ahead
from mkldist.worker.warm_up import compile_ahead
from tests.run.sweeps import plan_of

TEXT = """
name = "ahead"
execution = "{execution}"
[[datasets]]
name = "two_moons"
[[banks]]
[[banks.kernels]]
function = "linear"
[[methods]]
name = "level"
C = [1, 2, 3]
[[methods]]
name = "uniform"
"""
LOCAL = ConnectOptions(n_workers=2)


@pytest.fixture
def started(monkeypatch):
    """Return what is given to processes beside; none is started."""
    given = []

    def noting(*arguments):
        given.append(arguments)
        return nullcontext()

    monkeypatch.setattr(fork_server, "process_beside", noting)
    monkeypatch.setattr(ConnectOptions, "prepare", lambda options: given.append(("prepared",)))
    return given


def test_a_process_compiles_once_for_runs_that_differ_in_numbers(started):
    plan = plan_of(TEXT.format(execution="shared"))
    with compiling_ahead(plan, plan.batches, LOCAL):
        prepared, (function, wanted) = started
    assert prepared == ("prepared",)
    assert function is compile_ahead
    assert [specimen.method for specimen in wanted] == ["level", "uniform"]


@pytest.mark.parametrize(
    ("execution", "options"),
    [
        ("isolated", LOCAL),
        ("shared", ConnectOptions(in_this_process=True)),
        ("shared", ConnectOptions(scheduler="tcp://host:8786")),
    ],
    ids=["isolated", "a thread", "elsewhere"],
)
def test_no_process_compiles_beside_runs_that_are(started, execution, options):
    plan = plan_of(TEXT.format(execution=execution))
    with compiling_ahead(plan, plan.batches, options):
        assert not started


def test_without_runs_there_is_nothing_to_compile(started):
    with compiling_ahead(plan_of(TEXT.format(execution="shared")), (), LOCAL):
        assert not started
