"""Sentences about a comparison: what it says and what it does not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mkldist.analysis.comparison import Difference, EqualSettings, OverDataSets, ResultsComparison
from mkldist.analysis.statistics import Posterior
from mkldist.report.comparison_words import SIZES_SHARE, pair_sentence, sentences
from tests.analysis.made_up_pairs import pair


def comparison(*pairs, over=()) -> ResultsComparison:
    return ResultsComparison(pairs, over, ())


def test_a_difference_that_the_test_finds_names_the_better_method():
    assert pair_sentence(pair()) == (
        "On heart the mean test error is 10.00 % with level and 20.00 % with uniform, a difference "
        "of -10.00 points (95 % interval -15.00 to -5.00): level is better by the corrected "
        "t-test, p = 0.02 with Holm's correction. The probability that level is better by more "
        "than 1 point is 0.97."
    )


def test_a_difference_that_the_test_does_not_find_names_none():
    posterior = Posterior(0.3, 0.1, 0.6)
    said = pair_sentence(pair(0.3, 0.2, p_holm=0.4, posterior=posterior, rope=0.02))
    assert "+10.00 points" in said
    assert (
        "the corrected t-test does not tell them apart, p = 0.4 with Holm's correction on 5" in said
    )
    sure = ", less than the 0.95 that would settle it."
    assert said.endswith(f"uniform is better by more than 2 points is 0.60{sure}")


def test_one_method_of_two_sweeps_and_real_values_have_their_own_words():
    said = pair_sentence(
        pair(51.5, 50.0, loss="rmse", methods=("level", "level"), rope=0.5,
             posterior=Posterior(0.1, 0.8, 0.1), p_holm=0.0001)
    )  # fmt: skip
    assert "test RMSE is 51.50 with level of the first results and 50.00 with" in said
    assert "a difference of +1.5 units of the labels" in said
    assert "level of the second results is better by the corrected t-test, p < 0.001" in said
    assert "the two are within 0.5 of each other is 0.80, less than" in said


def test_a_metric_that_is_better_greater_is_said_as_it_is():
    said = pair_sentence(pair(0.1, 0.2, loss="auc"))
    assert "test AUC is 0.900 with level and 0.800 with uniform, a difference of +0.100" in said
    assert "level is better by" in said
    scores = pair(0.1, 0.2, loss="auc").scores
    assert (scores.low, scores.high) == pytest.approx((0.05, 0.15))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_splits": 1}, "one split tells no spread, so there is no test."),
        (
            {"p_value": math.nan, "p_holm": math.nan},
            "the same difference on each of 5 splits, so that no test applies.",
        ),
        (
            {"losses": Difference(0.1, 0.1, 0.0, 0.0, 0.0)},
            ": there is no difference on any of 5 splits.",
        ),
    ],
    ids=["one split", "shifted", "equal"],
)
def test_without_a_spread_no_test_is_told(changes, words):
    said = pair_sentence(pair(**changes))
    assert said.endswith(words)
    assert "t-test" not in said


def test_limits_are_told_where_they_apply():
    said = sentences(comparison(pair()), isolated=True)
    assert len(said) == 2
    assert said[-1] == (
        "This holds for these data sets, kernels and settings; it says nothing about other data."
    )
    unsure = sentences(
        comparison(pair(p_holm=0.5, validated=(True, False), n_settings=(1, 2))), isolated=False
    )
    assert unsure[1] == "A difference that no test finds is not shown to be zero."
    assert "Settings were chosen by the test parts" in unsure[2]
    assert 'execution = "isolated"' in unsure[3]


def test_a_grid_of_one_setting_was_not_chosen_by_the_test_parts():
    one = pair(validated=(True, False), n_settings=(2, 1))
    assert "by the test parts" not in " ".join(sentences(comparison(one), isolated=True))


def test_sizes_of_one_data_set_are_told_to_count_once():
    sizes = [pair(dataset=f"wdbc-{n}", series="wdbc") for n in (100, 200)]
    assert SIZES_SHARE in sentences(comparison(*sizes), isolated=True)
    others = [pair(dataset=name, series=name) for name in ("heart", "wdbc")]
    assert SIZES_SHARE not in sentences(comparison(*others), isolated=True)


def test_many_pairs_are_counted_in_one_sentence():
    many = [*[{}] * 3, *[{"first": 0.3, "second": 0.2}] * 2, *[{"p_holm": 0.5}] * 5]
    pairs = [pair(dataset=f"d{i}", **one) for i, one in enumerate(many)]
    assert sentences(comparison(*pairs), isolated=True)[0] == (
        "Of 10 pairs, the corrected t-test with Holm's correction finds A better on 3 and B better "
        "on 2; it does not tell the others apart."
    )


def test_several_methods_have_one_sentence_on_the_best():
    pairs = [
        pair(0.1, 0.2, methods=("level", "uniform")),
        pair(0.1, 0.11, methods=("level", "svm"), p_holm=0.6),
        pair(0.2, 0.11, methods=("uniform", "svm")),
    ]
    assert sentences(comparison(*pairs), isolated=True)[0] == (
        "On heart level has the best mean test error, 10.00 %; the corrected t-test finds it "
        "better than uniform and does not tell it from svm."
    )


def test_equal_objectives_are_said_to_be_equal():
    equal = EqualSettings(6, 0.0, 0, 2.0)
    said = sentences(comparison(pair(equal_settings=equal)), isolated=True)[1]
    assert said.endswith("the bounds of all agree, and their objectives are equal.")


def test_the_p_value_of_a_single_pair_is_not_called_adjusted():
    said = pair_sentence(replace(pair(), p_value=0.02))
    assert "p = 0.02. The probability" in said


@pytest.mark.parametrize(("wrong", "words"), [(0, "of all agree"), (2, "of 2 contradict")])
def test_certificates_at_equal_settings_are_told(wrong, words):
    equal = EqualSettings(6, 1e-4, wrong, 2.0)
    said = sentences(comparison(pair(equal_settings=equal)), isolated=True)[1]
    assert said.startswith("6 runs have equal settings, kernels and rows in both results: ")
    assert f"the bounds {words}, and their objectives differ by a share of 1.0e-04" in said


@pytest.mark.parametrize(
    ("n_datasets", "p_holm", "words"),
    [
        (5, math.nan, "are too few for a test: with fewer than 6, Wilcoxon's p-value exceeds 0.05"),
        (6, 0.03, "finds level better than uniform, p = 0.03."),
        (6, 0.3, "does not tell level from uniform, p = 0.3."),
    ],
    ids=["few", "better", "open"],
)
def test_data_sets_together_are_told(n_datasets, p_holm, words):
    datasets = tuple(f"d{number}" for number in range(n_datasets))
    over = OverDataSets(
        "level", "uniform", "test_error", datasets, -0.1, p_holm, p_holm, Posterior(1, 0, 0), 0.01
    )
    said = sentences(comparison(pair(), over=(over,)), isolated=True)[1]
    assert f"{n_datasets} data sets " in said
    assert words in said
