"""A thread does small sweeps of mkldist's own methods; processes do all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.planning.costs import factor_rounds
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep_setup import (
    RECOMPUTED_BYTES_A_SECOND,
    SECONDS_OF_A_SOLVER,
    SECONDS_OF_PROCESSES,
    bank_seconds,
    build_seconds,
    certificate_bytes,
    expected_seconds,
    is_small,
    planned,
)
from mkldist.spec.load import load_sweep, sweep_file
from tests.run.sweeps import misbehaving_methods, plan_of, sweep_text

MANY_WIDTHS = '{ start = 0.1, stop = 10, num = 5000, scale = "log" }'
BYTES_BUILT_A_SECOND = 4e8  # as the text of a plan says


@pytest.mark.parametrize(
    ("changes", "small"),
    [
        ({}, True),
        ({"execution": "path"}, True),
        ({"execution": "isolated"}, False),
        ({"repeats": 100}, False),
    ],
)
def test_what_small_sweeps_are(changes, small):
    plan = plan_of(sweep_text({"level": [1.0, 10.0, 100.0]}, **changes))
    assert is_small(plan, plan.batches) is small


def test_the_quickstart_is_not_small_but_the_rest_of_it_may_be():
    file = sweep_file(Path("quickstart"))
    spec = load_sweep(file, (), None)
    plan, _ = planned(spec, file, (), ConnectOptions(n_workers=1))
    assert not is_small(plan, plan.batches)
    last = min(plan.batches, key=lambda batch: len(batch.runs))
    assert expected_seconds(plan, [last]) < expected_seconds(plan, plan.batches)


def test_a_bank_that_takes_long_to_build_is_no_small_work():
    """A run that looks at no kernel still waits for its bank."""
    text = sweep_text({}, repeats=1) + '[[methods]]\nname = "majority"'
    few = plan_of(text)
    many = plan_of(text.replace("[0.1, 0.3, 1.0, 3.0]", MANY_WIDTHS).replace("n = 80", "n = 400"))
    [bank] = many.banks
    assert bank.stored
    assert bank.n_bytes / BYTES_BUILT_A_SECOND > SECONDS_OF_PROCESSES
    assert is_small(few, few.batches)
    assert not is_small(many, many.batches)


def test_each_round_of_a_solution_on_factors_takes_a_pass_over_the_kernels():
    [bank] = plan_of(sweep_text({"level": [1.0]}, repeats=1, backend="factors")).banks
    n = bank.n_points
    assert certificate_bytes(bank) == 8 * bank.n_kernels * n * (n + 1) / 2
    one, two = bank_seconds(bank, 5.0, 1), bank_seconds(bank, 5.0, 2)
    of_pass = certificate_bytes(bank) / RECOMPUTED_BYTES_A_SECOND
    assert two - one == pytest.approx(SECONDS_OF_A_SOLVER + factor_rounds(bank).usual * of_pass)
    assert 0.0 < build_seconds(bank) < of_pass * 100


def test_methods_from_elsewhere_get_processes():
    with misbehaving_methods():
        plan = plan_of(sweep_text({"killing": [1.0]}))
        assert not is_small(plan, plan.batches)


def test_what_the_user_chooses_is_no_default():
    assert ConnectOptions().are_default
    for chosen in (
        ConnectOptions(n_workers=1),
        ConnectOptions(threads_per_worker=2),
        ConnectOptions("tcp://host:1"),
        ConnectOptions(cluster_file=Path("cluster.yaml")),
    ):
        assert not chosen.are_default
