"""Sentences of the report: answers, warnings, comparisons and explanations."""

import math
from dataclasses import replace

import pytest

from mkldist.analysis.comparison import OverDataSets, ResultsComparison
from mkldist.analysis.statistics import Interval
from mkldist.core.metrics import METRICS
from mkldist.report.sentences import (
    SIZES_SHARE,
    Caution,
    Facts,
    answer_sentences,
    answers_of,
    captions,
    cautions,
    explanation_sentences,
    headline,
    name_of,
    others_words,
    percent,
    sentences,
    worse,
)
from mkldist.report.tables import explanation_table
from mkldist.results.schema import RunState
from tests.analysis.made_up import pair
from tests.report.made_up import N_SPLITS, NAN, NOTHING, around, explanation, share


def test_the_headline_of_a_finished_sweep(finished):
    answers = answers_of(finished)
    asked, *came_out, certified = headline(finished, answers)
    n_runs = finished.status.n_runs
    assert all(part in asked for part in ("3 methods", "heart", "7 kernels", "5 splits"))
    assert f"all {n_runs} runs" in asked
    assert came_out == answer_sentences(finished, answers)
    assert f"All {n_runs} complete runs" in certified
    assert f"{finished.runs['gap'].max():.1e}" in certified


@pytest.mark.slow
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
    assert early.startswith("max_iter (1)")
    assert "Settings chosen on the test parts" in said
    assert "Times shared, not isolated" in said


def test_a_best_value_at_the_edge_of_its_grid_is_told_with_its_data_sets(finished):
    edges = [row["edge"] for row in finished.ranked if row["method"] == "level" and row["edge"]]
    told = cases_of(finished, "Best value at the edge of its grid")
    assert [case for case in told if case.startswith("level ")] == [
        f"level {edge}" for edge in edges
    ]


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
    assert f"level C = {least:g} in {N_SPLITS} of {N_SPLITS} splits" in said


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


@pytest.mark.slow
def test_sizes_of_one_data_set_are_not_told_as_data_sets(facts):
    tree = facts.tree.copy()
    for node in tree.subtree:
        if "method" in node.attrs:
            node.attrs["dataset_series"] = "rings"
    sized = Facts(tree, facts.status)
    asked = headline(sized, answers_of(sized))[0]
    assert " on rings in 2 sizes with " in asked


def comparison(*pairs, over=()) -> ResultsComparison:
    return ResultsComparison(pairs, over, ())


def test_limits_are_told_where_they_apply():
    (limit,) = sentences(comparison(pair()), isolated=True)
    assert limit.startswith("This holds for these data sets, kernels and settings")
    unsure = sentences(
        comparison(pair(p_holm=0.5, validated=(True, False), n_settings=(1, 2))), isolated=False
    )
    assert unsure[0] == "A difference that no test finds is not shown to be zero."
    assert "Settings were chosen by the test parts" in unsure[1]
    assert 'execution = "isolated"' in unsure[2]
    one = pair(validated=(True, False), n_settings=(2, 1))
    assert "by the test parts" not in " ".join(sentences(comparison(one), isolated=True))


def test_sizes_of_one_data_set_are_told_to_count_once():
    sizes = [pair(dataset=f"wdbc-{n}", series="wdbc") for n in (100, 200)]
    assert SIZES_SHARE in sentences(comparison(*sizes), isolated=True)
    others = [pair(dataset=name, series=name) for name in ("heart", "wdbc")]
    assert SIZES_SHARE not in sentences(comparison(*others), isolated=True)


@pytest.mark.parametrize(
    ("n_datasets", "p_holm", "words"),
    [
        (5, math.nan, "are too few for a test over them: it needs 6"),
        (6, 0.03, "of level from uniform is -0.1000; Wilcoxon's signed-rank test, p = 0.03."),
    ],
    ids=["few", "tested"],
)
def test_data_sets_together_are_told(n_datasets, p_holm, words):
    datasets = tuple(f"d{number}" for number in range(n_datasets))
    over = OverDataSets("level", "uniform", "test_error", datasets, -0.1, p_holm, p_holm)
    said = sentences(comparison(pair(), over=(over,)), isolated=True)[0]
    assert f"{n_datasets} data sets " in said
    assert words in said


def test_a_row_has_every_share_with_its_interval():
    made, permuted = explanation(), explanation(n_permutations=20)
    shown = [cell.text for cell in explanation_table([made]).rows[0][2:]]
    assert shown == ["60 [58, 62]", "20 [18, 22]", "5.0 [3.0, 7.0]", "3/6"]
    assert [cell.text for cell in explanation_table([permuted]).rows[0][2:]] == [*shown, "0.040"]
    assert len(captions(permuted)) == len(captions(made)) + 1
    assert any("of 20, at least 0.048" in one for one in captions(permuted))


@pytest.mark.parametrize(
    ("metric", "text"),
    [("error", "5.0 [3.0, 7.0]"), ("auc", "0.050 [0.030, 0.070]"), ("rmse", "0.05 [0.03, 0.07]")],
)
def test_a_loss_has_the_unit_of_its_metric(metric, text):
    assert worse(around(0.05), METRICS[metric]) == text
    assert worse(around(12345.0, 5.0), METRICS["mae"]) == "12,345 [12,340, 12,350]"


def test_one_split_has_no_interval_and_an_unknown_share_a_dash():
    assert percent(Interval(0.62, NAN, NAN)) == "62"
    assert percent(NOTHING) == "–"  # noqa: RUF001


def test_features_that_are_never_active_are_summed_up():
    active = [share("feature", f"f{n}", 0.05, 0.05, rank=n + 1) for n in range(12)]
    idle = [replace(one, selected=around(0.0)) for one in active[:3]]
    matter, others = explanation(shares=(*active, *idle)).shown("feature")
    assert [one.name for one in matter] == [f"f{n}" for n in range(10)]
    assert len(others) == 5
    assert others_words(others) == "and 5 more, of at most 5 %"
    blind = [replace(one, decision=NOTHING) for one in others]
    assert others_words(blind) == "and 5 more, of at most 5 %"


def test_equal_shares_have_one_rank():
    alike = tuple(share("feature", name, 0.5, 0.5) for name in "ab")
    assert [name_of(one, alike)[:2] for one in alike] == ["1=", "1="]
    assert name_of(alike[0], alike[:1])[:2] == "1."


def test_what_an_explanation_has_is_said():
    made = explanation(n_candidates=7)
    said = " ".join(explanation_sentences(made))
    assert "kernels 0.30 [0.20, 0.38], features 0.80 [0.76, 0.84]." in said
    assert "On heart, level (C = 1…10) has 12.5 active kernels of 1,000 of bank xu2008" in said
    assert "least mean validation loss, of 7 methods and banks" in said
    assert "--permutations 100" in said
    permuted = " ".join(explanation_sentences(explanation(n_permutations=20)))
    assert "--permutations" not in permuted
    constant = "always answering the majority (error 26.11 %)"
    first, *others = explanation_sentences(replace(made, no_better=constant))
    assert constant in first
    assert others == explanation_sentences(made)


def test_what_an_explanation_lacks_is_said():
    lacking = {"no_decision": "records of its runs are missing",
               "n_settings": 3, "n_candidates": 7, "validated": False,
               "normalised": False}  # fmt: skip
    text = " ".join(explanation_sentences(explanation(**lacking)))
    for words in ("records of its runs", "from 3 by the test parts",
                  "weights do not compare", "which flatters it"):  # fmt: skip
        assert words in text
    one = " ".join(explanation_sentences(explanation(validated=False, n_settings=1)))
    assert "by the test parts" not in one


@pytest.mark.parametrize(
    ("values", "said"), [([1.0, 3.0, 0.3], "0.3…3"), ([1.0, 1.0], "1"), (["a", "b", "a"], "a/b")]
)
def test_settings_of_splits_are_told_as_in_tables(values, said):
    sentences = explanation_sentences(explanation(setting={"C": values}))
    assert any(f"(C = {said})" in one for one in sentences)


def test_stability_has_an_interval_only_where_it_is_known():
    few = explanation(n_splits=3, stability={"kernel": Interval(0.3, NAN, NAN)})
    assert any(one.endswith("kernels 0.30.") for one in explanation_sentences(few))
    none = explanation_sentences(explanation(stability={"kernel": NOTHING}))
    assert any(one.startswith("Stability of the selection has no meaning") for one in none)
