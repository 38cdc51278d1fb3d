"""Predictions and coefficients that are asked for after all runs are recorded."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.results.recorded import lacking_runs
from mkldist.results.records import RecordStore
from mkldist.results.tree import open_results
from tests.run.sweeps import plan_of, record_times, records, run_here, sweep_text
from tests.variants import quick

PLAIN = sweep_text({"uniform": [1.0, 10.0]}).replace("predictions = true", "")


def asking(*words: str) -> str:
    return PLAIN.replace("[outputs]", "\n".join(("[outputs]", *words)))


@pytest.mark.parametrize(
    ("words", "variable"),
    quick([("predictions = true", "decision_values"), ("coefficients = true", "coefficients")]),
)
def test_what_is_asked_for_later_is_computed_once(tmp_path, words, variable):
    output, asked = tmp_path / "r", asking(words)
    run_here(PLAIN, output, None)
    before = records(output)
    tree, store = output / "results.zarr", RecordStore(output / "records")
    assert set(lacking_runs(plan_of(asked), store, tree)) == before.keys()
    assert run_here(asked, output, None).computed == len(before)
    node = open_results(output)["two_moons/uniform"]
    assert variable in node
    assert np.isfinite(node[variable].to_numpy()).any(axis=-1).all()
    after = records(output)
    assert {i: one.objective for i, one in after.items()} == {
        i: one.objective for i, one in before.items()
    }
    times = record_times(output)
    assert lacking_runs(plan_of(asked), store, tree) == []
    run_here(asked, output, None)
    assert record_times(output) == times


def test_what_is_kept_is_not_done_again_where_less_is_asked_for(tmp_path):
    output, asked = tmp_path / "r", asking("predictions = true")
    run_here(asked, output, None)
    times = record_times(output)
    run_here(PLAIN, output, None)
    run_here(asked, output, None)
    assert record_times(output) == times
