"""Sentences on what carries a decision, and on what is lost."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mkldist.analysis.resampling import Interval
from mkldist.report.explanation_words import explanation_sentences
from tests.report.made_up_explanation import explanation

NAN = math.nan
NOTHING = Interval(NAN, NAN, NAN)


def test_an_explanation_in_full():
    said = explanation_sentences(explanation())
    assert said[:6] == [
        "On heart, level (C = 1/10) selects 12.5 of 1,000 kernels of bank xu2008 on average over 6 "
        "splits; 4 of them in every split.",
        "Features by share of the weights: age 60 ± 2 %, a name of a feature that is very long "
        "40 ± 2 %.",
        "By share of the decision's variance: a name of a feature that is very long 70 ± 2 %, age "
        "30 ± 2 %.",
        "Kernels with a width carry 85 % of the weights; 94 % of this is on kernels of the 2 "
        "widths from 1 to 2, of 4 from 0.5 to 4.",
        "Kernel functions by share of the weights: gaussian 85 ± 2 %, linear 15 ± 2 %.",
        "The selection of kernels over the splits is unstable: Nogueira's measure is 0.30 (95 % "
        "interval 0.20 to 0.38); 1 is equal selections, 0 is chance.",
    ]
    assert said[6] == "The selection of features is stable: 0.80 (95 % interval 0.76 to 0.84)."
    assert said[7].startswith("It selects 12.5 kernels where uniform weights use all 1,000. On he")
    assert "a difference of +10.00 points" in said[7]
    assert said[8].startswith("Shares describe this model, not causes")
    assert len(said) == 9


def test_one_width_that_carries_the_weight_is_named_among_all():
    made = explanation()
    widths = tuple(replace(s, weight=0.9 * (s.name == 1.0)) for s in made.groupings[1].shares)
    groupings = (made.groupings[0], replace(made.groupings[1], shares=widths), made.groupings[2])
    said = explanation_sentences(replace(made, groupings=groupings))
    assert said[3] == (
        "Kernels with a width carry 90 % of the weights; 100 % of this is on kernels of width 1, "
        "one of 4 widths from 0.5 to 4."
    )


def test_what_is_missing_is_said():
    said = explanation_sentences(
        explanation(
            against_uniform=None,
            no_decision="records of its runs are missing",
            n_settings=3,
            validated=False,
        )
    )
    text = "\n".join(said)
    assert "By share of the decision" not in text
    assert "The sweep has no uniform weights on this bank. To see what it loses, add" in text
    assert "Shares of the decision's variance are not known: records of its runs" in text
    assert "Its setting was chosen from 3 by the test parts" in text


def test_a_grid_of_one_setting_was_not_chosen_by_the_test_parts():
    said = " ".join(explanation_sentences(explanation(validated=False, n_settings=1)))
    assert "by the test parts" not in said


@pytest.mark.parametrize("validated", [True, False])
def test_the_pick_of_the_best_candidate_is_told(validated):
    said = explanation_sentences(explanation(validated=validated, n_candidates=7))
    (picked,) = [one for one in said if " of 7 methods and banks" in one]
    assert ("flatters" in picked) == (not validated)
    alone = " ".join(explanation_sentences(explanation(n_candidates=1)))
    assert "methods and banks" not in alone


def test_few_splits_give_no_interval_and_no_grade():
    said = explanation_sentences(explanation(n_splits=3, stability=Interval(0.3, NAN, NAN)))
    (told,) = [one for one in said if "of the selection of kernels over the splits is 0.30;" in one]
    assert "Fewer than 5 splits give it no interval" in told
    assert "is unstable" not in " ".join(said)


def test_an_interval_across_a_limit_has_both_grades():
    said = explanation_sentences(explanation(stability=Interval(0.5, 0.3, 0.7)))
    assert any("is unstable or fairly stable (so few splits leave it open): Nog" in s for s in said)


def test_real_values_have_no_uniform_weights_to_be_held_to():
    said = explanation_sentences(explanation(against_uniform=None, task="regression"))
    assert "Uniform weights learn classes alone, so nothing tells what is lost here." in said


def test_one_split_and_all_kernels_have_no_stability():
    one = explanation_sentences(explanation(n_splits=1, stability=NOTHING))
    assert "One split cannot tell how stable the selection is." in one
    assert one[0].endswith("kernels of bank xu2008 on one split.")
    every = explanation_sentences(explanation(stability=NOTHING))
    assert any(sentence.startswith("Every split selects all kernels or none") for sentence in every)


def test_the_baseline_is_not_held_to_itself():
    said = explanation_sentences(explanation(method="uniform", against_uniform=None))
    assert "Uniform weights are the baseline that other methods are held to." in said
