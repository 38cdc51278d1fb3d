"""Predictions and coefficients that are asked for after all runs are recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mkldist.results.journal import Journal
from mkldist.results.status import lacking_runs
from mkldist.results.tree import open_results
from tests.run.sweeps import plan_of, record_times, records, run_here, sweep_text
from tests.variants import quick

PLAIN = sweep_text({"uniform": [1.0, 10.0]}).replace("predictions = true", "predictions = false")
BY_DEFAULT = PLAIN.replace("predictions = false", "")


def asking(*words: str) -> str:
    return BY_DEFAULT.replace("[outputs]", "\n".join(("[outputs]", *words)))


@pytest.mark.parametrize(
    ("words", "variable"),
    quick([("predictions = true", "decision_values"), ("coefficients = true", "coefficients")]),
)
def test_what_is_asked_for_later_is_computed_once(tmp_path, words, variable):
    output, asked = tmp_path / "r", asking(words)
    run_here(PLAIN, output, None)
    before = records(output)
    store = Journal(output / "records.journal")
    assert set(lacking_runs(plan_of(asked), store, output)) == before.keys()
    assert run_here(asked, output, None).computed == len(before)
    node = open_results(output)["two_moons/uniform"]
    assert variable in node
    assert np.isfinite(node[variable].to_numpy()).any(axis=-1).all()
    after = records(output)
    assert {i: one.objective for i, one in after.items()} == {
        i: one.objective for i, one in before.items()
    }
    times = record_times(output)
    assert lacking_runs(plan_of(asked), store, output) == []
    run_here(asked, output, None)
    assert record_times(output) == times


def test_few_decision_values_are_kept_by_default_with_facts_of_the_data(tmp_path, monkeypatch):
    for most, name in ((10**6, "few"), (1, "many")):
        monkeypatch.setattr("mkldist.run.rounds.MOST_VALUES", most)
        run_here(BY_DEFAULT, tmp_path / name, None)
    tree = open_results(tmp_path / "few")
    node, many = tree["two_moons/uniform"], open_results(tmp_path / "many")["two_moons/uniform"]
    tested = np.isfinite(node["decision_values"].to_numpy()).sum(axis=-1)
    assert (tested == node["n_test"].to_numpy()[:, None]).all()
    assert "decision_values" not in many
    (data,) = json.loads(tree.attrs["data"]).values()
    assert data["rows"] == node.sizes["sample"] == sum(data["classes"].values())
    assert (data["features"], data["missing"]) == (2, 0)


def test_what_is_kept_is_not_done_again_where_less_is_asked_for(tmp_path):
    output, asked = tmp_path / "r", asking("predictions = true")
    run_here(asked, output, None)
    times = record_times(output)
    run_here(PLAIN, output, None)
    run_here(asked, output, None)
    assert record_times(output) == times
