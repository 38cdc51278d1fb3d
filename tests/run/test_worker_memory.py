"""Memory of a real worker against the plan's prediction, for mkldist.core.memory and plan.costs."""

from __future__ import annotations

import sys

import pytest

from mkldist.planning.costs import WORKER_BASE_BYTES
from mkldist.results.schema import RunState
from mkldist.run.cluster import ConnectOptions
from tests.peak_memory import peak_resident_bytes
from tests.run.sweeps import run_here, sweep_text

N_POINTS = 1200  # half of them are training points
WIDTHS = [round(0.1 * 1.08**k, 4) for k in range(60)]  # of three kernels each


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("backend", "execution"),
    [("memory", "shared"), pytest.param("stream", "isolated", marks=pytest.mark.slow)],
)
@pytest.mark.slow
def test_a_worker_takes_the_memory_that_its_plan_predicts(
    tmp_path, monkeypatch, backend, execution
):
    """The bank is 278 MiB of the prediction, so a second copy of it would fail the test."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    text = sweep_text({"level": [1.0, 100.0]}, repeats=1, backend=backend, execution=execution)
    text = text.replace("n = 80", f"n = {N_POINTS}").replace("[0.1, 0.3, 1.0, 3.0]", str(WIDTHS))
    with ConnectOptions(
        n_workers=1
    ).connect() as client:  # a worker of its own, without other tests' peak
        outcome = run_here(text, tmp_path / "small", client.scheduler_info()["address"])
        [peak] = client.run(peak_resident_bytes).values()
    assert outcome.counts[RunState.COMPLETE] == 2
    predicted = outcome.plan.memory_per_worker
    assert outcome.plan.bank_bytes > 0.4 * predicted
    assert 0.65 * predicted < peak < 1.1 * predicted


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("n_widths", [8, 80])
@pytest.mark.slow
def test_factors_that_grow_keep_to_the_memory_that_their_plan_predicts(
    tmp_path, monkeypatch, n_widths
):
    """The matrices would take 3.1 GB, which no worker has, those of 240 kernels ten times that.

    The factors of 240 kernels begin with 732 MiB, more than the 512 MiB of them in memory.
    """
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    widths = [*WIDTHS, *(round(0.1 * k, 4) for k in range(101, 121))][:n_widths]
    text = sweep_text({"level": [300.0, 3000.0]}, repeats=1, backend="factors")
    text = text.replace("n = 80", "n = 8000").replace("[0.1, 0.3, 1.0, 3.0]", str(widths))
    text = text.replace('name = "small"', 'name = "small"\nmemory = "1GiB"')
    with ConnectOptions(n_workers=1).connect() as client:
        outcome = run_here(text, tmp_path / "small", client.scheduler_info()["address"])
        [peak] = client.run(peak_resident_bytes).values()
    assert outcome.counts[RunState.COMPLETE] == 2
    predicted, [bank] = outcome.plan.memory_per_worker, outcome.plan.banks
    assert (bank.n_bytes > 2**29) is (n_widths == 80)
    assert predicted <= 2**30 + WORKER_BASE_BYTES
    assert peak < 1.1 * predicted
