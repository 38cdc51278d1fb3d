"""Rows of the table and sentences on what carries a decision, and on what is lost."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mkldist.analysis.statistics import Interval
from mkldist.core.metrics import METRICS
from mkldist.report.explanation_words import (
    captions,
    cells,
    columns_of,
    explanation_sentences,
    name_of,
    others_words,
    percent,
    shown_shares,
    worse,
)
from tests.report.made_up_explanation import NAN, NOTHING, around, explanation, share


def test_a_row_has_every_share_with_its_interval():
    made = explanation()
    assert cells(made, made.shares[0]) == ["60 [58, 62]", "20 [18, 22]", "5.0 [3.0, 7.0]", "3/6"]
    permuted = explanation(n_permutations=20)
    assert cells(permuted, made.shares[0])[4:] == ["0.040"]
    assert len(columns_of(permuted)) == len(columns_of(made)) + 1
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
    matter, others = shown_shares(explanation(shares=(*active, *idle)), "feature")
    assert [one.name for one in matter] == [f"f{n}" for n in range(10)]
    assert len(others) == 5
    assert others_words(others) == "and 5 more, of at most 5 %"
    blind = [replace(one, decision=NOTHING) for one in others]
    assert others_words(blind) == "and 5 more, of at most 5 %"


def test_equal_shares_have_one_rank_and_a_sentence():
    alike = tuple(share("feature", name, 0.5, 0.5) for name in "ab")
    assert [name_of(one, alike)[:2] for one in alike] == ["1=", "1="]
    assert name_of(alike[0], alike[:1])[:2] == "1."
    said = explanation_sentences(explanation(shares=alike))
    assert any("do not tell the 2 features apart" in one for one in said)
    apart = explanation_sentences(explanation())
    assert not any("apart: all have equal" in one for one in apart)


def test_the_largest_views_and_features_are_named():
    said = " ".join(explanation_sentences(explanation()))
    assert "Views by share of the decision: clinic 60 % (58 to 62), rna 40 % (38 to 42)." in said
    assert "kernels 0.30 [0.20, 0.38], unstable, features 0.80 [0.76, 0.84], stable" in said
    assert "a difference of +10.00 points" in said


def test_a_method_that_beats_nothing_is_told_first():
    constant = "always answering the majority (error 26.11 %)"
    said = explanation_sentences(explanation(no_better=constant))
    assert constant in said[0]
    assert said[1:] == explanation_sentences(explanation())


def test_what_is_missing_is_said():
    text = "\n".join(
        explanation_sentences(
            explanation(
                against_uniform=None,
                no_decision="records of its runs are missing",
                n_settings=3,
                validated=False,
                normalised=False,
            )
        )
    )
    assert "Views by share of the weights" in text
    assert "add [[methods]]" in text
    assert "records of its runs" in text
    assert "Its setting was chosen from 3 by the test parts" in text
    assert "weights do not compare" in text


@pytest.mark.parametrize(
    ("values", "said"),
    [([1.0, 3.0, 0.3], "0.3…3"), ([1.0, 1.0], "1"), (["a", "b", "a"], "a/b")],
)
def test_settings_of_splits_are_told_as_in_tables(values, said):
    sentences = explanation_sentences(explanation(setting={"C": values}))
    assert any(f"(C = {said})" in one for one in sentences)


def test_p_values_are_offered_with_their_cost():
    offered = [one for one in explanation_sentences(explanation()) if "--permutations" in one]
    assert len(offered) == 1
    assert "about 30 s" in offered[0]
    made = explanation_sentences(explanation(n_permutations=20))
    assert not any("--permutations" in one for one in made)


def test_a_grid_of_one_setting_was_not_chosen_by_the_test_parts():
    said = " ".join(explanation_sentences(explanation(validated=False, n_settings=1)))
    assert "by the test parts" not in said


@pytest.mark.parametrize("validated", [True, False])
def test_the_pick_of_the_best_candidate_is_told(validated):
    said = explanation_sentences(explanation(validated=validated, n_candidates=7))
    (picked,) = [one for one in said if " of 7 methods and banks" in one]
    assert ("flatters" in picked) == (not validated)


def test_few_splits_give_no_interval_and_no_grade():
    few = {"kernel": Interval(0.3, NAN, NAN)}
    said = " ".join(explanation_sentences(explanation(n_splits=3, stability=few)))
    assert "kernels 0.30." in said
    assert "Fewer than 5 splits" in said
    assert "unstable" not in said


def test_an_interval_across_a_limit_has_both_grades():
    wide = {"kernel": Interval(0.5, 0.3, 0.7)}
    said = explanation_sentences(explanation(stability=wide))
    assert any("unstable or fairly stable" in one for one in said)


@pytest.mark.parametrize(("n_splits", "said"), [(1, "One split"), (6, "Every split selects all")])
def test_a_selection_without_stability_says_why(n_splits, said):
    found = explanation_sentences(explanation(n_splits=n_splits, stability={"kernel": NOTHING}))
    assert any(one.startswith(said) for one in found)
    assert math.isnan(NOTHING.mean)


def test_the_baseline_is_not_held_to_itself():
    for changes, said in (({"method": "uniform"}, "baseline"), ({"task": "regression"}, "classes")):
        found = explanation_sentences(explanation(against_uniform=None, **changes))
        assert any(said in one for one in found)
