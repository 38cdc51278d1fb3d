"""Sentences and cautions of the report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mkldist.report.answer import answer_sentences, answers_of
from mkldist.report.facts import Facts
from mkldist.report.words import Caution, cautions, headline
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.schema import RunState
from mkldist.results.tree import open_results
from tests.report.made_up import N_SPLITS, parts
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


def test_the_headline_of_a_finished_sweep(finished):
    answers = answers_of(finished)
    asked, *came_out, certified = headline(finished, answers)
    n_runs = finished.status.n_runs
    assert all(part in asked for part in ("3 methods", "heart", "7 kernels", "5 splits"))
    assert f"all {n_runs} runs" in asked
    assert came_out == answer_sentences(finished, answers)
    assert f"All {n_runs} complete runs" in certified
    assert f"{finished.runs['gap'].max():.1e}" in certified


def test_the_headline_of_a_running_sweep_counts_what_is_there(facts):
    asked, *_, certified = headline(facts, answers_of(facts))
    done = facts.count(RunState.COMPLETE)
    assert f"{done} of {facts.status.n_runs} runs are complete" in asked
    assert certified.startswith(f"{done - 1} of {done} complete runs reached their tolerance")
    assert certified.endswith("; 1 run failed.")


def cases_of(facts: Facts, title: str) -> tuple[str, ...]:
    """Return the cases of the one warning of a title; none without it."""
    return next((caution.cases for caution in cautions(facts) if caution.title == title), ())


def test_a_warning_of_many_cases_shows_a_few_and_counts_all():
    one = Caution("Beware", "Do this.", tuple(f"case {n}" for n in range(200)))
    assert "case 2" in one.text
    assert "case 3" not in one.text
    assert "197 more of 200" in one.text
    assert one.text.endswith("Do this.")


def test_cautions_name_what_to_beware_of(facts):
    found = cautions(facts)
    said = {caution.title: caution for caution in found}
    assert len(said) == len(found)
    assert said["Unfinished"].text.startswith(f"2 of {facts.status.n_runs} runs")
    assert "1 run failed" in said["Failed runs"].text
    [early] = said["Stopped before the tolerance"].cases
    assert "max_iter (1)" in early
    assert "5.0e-01" in early
    assert "Settings chosen on the test parts" in said
    assert "Times shared, not isolated" in said


def test_a_best_value_at_the_edge_is_told_and_one_inside_is_not(finished):
    said = cases_of(finished, "Best value at the edge of its grid")
    (compared,) = finished.compared
    best = compared.settings["level"]["C"]
    assert any(text.startswith("level: ") for text in said) == (best in (0.1, 100.0))
    assert not any(text.startswith("simplemkl: C") for text in said)  # a grid of two values


@pytest.mark.parametrize("flat", [False, True])
def test_no_edge_is_told_where_the_loss_is_flat(finished, flat):
    (compared,) = finished.compared
    tree = finished.tree.copy(deep=True)
    (node,) = (n for n in tree.subtree if n.path.endswith("/level"))
    edge = float(node.ds["C"].max())
    node[compared.loss] = 0.0 * node[compared.loss] + (0.0 if flat else 1.0 * (node["C"] != edge))
    facts = Facts(tree, finished.status)
    facts.__dict__.update(compared=[replace(compared, settings={"level": {"C": edge}})])
    said = cases_of(facts, "Best value at the edge of its grid")
    assert len(said) == (not flat)


def test_an_edge_that_inner_folds_select_is_told_with_its_splits(finished):
    tree = finished.tree.copy(deep=True)
    for node in tree.subtree:
        if "method" in node.attrs:
            node["validation_error"] = node["test_error"]
    (node,) = (n for n in tree.subtree if n.path.endswith("/level"))
    node["validation_error"] = 0.0 * node["test_error"] + node["C"]
    facts = Facts(tree, finished.status)
    assert facts.validated
    said = cases_of(facts, "Best value at the edge of its grid")
    least = float(node["C"].min())
    assert f"level: C = {least:g} in {N_SPLITS} of {N_SPLITS} splits, on heart" in said


@pytest.mark.parametrize("method", ["level", "simplemkl", "uniform"])
def test_unstable_selections_are_told(finished, method):
    row = finished.stability.set_index("method").loc[method]
    cases = cases_of(finished, "Selection unstable")
    told = [case for case in cases if case.startswith(f"{method}: ")]
    assert len(told) == (row["stability_high"] < 0.4)
    assert all(f"{row['stability']:.2f} on heart" in case for case in told)


def test_unstable_selections_of_a_method_are_told_once_for_all_data_sets(facts):
    cases = cases_of(facts, "Selection unstable")
    rows = facts.stability[facts.stability["method"] == "level"]
    assert (rows["stability_high"] < 0.4).all()
    (told,) = (case for case in cases if case.startswith("level: "))
    low, high = rows["stability"].min(), rows["stability"].max()
    assert f"{low:.2f} to {high:.2f} on heart and wdbc" in told


def test_sizes_of_one_data_set_are_not_told_as_data_sets(facts):
    tree = facts.tree.copy()
    for node in tree.subtree:
        if "method" in node.attrs:
            node.attrs["dataset_series"] = "rings"
    sized = Facts(tree, facts.status)
    asked, came_out, *_ = headline(sized, answers_of(sized))
    assert " on rings in 2 sizes with " in asked
    assert came_out.startswith("Of 2 sizes of 1 data set, ")


def test_of_several_banks_the_edges_are_told_by_method_and_bank(finished):
    (compared,) = finished.compared
    place, node = next(one for one in finished.nodes if one[0]["method"] == "level")
    edge = float(node.ds["C"].max())
    facts = Facts(finished.tree, finished.status)
    facts.__dict__.update(
        nodes=[(place, node), ({**place, "bank": "b2"}, node)],
        compared=[replace(compared, settings={"level (b2)": {"C": edge}})],
    )
    said = cases_of(facts, "Best value at the edge of its grid")
    assert len(said) == 1
    assert said[0].startswith(f"level (b2): C = {edge:g}, the greatest of ")


def test_a_grid_of_one_setting_was_not_chosen_by_the_test_parts(tmp_path, finished):
    plan = made_up_plan({"level": {"C": [1.0]}}, datasets=("heart",), n_splits=N_SPLITS)
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([made_up_record(run)])
    facts = made_up_facts(plan, {"level": {"C": [1.0]}})
    lay_out(tmp_path, plan, replace(facts, splits={"heart": parts()}))
    one = Facts(open_results(tmp_path), finished.status)
    (came_out,) = answer_sentences(one, answers_of(one))
    assert "test parts" not in came_out
    assert "test parts" in answer_sentences(finished, answers_of(finished))[0]
