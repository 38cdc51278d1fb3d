"""The choice of a setting: by the right score, among those that are asked for, said aloud."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mkldist.errors import InputError, StoreError
from mkldist.fit.select import choose
from mkldist.planning.model import Plan
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan, made_up_record

pytestmark = pytest.mark.slow


def results_of(
    folder: Path, plan: Plan, change: Any = lambda record: record, grids: Any = GRIDS
) -> Path:
    """Write the tree of made-up records, each changed or left out (None); return its folder."""
    store = Journal(folder / "records.journal")
    for run in plan.runs:
        record = change(made_up_record(run))
        if record is not None:
            store.append([record])
    lay_out(folder, plan, made_up_facts(plan, grids))
    return folder


def with_errors(errors: dict[tuple[str, float], list[float]], score: str = "test_error") -> Any:
    """Return a change that sets the error of each method, C and split."""

    def change(record: RunRecord) -> RunRecord:
        of_splits = errors.get((record.key, record.params.get("C", 0.0)), [0.5, 0.5, 0.5])
        record.scores.clear()
        record.scores[score] = of_splits[record.split]
        return record

    return change


def test_the_least_mean_error_over_the_splits_is_chosen_and_said(tmp_path):
    errors = {("level", 1.0): [0.3, 0.0, 0.0], ("level", 100.0): [0.15, 0.15, 0.15]}
    found = choose(results_of(tmp_path, made_up_plan(), with_errors(errors)))
    assert (found.dataset, found.bank, found.method) == ("heart", "xu2008", "level")
    assert found.settings == {"C": 1.0}
    assert found.score == pytest.approx(0.1)
    assert found.words == "level, C = 1"
    assert found.said == (
        "the best of 8 settings on the test parts (error 10.00 %, mean of 3 splits)"
    )
    assert len(found.run_ids) == 3


def test_a_setting_that_beats_no_constant_is_chosen_only_where_none_does(tmp_path):
    errors = {("level", 1.0): [0.0, 0.5, 0.09], ("level", 100.0): [0.2, 0.21, 0.2]}
    coordinates = {"n_train": 90, "n_test": 30, "n_unlabelled": 0, "n_new": 30, "n_rarest": 9}
    coordinates |= {"constant_score": 0.3}
    splits = {name: np.full(3, value) for name, value in coordinates.items()}
    plan, store = made_up_plan(), Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([with_errors(errors)(made_up_record(run))])
    facts = replace(made_up_facts(plan), splits={"heart": splits})
    lay_out(tmp_path, plan, facts)
    found = choose(tmp_path)
    assert found.settings == {"C": 100.0}
    assert not found.standing.no_better
    other = choose(tmp_path, method="uniform")
    assert other.standing.no_better
    assert (other.standing.mean, other.standing.constant) == (0.5, pytest.approx(0.3))


def test_the_method_of_least_selected_loss_comes_before_its_settings(tmp_path):
    plan = made_up_plan()
    errors = {
        ("level", 1.0): [0.1, 0.4, 0.4], ("level", 100.0): [0.4, 0.1, 0.25],
        ("uniform", 0.0): [0.2, 0.2, 0.2],
    }  # fmt: skip
    found = choose(results_of(tmp_path, plan, with_errors(errors, "validation_error")))
    assert (found.method, found.settings) == ("level", {"C": 100.0})
    assert found.score == pytest.approx(0.25)


def test_of_equal_settings_the_first_counts(tmp_path):
    found = choose(results_of(tmp_path, made_up_plan(), with_errors({})))
    assert (found.method, found.settings) == ("level", {"C": 0.1})


def test_without_test_parts_the_unlabelled_parts_choose(tmp_path):
    grids = {"level": {"C": [1.0, 100.0]}}
    plan = made_up_plan(grids)
    errors = {("level", 100.0): [0.1, 0.1, 0.1]}
    change = with_errors(errors, "unlabelled_error")
    facts = made_up_facts(plan, grids)
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([change(made_up_record(run))])
    unlabelled = type(facts)(**{**vars(facts), "unlabelled": {"heart"}})
    lay_out(tmp_path, plan, unlabelled)
    found = choose(tmp_path)
    assert found.settings == {"C": 100.0}
    assert "on the unlabelled parts (error 10.00 %" in found.said


@pytest.mark.parametrize(
    ("wanted", "method", "settings", "changed"),
    [
        ({"method": "uniform"}, "uniform", {}, {}),
        ({"method": "level", "settings": {"C": 100}}, "level", {"C": 100.0}, {}),
        ({"settings": {"C": 100.0, "variant": "newton"}}, "simplemkl",
         {"C": 100.0, "variant": "newton"}, {}),
        ({"method": "level", "settings": {"C": 3.0}}, "level", {}, {"C": 3.0}),
        ({"method": "level", "settings": {"tol": 1e-6}}, "level", {"C": 0.1}, {"tol": 1e-6}),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_chosen(wanted, method, settings, changed, tmp_path):
    found = choose(results_of(tmp_path, made_up_plan(), with_errors({})), **wanted)
    assert (found.method, found.settings, found.changed) == (method, settings, changed)


def test_the_only_setting_is_no_choice(tmp_path):
    found = choose(results_of(tmp_path, made_up_plan()), method="uniform")
    assert found.said == "the only setting"


def test_settings_whose_runs_are_not_complete_come_last(tmp_path):
    errors = with_errors({("level", 1.0): [0.1] * 3, ("level", 100.0): [0.2] * 3})

    def change(record: RunRecord) -> RunRecord | None:
        lacking = record.key == "level" and record.params["C"] == 1.0 and record.split == 2
        return None if lacking else errors(record)

    found = choose(results_of(tmp_path, made_up_plan(), change))
    assert found.settings == {"C": 100.0}
    assert found.note == "1 of 24 runs is waiting; resume the sweep first"
    assert "1 setting with runs that are not complete was left out" in found.said


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({}, "2 data sets: heart, liver; expected one.*--dataset heart"),
        ({"dataset": "hart"}, "--dataset hart: found nothing of this name.*Did you mean 'heart'"),
        (
            {"dataset": "heart", "method": "levl"},
            "--method levl: found nothing of this name.*'level'",
        ),
        (
            {"dataset": "heart", "bank": "x"},
            "--bank x: found nothing of this name; expected xu2008",
        ),
        ({"dataset": "heart", "settings": {"c": 1.0}}, "--set c: .*expected one of C, variant"),
    ],
)
def test_what_is_not_there_is_told(wanted, said, tmp_path):
    plan = made_up_plan(datasets=("heart", "liver"))
    with pytest.raises(InputError, match=said):
        choose(results_of(tmp_path, plan), **wanted)


def test_results_without_a_complete_run_are_told(tmp_path):
    with pytest.raises(InputError, match="no complete run; expected a complete run"):
        choose(results_of(tmp_path, made_up_plan(), lambda record: None))
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no results here"):
        choose(tmp_path / "empty")
    (tmp_path / "empty" / "records.journal").touch()
    with pytest.raises(StoreError, match=r"no tree\.layout beside the records"):
        choose(tmp_path / "empty")


def test_a_setting_without_a_score_is_told(tmp_path):
    def change(record: RunRecord) -> RunRecord:
        record.scores.clear()
        return record

    found = choose(results_of(tmp_path, made_up_plan(), change))
    assert np.isnan(found.score)
    assert found.said == "the first setting: none has a score"


def test_settings_that_all_lack_runs_are_counted_and_the_note_says_how_many_wait(tmp_path):
    grids = {"level": {"C": [1.0, 100.0]}}

    def change(record: RunRecord) -> RunRecord | None:
        return None if record.split else record

    found = choose(results_of(tmp_path, made_up_plan(grids), change, grids))
    assert "all have runs that are not complete" in found.said
    assert found.note == "4 of 6 runs are waiting; resume the sweep first"


def test_a_value_that_the_sweep_did_not_run_has_no_error(tmp_path):
    wanted = {"method": "level", "settings": {"C": 7.0}}
    found = choose(results_of(tmp_path, made_up_plan(), with_errors({})), **wanted)
    assert found.words == "level, C = 7"
    assert found.said == (
        "as asked; the results have no run of C = 7, so the error of this setting is unknown"
    )
    assert found.note == ""
