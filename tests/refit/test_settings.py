"""Settings of grids and of searches, as columns over the splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mkldist.errors import InputError
from mkldist.fit.refit import refit
from mkldist.fit.select import SettingsRun, Wanted, choose
from mkldist.results.node_arrays import NodeArrays, nodes_in, nodes_of
from mkldist.results.tree import current, open_results
from mkldist.results.tree_index import TreeIndex
from tests.refit.sweeps import SPLITS, entry, recorded, swept

LOG = '{ low = 0.1, high = 1000, scale = "log" }'
RANDOM = '\n[selection]\nfolds = 2\n[search]\nkind = "random"\ntrials = 4'
HALVING = (
    '\n[selection]\nfolds = 2\n[search]\nkind = "halving"\ntrials = 4\nfactor = 2\n'
    'resource = "training-size"\nrungs = 2'
)


def node(dims: dict[str, list[Any]], planned: Any, **trials: Any) -> NodeArrays:
    planned = np.array(planned)
    number = np.arange(planned.size, dtype=float).reshape(planned.shape)
    return NodeArrays(
        {"method": "level"}, "classification",
        {name: np.array(values) for name, values in dims.items()},
        planned, {"error": number}, {name: np.array(values) for name, values in trials.items()},
    )  # fmt: skip


def test_a_grid_has_a_setting_for_each_of_its_points():
    found = SettingsRun.of(node({"C": [1.0, 2.0], "p": ["a", "b"]}, np.ones((3, 2, 2), bool)))
    assert found.settings == tuple({"C": C, "p": p} for C in (1.0, 2.0) for p in "ab")
    np.testing.assert_array_equal(found.variable("error"), np.arange(12.0).reshape(3, 4))
    assert np.isnan(found.variable("another")).all()
    assert not found.differ
    assert found.values_of("p") == ["a", "b"]


def test_trials_of_equal_values_are_one_setting_whatever_their_numbers():
    found = SettingsRun.of(
        node({"trial": [0, 1]}, np.ones((2, 2), bool), C=[[5.0, 7.0], [7.0, 5.0]])
    )
    assert (found.names, found.settings) == (("C",), ({"C": 5.0}, {"C": 7.0}))
    np.testing.assert_array_equal(found.variable("error"), [[0.0, 1.0], [3.0, 2.0]])
    assert not found.differ


def test_of_halving_the_last_rung_counts():
    planned = [[[True, True], [True, False]], [[True, False], [True, True]]]
    found = SettingsRun.of(
        node({"trial": [0, 1], "tol": [0.3, 0.01]}, planned, C=[[5.0, 7.0], [5.0, 7.0]])
    )
    assert found.settings == ({"C": 5.0}, {"C": 7.0})
    np.testing.assert_array_equal(found.planned, [[True, False], [False, True]])
    np.testing.assert_array_equal(found.variable("error"), [[1.0, np.nan], [np.nan, 7.0]])
    assert found.differ


def test_trials_are_read_alike_from_disk_and_from_xarray(tmp_path):
    results = swept(tmp_path, entry("level", C=LOG) + entry("uniform"), splits=SPLITS + RANDOM)
    names = ("run_id", "validation_error")
    for one, other in zip(
        nodes_in(TreeIndex(current(results)), names), nodes_of(open_results(results), names),
        strict=True,
    ):  # fmt: skip
        assert one.trials.keys() == other.trials.keys()
        for name, values in one.trials.items():
            np.testing.assert_array_equal(values, other.trials[name])


def test_the_trial_of_least_mean_error_is_fitted(tmp_path):
    results = swept(tmp_path, entry("level", C=LOG), splits=SPLITS + RANDOM)
    errors: dict[float, list[float]] = {}
    for record in recorded(results):
        errors.setdefault(record.params["C"], []).append(record.scores["validation_error"])
    assert [len(of_splits) for of_splits in errors.values()] == [2] * 4
    found = choose(results, Wanted())
    assert found.score == pytest.approx(min(np.mean(of_splits) for of_splits in errors.values()))
    assert np.mean(errors[found.settings["C"]]) == pytest.approx(found.score)
    assert "the best of 4 settings by cross-validation" in found.said
    assert refit(results, found).facts["params"]["C"] == found.settings["C"]


def test_a_search_of_other_settings_on_each_split_is_refused_until_one_is_given(tmp_path):
    results = swept(tmp_path, entry("level", C=LOG), splits=SPLITS + HALVING)
    last = {(r.split, r.params["C"]): r.scores["validation_error"]
            for r in recorded(results) if r.split < 2}  # fmt: skip
    assert len({C for _, C in last}) > 2, "both splits kept the same trials: choose others"
    with pytest.raises(InputError, match="other settings of level on each split") as error:
        choose(results, Wanted())
    best = [place for place in last if last[place] == min(last.values())]
    [(_, C)] = [
        (split, C)
        for split, C in best
        if f"--method level --set C={C:g} is the best of split {split};" in str(error.value)
    ]
    found = choose(results, Wanted(method="level", settings={"C": C}))
    assert (found.settings, found.changed) == ({"C": C}, {})
    assert refit(results, found, 1).facts["split"] == 1
    with pytest.raises(InputError, match="a number from 0 to 1"):
        refit(results, found, 2)
