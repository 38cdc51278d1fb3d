"""Methods paired on equal rows, and runs of one method at equal settings."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from mkldist.analysis.comparison import EqualSettings, at_equal_settings
from mkldist.analysis.pairing import Pair, Results, matching, paired
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.spec.model import SelectionSpec
from tests.analysis.two_sweeps import by_name, level_and_uniform, made, records_of
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

FIRST = {("heart", "level"): [0.1, 0.2, 0.3, 0.2, 0.1], ("heart", "uniform"): [0.2] * 5}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return made(tmp_path_factory.mktemp("first"), FIRST)


def test_methods_of_one_tree_are_paired_split_by_split_at_their_best_setting(first):
    (pair,), unpaired = paired(first, first, level_and_uniform)
    assert unpaired == []
    assert isinstance(pair, Pair)
    assert pair.splits == tuple((j, j) for j in range(5))
    np.testing.assert_allclose(pair.first.losses, FIRST["heart", "level"])
    assert pair.first.settings(range(5)) == {"C": 1.0}


def test_splits_of_two_trees_are_paired_by_their_rows_and_not_by_their_positions(first, tmp_path):
    names = ("s3", "new", "s0")
    second = made(tmp_path, {key: row[:3] for key, row in FIRST.items()}, split_names=names)
    pairs, unpaired = paired(first, second, by_name)
    assert unpaired == []
    assert [pair.splits for pair in pairs] == [((0, 2), (3, 0))] * 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"data": "other data"}, "their data differ (fingerprints the data and other data)"),
        (
            {"split_names": ("a", "b", "c", "d", "e")},
            "their splits differ: no split has the same rows in both",
        ),
    ],
    ids=["data", "splits"],
)
def test_other_rows_are_not_paired(first, tmp_path, changes, reason):
    second = made(tmp_path, FIRST, **changes)
    pairs, unpaired = paired(first, second, by_name)
    assert pairs == []
    assert [one.reason for one in unpaired] == [reason] * 2
    assert unpaired[0].place == "heart, level"


def test_two_trees_need_the_records_that_tell_their_rows(first, tmp_path):
    second = made(tmp_path / "second", FIRST)
    (tmp_path / "second" / "records.journal").unlink()
    pairs, unpaired = paired(first, second, by_name)
    assert pairs == []
    assert "holds no records, which tell if data and splits are the same" in unpaired[0].reason


def test_data_sets_of_one_tree_alone_take_no_part(first, tmp_path):
    second = made(tmp_path, {("wdbc", method): row for (_, method), row in FIRST.items()})
    assert paired(first, second, by_name) == ([], [])


def test_validation_chooses_the_setting_of_each_split(tmp_path):
    plan = made_up_plan({"level": {"C": [1.0, 10.0]}}, n_splits=3)
    plan = replace(plan, spec=plan.spec.model_copy(update={"selection": SelectionSpec()}))
    validation = {(0, 1.0): 0.1, (0, 10.0): 0.2, (1, 1.0): 0.3, (1, 10.0): 0.2, (2, 1.0): 0.0,
                  (2, 10.0): 0.1}  # fmt: skip
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        error = 0.5 - validation[run.split, run.params["C"]]  # test errors would choose the other
        scores = {"test_error": error, "validation_error": 0.5 - error}
        store.append([replace(made_up_record(run), scores=scores)])
    facts = made_up_facts(plan, {"level": {"C": [1.0, 10.0]}})
    lay_out(tmp_path, plan, facts)
    results = Results.of(str(tmp_path))
    assert results.validated
    chosen = results.chosen(results.nodes()[0], "test_error")
    np.testing.assert_allclose(chosen.losses, [0.4, 0.3, 0.5])
    assert chosen.settings(range(3)) == {"C": [1.0, 10.0, 1.0]}
    assert {"test_error", "validation_error", "objective"} <= {*chosen.metrics()}
    assert {"state", "stop_reason", "kernel_weights"}.isdisjoint(chosen.metrics())


def test_methods_match_by_name_and_never_with_themselves(first):
    level, uniform = first.places()
    by_names = matching(first, first, ("level", "uniform"))
    assert by_names(level, uniform)
    assert not by_names(uniform, level)
    assert not matching(first, first, ("level", "xu2008/level"))(level, level)
    assert matching(first, first)(level, level)


ERRORS = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2] * 3}
SPLITS = ("s0", "s1", "s2")


def level_in_both(folder, **changes) -> tuple[EqualSettings | None, tuple[np.ndarray, np.ndarray]]:
    first = made(folder / "a", ERRORS, split_names=SPLITS)
    second = made(folder / "b", ERRORS, split_names=SPLITS, **changes)
    pairs, _ = paired(first, second, by_name)
    seconds = tuple(
        np.array([sum(r.times[n] for n in ("own_seconds", "pass_seconds")) for r in
                  sorted(records_of(results), key=lambda r: r.id) if r.key == "level"])
        for results in (first, second)
    )  # fmt: skip
    return at_equal_settings(pairs[0]), seconds


def test_bounds_that_meet_agree(tmp_path):
    found, (first, second) = level_in_both(tmp_path, objective=10.05)
    assert found is not None
    assert found.n_runs == 6  # two values of C on three splits
    assert found.objective_change == pytest.approx(0.05 / 10.05)
    assert found.contradictions == 0
    assert found.seconds_ratio == pytest.approx(np.median(first / second))


def test_an_objective_below_the_bound_of_the_other_contradicts_it(tmp_path):
    found, _ = level_in_both(tmp_path, objective=9.0)
    assert found is not None
    assert found.contradictions == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "comparable"),
    [("far", 0.5, True), ("stop", "point", True), ("cache", 1, False), ("norm", 2.0, False)],
)
def test_settings_that_steer_the_solver_alone_leave_the_problem(tmp_path, name, value, comparable):
    first = made(tmp_path / "a", ERRORS, split_names=SPLITS)
    second = made(tmp_path / "b", ERRORS, split_names=SPLITS)
    pair, _ = paired(first, second, by_name)[0]
    node = pair.second.node
    settings = json.loads(node.attrs.get("settings", "{}"))
    node.attrs["settings"] = json.dumps({**settings, name: value})
    assert (at_equal_settings(pair) is not None) == comparable


@pytest.mark.slow
def test_other_kernels_or_methods_are_not_held_to_each_other(tmp_path):
    assert level_in_both(tmp_path, bank="another bank")[0] is None
    results = made(tmp_path / "c", ERRORS, split_names=SPLITS)
    pairs, _ = paired(results, results, level_and_uniform)
    assert at_equal_settings(pairs[0]) is None
