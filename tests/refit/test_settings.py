"""Settings of grids and of searches, as columns over the splits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from mkldist.errors import InputError
from mkldist.fit.select import _runs, _settings, choose, refit
from tests.refit.sweeps import SPLITS, entry, recorded, swept

LOG = '{ low = 0.1, high = 1000, scale = "log" }'
RANDOM = '\n[selection]\nfolds = 2\n[search]\nkind = "random"\ntrials = 4'
HALVING = (
    '\n[selection]\nfolds = 2\n[search]\nkind = "halving"\ntrials = 4\nfactor = 2\n'
    'resource = "training-size"\nrungs = 2'
)


def node(planned: Any, **trials: Any) -> xr.DataTree:
    """Return a node of trials on two splits, whose errors count its runs; of halving if 3-d."""
    planned = np.array(planned)
    dims = ("split", "trial", "tol")[: planned.ndim]
    number = np.arange(planned.size).reshape(planned.shape)
    data = xr.Dataset(
        {
            "run_id": (dims, np.where(planned, np.char.add("r", number.astype(str)), "")),
            "state": (dims, np.where(planned, "complete", "")),
            "test_error": (dims, np.where(planned, number, np.nan)),
        },
        {"split": [0, 1], "trial": [0, 1]}
        | ({"tol": [0.3, 0.01]} if planned.ndim == 3 else {})
        | {name: (dims[:2], np.array(values)) for name, values in trials.items()},
    )
    return xr.DataTree.from_dict({"/heart/level": data})["heart/level"]


def test_trials_of_equal_values_are_one_setting_whatever_their_numbers():
    trials = node([[True, True], [True, True]], C=[[5.0, 7.0], [7.0, 5.0]])
    found = [*_settings(["C"], _runs(trials, "test_error"), "test_error", "test_error", [])]
    assert [(one.settings, one.run_ids, one.score, one.missing) for one in found] == [
        ({"C": 5.0}, ("r0", "r3"), 1.5, 0), ({"C": 7.0}, ("r1", "r2"), 1.5, 0),
    ]  # fmt: skip
    assert all(isinstance(one.settings["C"], float) for one in found)


def test_of_halving_the_last_rung_counts():
    planned = [[[True, True], [True, False]], [[True, False], [True, True]]]
    trials = node(planned, C=[[5.0, 7.0], [5.0, 7.0]])
    found = [*_settings(["C"], _runs(trials, "test_error"), "test_error", "test_error", [])]
    assert [(one.settings, one.run_ids, one.score) for one in found] == [
        ({"C": 5.0}, ("r1",), 1.0), ({"C": 7.0}, ("r7",), 7.0),
    ]  # fmt: skip


@pytest.mark.slow
def test_the_trial_of_least_mean_error_is_fitted(tmp_path):
    results = swept(tmp_path, entry("level", C=LOG), splits=SPLITS + RANDOM)
    errors: dict[float, list[float]] = {}
    for record in recorded(results):
        errors.setdefault(record.params["C"], []).append(record.scores["validation_error"])
    assert [len(of_splits) for of_splits in errors.values()] == [2] * 4
    found = choose(results)
    assert found.score == pytest.approx(min(np.mean(of_splits) for of_splits in errors.values()))
    assert np.mean(errors[found.settings["C"]]) == pytest.approx(found.score)
    assert "the best of 4 settings by cross-validation" in found.said
    assert refit(results, found).facts["params"]["C"] == found.settings["C"]


@pytest.mark.slow
def test_a_search_of_other_settings_on_each_split_is_refused_until_one_is_given(tmp_path):
    results = swept(tmp_path, entry("level", C=LOG), splits=SPLITS + HALVING)
    last = {(r.split, r.params["C"]): r.scores["validation_error"]
            for r in recorded(results) if r.split < 2}  # fmt: skip
    assert len({C for _, C in last}) > 2, "both splits kept the same trials: choose others"
    with pytest.raises(InputError, match="other settings of level on each split") as error:
        choose(results)
    best = [place for place in last if last[place] == min(last.values())]
    [(_, C)] = [
        (split, C)
        for split, C in best
        if f"--method level --set C={C:g} is the best of split {split};" in str(error.value)
    ]
    found = choose(results, method="level", settings={"C": C})
    assert (found.settings, found.changed) == ({"C": C}, {})
    assert refit(results, found, 1).facts["split"] == 1
    with pytest.raises(InputError, match="a number from 0 to 1"):
        refit(results, found, 2)
