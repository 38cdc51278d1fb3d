"""The summary at selected settings, held against the records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from mkldist.analysis.summary import recorded_table, results_table, selected_summary
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.tree import open_results
from mkldist.spec.model import SelectionSpec
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


@pytest.fixture(scope="module")
def plan():
    made = made_up_plan(n_splits=3)
    return replace(made, spec=made.spec.model_copy(update={"selection": SelectionSpec()}))


@pytest.fixture(scope="module")
def records(plan):
    made = [made_up_record(run) for run in plan.runs]
    errors = np.random.default_rng(3).uniform(0, 0.5, len(made))
    return [
        replace(record, scores=record.scores | {"validation_error": float(error)})
        for record, error in zip(made, errors, strict=True)
    ]


@pytest.fixture(scope="module")
def folder(plan, records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    store = Journal(folder / "records.journal")
    for record in records:
        store.append([record])
    lay_out(folder, plan, made_up_facts(plan))
    return folder


@pytest.fixture(scope="module")
def tree(folder):
    return open_results(folder)


def test_every_method_stands_once_at_what_each_split_selected(records, tree):
    table = selected_summary(tree).set_index("method")
    assert sorted(table.index) == ["level", "simplemkl", "uniform"]
    for method, row in table.iterrows():
        best = [
            min((r for r in records if r.key == method and r.split == split),
                key=lambda r: r.scores["validation_error"])
            for split in range(3)
        ]  # fmt: skip
        expected = np.mean([record.scores["test_error"] for record in best])
        assert row["test_error_mean"] == pytest.approx(expected)
        assert row["complete"] == 3
        chosen = sorted({record.params["C"] for record in best if "C" in record.params})
        if chosen:
            span = {f"{chosen[0]:g}", f"{chosen[-1]:g}"}
            assert set(row["C"].split("…")) == span
        else:
            assert pd.isna(row["C"])
    assert table["best"].sum() == 1
    assert table["validation_error_mean"].idxmin() == table["best"].idxmax()


def test_what_most_splits_select_at_an_end_of_the_grid_is_told(records, tree):
    table = selected_summary(tree).set_index("method")
    by_split = [
        min((r for r in records if r.key == "level" and r.split == split),
            key=lambda r: r.scores["validation_error"]).params["C"]
        for split in range(3)
    ]  # fmt: skip
    ends = {end: by_split.count(end) for end in (0.1, 100.0) if by_split.count(end) > 1}
    [(end, count)] = ends.items()
    assert table.loc["level", "edge"] == f"C = {end:g} in {count} of 3 splits"
    assert table.loc["uniform", "edge"] == ""


def test_a_split_whose_losses_are_equal_selects_no_end_of_the_grid(plan, records, tmp_path):
    store = Journal(tmp_path / "records.journal")
    for record in records:
        flat = {"validation_error": 0.25 + 0.25 * (record.params.get("C") != 0.1)}
        flat = flat if record.split == 0 else {"validation_error": 0.25}
        store.append([replace(record, scores=record.scores | flat)])
    lay_out(tmp_path, plan, made_up_facts(plan))
    table = selected_summary(open_results(tmp_path)).set_index("method")
    assert table.loc["level", "C"] == "0.1"
    assert table.loc["level", "edge"] == ""


def test_splits_without_a_complete_run_select_nothing(plan, records, tmp_path):
    store = Journal(tmp_path / "records.journal")
    done = [record for record in records if record.key == "level" and record.split == 1]
    for record in done:
        store.append([record])
    lay_out(tmp_path, plan, made_up_facts(plan))
    table = selected_summary(open_results(tmp_path)).set_index("method")
    best = min(done, key=lambda record: record.scores["validation_error"])
    assert table.loc["level", "C"] == f"{best.params['C']:g}"
    assert table.loc["level", "edge"] in ("", f"C = {best.params['C']:g} in 1 of 1 splits")
    assert pd.isna(table.loc["simplemkl", "C"])
    assert table.loc["simplemkl", "edge"] == ""


def printed(table):
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_the_table_of_a_sweep_with_selection_says_so(folder, tree):
    text = printed(results_table(tree))
    assert printed(recorded_table(folder)) == text
    assert "best validation error in each split" in text
    assert sum(line.startswith(" level ") for line in text.splitlines()) == 1
    assert "* best mean validation error of its data set." in text
    assert "test part" not in text


def test_runs_that_the_tree_does_not_hold_yet_count_once(plan, records, tmp_path):
    store = Journal(tmp_path / "records.journal")
    lay_out(tmp_path, plan, made_up_facts(plan))
    for record in records[:5]:
        store.append([record])
    assert recorded_table(tmp_path).counts == (5, 0, len(plan.runs) - 5)
