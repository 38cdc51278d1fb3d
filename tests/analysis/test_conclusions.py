"""Conclusions of papers on results made up, decided by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mkldist.analysis.conclusions import Case, Conclusion, _verdict, judge, read_conclusions
from mkldist.analysis.paired_points import McNemar
from mkldist.analysis.pairing import Results
from mkldist.errors import SpecError
from tests.analysis.two_sweeps import made

# Means of level and uniform: heart 0.2 and 0.3, pima 0.3 and 0.1, sonar 0.1 and 0.15.
ERRORS = {
    ("heart", "level"): [0.1, 0.3],
    ("heart", "uniform"): [0.3, 0.3],
    ("pima", "level"): [0.3, 0.3],
    ("pima", "uniform"): [0.1, 0.1],
    ("sonar", "level"): [0.1, 0.1],
    ("sonar", "uniform"): [0.1, 0.2],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, Results]:
    folder = tmp_path_factory.mktemp("ours")
    # On each split level has 6 of 30 points wrong that uniform has right.
    wrong = {"level": [range(6), range(6)], "uniform": [[], []]}
    return {"made-up": made(folder, ERRORS, split_names=("s0", "s1"), wrong=wrong)}


def conclusion(**words: object) -> Conclusion:
    given = {"experiment": "made-up", "metric": "test_error", "first": "level", "second": "uniform"}
    return Conclusion.model_validate({"paper": "A", "words": "B", **given, **words})


@pytest.mark.parametrize(
    ("words", "held", "verdict"),
    [
        ({}, [True, False, True], "not reproduced"),
        ({"scope": "most"}, [True, False, True], "reproduced"),
        ({"factor": 0.7}, [True, False, True], "not reproduced"),
        ({"factor": 0.667, "scope": "most"}, [True, False, True], "reproduced"),
        ({"factor": 0.6, "scope": "most"}, [False, False, False], "not reproduced"),
        ({"relation": "more", "factor": 4.0}, [False, False, False], "not reproduced"),
        ({"relation": "more"}, [False, True, False], "not reproduced"),
        ({"relation": "alike", "within": 0.11}, [True, False, True], "not reproduced"),
        ({"relation": "alike", "within": 0.21}, [True, True, True], "reproduced"),
        # C = 10 has errors larger by 0.2
        ({"setting": "C=1", "second_setting": "C=10"}, [True, True, True], "reproduced"),
    ],
)
def test_means_decide_on_each_data_set(results, words, held, verdict):
    found = judge(conclusion(**words), results)
    assert [case.dataset for case in found.cases] == ["heart", "pima", "sonar"]
    assert [case.holds for case in found.cases] == held
    assert found.verdict == verdict


def test_the_figures_are_the_means(results):
    cases = judge(conclusion(), results).cases
    assert [case.first for case in cases] == pytest.approx([0.2, 0.3, 0.1])
    assert [case.second for case in cases] == pytest.approx([0.3, 0.1, 0.15])


def test_means_are_of_the_splits_that_both_methods_have(tmp_path):
    errors = {("heart", "level"): [0.1, 0.5], ("heart", "uniform"): [0.2, float("nan")]}
    own = {"made-up": made(tmp_path, errors, split_names=("s0", "s1"))}
    (case,) = judge(conclusion(), own).cases
    assert (case.first, case.second) == pytest.approx((0.1, 0.2))


def test_sums_decide_where_the_paper_sums(results):
    *_, total = judge(conclusion(scope="total", relation="more"), results).cases
    assert (total.first, total.second) == pytest.approx((0.6, 0.55))
    assert total.holds


def test_points_are_of_all_points_of_a_data_set(results):
    found = judge(conclusion(metric="mcnemar_points", scope="total"), results)
    # 12 points that uniform alone has right: p = 2 / 2^12, a point for uniform on each data set
    assert [(case.first, case.second) for case in found.cases] == [(0.0, 1.0)] * 3 + [(0.0, 3.0)]
    assert found.verdict == "reproduced"
    assert McNemar.of(0, 12).p_value == pytest.approx(2.0**-11)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"experiment": "other"}, "other was not run"),
        ({"second": "silp"}, "no data set has results of level and silp"),
        ({"setting": "C=7"}, "no data set has results of level and uniform"),
        ({"metric": "seconds"}, "runs of made-up share passes, so that their times do not compare"),
    ],
)
def test_what_cannot_be_tested_says_why(results, words, said):
    found = judge(conclusion(**words), results)
    assert (found.verdict, found.note, found.cases) == ("not testable", said, ())


def test_what_no_sweep_tests_says_why(results):
    found = judge(Conclusion(paper="A", words="B", untestable="no data"), results)
    assert (found.verdict, found.note) == ("not testable", "no data")


def timed(results, level, uniform, *, share):
    """Return results that ran isolated, with processor seconds of two methods and their share."""
    own = results["made-up"]
    tree = own.tree.copy()
    spec = json.loads(str(tree.attrs["spec"]))
    tree.attrs["spec"] = json.dumps({**spec, "execution": "isolated"})
    for node in tree.subtree:
        if "wall_seconds" in node:
            seconds = level if node.name == "level" else uniform
            ones = node["wall_seconds"] * 0.0 + 1.0
            node["cpu_seconds"], node["pass_cpu_seconds"] = (
                0.25 * seconds * ones,
                0.75 * seconds * ones,
            )
            node["own_seconds"], node["pass_seconds"] = (
                0.5 * seconds / share * ones,
                0.5 * seconds / share * ones,
            )
    return {"made-up": replace(own, tree=tree)}


@pytest.mark.parametrize(
    ("level", "uniform", "share", "words", "verdict"),
    [
        (1.0, 1.05, 1.0, {}, "not decided"),  # within 10 %
        (1.0, 1.15, 1.0, {}, "reproduced"),
        (1.15, 1.0, 1.0, {}, "not reproduced"),
        (1.0, 1.9, 0.3, {}, "not decided"),  # within a factor of 2, at less than half a processor
        (1.9, 1.0, 0.3, {}, "not decided"),
        (1.0, 2.1, 0.3, {}, "reproduced"),
        (2.1, 1.0, 0.3, {}, "not reproduced"),
        (1.0, 4.0, 1.0, {"factor": 0.26}, "not decided"),  # the bound is 1.04
        (1.0, 4.0, 1.0, {"factor": 0.5, "scope": "total"}, "reproduced"),
        (1.05, 1.0, 1.0, {"relation": "more"}, "not decided"),
    ],
)
def test_times_decide_beyond_a_margin(results, level, uniform, share, words, verdict):
    own = timed(results, level, uniform, share=share)
    found = judge(conclusion(metric="processor_seconds", **words), own)
    assert found.verdict == verdict
    assert (found.cases[0].first, found.cases[0].second) == pytest.approx((level, uniform))
    assert found.note == f"runs had {share:.0%} of a processor"


def test_errors_decide_without_a_margin(results):
    assert conclusion().holds(1.0, 1.01)
    assert conclusion().holds(1.0, 1.01, margin=1.1) is None


@pytest.mark.parametrize(
    ("scope", "holds", "verdict"),
    [
        ("every", [True, None], "not decided"),
        ("every", [True, None, False], "not reproduced"),
        ("most", [True, True, None], "reproduced"),
        ("most", [True, False, None], "not decided"),
        ("most", [True, False, False, None], "not reproduced"),
        ("total", [False, None, True], "reproduced"),
        ("total", [True, True, None], "not decided"),
    ],
)
def test_data_sets_that_do_not_decide_leave_a_verdict_open(scope, holds, verdict):
    cases = [Case(f"d{i}", 1.0, 1.0, held) for i, held in enumerate(holds)]
    assert _verdict(conclusion(scope=scope), cases) == verdict


@pytest.mark.parametrize(("n_datasets", "verdict"), [(6, "reproduced"), (7, "not decided")])
def test_fewer_than_half_of_the_data_sets_decide_nothing(results, n_datasets, verdict):
    found = judge(conclusion(scope="most"), results, n_datasets)
    assert found.verdict == verdict
    assert found.note == ("" if verdict == "reproduced" else "3 of 7 data sets")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[conclusions]]\npaper="A"', "conclusion 1: found nothing; expected words = ..."),
        (
            '[[conclusions]]\npaper="A"\nwords="B"\nmetric="gap"',
            "conclusion 1: found a part of a test; expected experiment, metric, first and second",
        ),
        (
            '[[conclusions]]\npaper="A"\nwords="B"\nuntestable="C"\n[[conclusions]]\npaper="A"\n'
            'words="B"\nuntestable="C"\nfactor=-1',
            "conclusion 2: found -1; expected a number above 0",
        ),
        ("conclusions = 1", "toml: found 1; expected a list"),
        ("", "toml: found nothing; expected conclusions = ..."),
    ],
    ids=["missing", "part", "value", "list", "empty"],
)
def test_a_file_with_a_mistake_is_refused(tmp_path, text, said):
    file = tmp_path / "conclusions.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_conclusions(file)
    assert said in str(caught.value)
