"""Points and tests of numbers of kernels in ``mkldist compare``, held to counts made up."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from scipy import stats

from mkldist.cli.compare import command
from tests.analysis.two_sweeps import made

METHODS = ("level", "uniform", "skm")
DATASETS = ("heart", "wdbc", "sonar")
# Level has all points right; uniform is as good on sonar; skm is the worst everywhere.
WRONG = {
    **{(dataset, "level"): [[]] for dataset in DATASETS},
    **{(dataset, "skm"): [range(20)] for dataset in DATASETS},
    ("heart", "uniform"): [range(10)], ("wdbc", "uniform"): [range(10)], ("sonar", "uniform"): [[]],
}  # fmt: skip
ACTIVE = {"level": [2, 3, 5], "uniform": [6, 7, 6], "skm": [3, 3, 3]}  # on each data set


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    errors = {(dataset, method): [0.1] for dataset in DATASETS for method in METHODS}
    folder = tmp_path_factory.mktemp("ranking")
    active = {
        (dataset, method): number
        for method, numbers in ACTIVE.items()
        for dataset, number in zip(DATASETS, numbers, strict=True)
    }
    return made(folder, errors, split_names=("s0",), wrong=WRONG, active=active)


def told(*words: object) -> str:
    done = CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_every_two_methods_are_compared_and_ranked(results):
    found = json.loads(told(results.path, "--json"))
    assert len(found["pairs"]) == 9
    assert found["mcnemar_points"] == {
        "heart": {"level": 2.0, "uniform": 1.0, "skm": 0.0},
        "wdbc": {"level": 2.0, "uniform": 1.0, "skm": 0.0},
        "sonar": {"level": 1.5, "uniform": 1.5, "skm": 0.0},
    }
    words = " ".join(told(results.path).split())
    assert "McNemar points over 3 data sets" in words
    assert "level 5.5 uniform 3.5 skm 0" in words


def test_numbers_of_kernels_are_tested_over_the_data_sets(results):
    (test,) = json.loads(told(results.path, "level", "uniform", "--json"))["kernel_tests"]
    expected = stats.ttest_rel(ACTIVE["level"], ACTIVE["uniform"])
    assert (test["first"], test["second"], test["n_datasets"]) == ("level", "uniform", 3)
    assert test["p_value"] == pytest.approx(expected.pvalue)
    assert test["mean_difference"] == pytest.approx(-3.0)
    assert "A: level, B: uniform" in told(results.path, "level", "uniform")


@pytest.mark.slow
def test_one_data_set_and_two_sweeps_have_no_ranking(results):
    for words in ((results.path, "--dataset", "heart"), (results.path, results.path)):
        found = json.loads(told(*words, "--json"))
        assert (found["mcnemar_points"], found["kernel_tests"]) == ({}, [])
        assert "McNemar points" not in told(*words)
