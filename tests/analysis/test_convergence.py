"""Median gaps of traced runs, written out by hand for few runs."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.analysis import convergence_curves
from mkldist.errors import InputError
from tests.analysis.traced import traced

RUNS = [
    ([0.8, 0.4, 0.5, 0.1], [1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4]),
    ([0.6, 0.2], [2, 3], [1.0, 2.0]),
    ([0.9], [1], [0.1]),
]


def test_the_median_over_passes_is_that_of_the_best_gaps_so_far():
    table = convergence_curves(traced({"level": RUNS}), "passes").set_index("passes")
    # best so far at 1, 2, 3 and 4 passes: 0.8 0.4 0.4 0.1; none 0.6 0.2 0.2; 0.9 0.9 0.9 0.9
    assert table["gap"].to_dict() == {1.0: 0.9, 2.0: 0.6, 3.0: 0.4, 4.0: 0.2}
    assert table["gap_low"].to_dict() == {1.0: 0.8, 2.0: 0.4, 3.0: 0.2, 4.0: 0.1}
    assert np.isnan(table.loc[1.0, "gap_high"])  # the second run has no gap yet
    assert table.loc[2.0:, "gap_high"].tolist() == [0.9] * 3
    assert set(table["runs"]) == {3}


def test_over_seconds_curves_fall_from_the_first_time_to_the_last():
    table = convergence_curves(traced({"level": RUNS}))
    assert table["seconds"].is_monotonic_increasing
    assert table["gap"].is_monotonic_decreasing
    assert table["seconds"].iloc[-1] == pytest.approx(2.0)
    assert table["gap"].iloc[-1] == 0.2


def test_results_without_traces_have_no_rows():
    tree = traced({"level": RUNS})
    tree["ring/level"].children = {}
    assert convergence_curves(tree).empty


def test_methods_whose_runs_all_wait_have_no_rows():
    tree = traced({"level": RUNS, "silp": [([], [], [])] * 2})
    assert set(convergence_curves(tree)["method"]) == {"level"}


def test_traces_that_do_not_hold_passes_have_seconds_alone():
    tree = traced({"level": RUNS})
    tree["ring/level/convergence"].dataset = (
        tree["ring/level/convergence"].to_dataset().drop_vars("passes")
    )
    assert convergence_curves(tree, "passes").empty
    assert not convergence_curves(tree, "seconds").empty


def test_an_unknown_cost_is_refused():
    with pytest.raises(InputError, match="found against = 'pass'; expected \"passes\""):
        convergence_curves(traced({"level": RUNS}), "pass")
