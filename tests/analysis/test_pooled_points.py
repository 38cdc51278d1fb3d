"""Points by McNemar's test, held to the tables of the R-MKL paper and to scipy's binomial test."""

from __future__ import annotations

import math
from importlib.util import find_spec

import pytest
from scipy import stats

from mkldist import analysis
from mkldist.analysis.comparison import mcnemar_points
from tests.analysis.two_sweeps import made

RMKL = ("skm", "simplemkl", "rmkl")
# Do et al. (2009): points of SKM, SimpleMKL and R-MKL.  In Table 3, SKM failed on colon.
TABLE_2 = {
    "ionosphere": (1.5, 1.5, 0), "liver": (1.5, 1.5, 0), "sonar": (1, 1, 1), "wdbc": (1, 0, 2),
    "wpbc": (1, 1, 1), "musk1": (1, 0, 2), "colon": (1, 1, 1), "cns": (1, 1, 1),
    "female": (1, 0, 2), "leukemia": (0.5, 0.5, 2),
}  # fmt: skip
TABLE_3 = dict.fromkeys(TABLE_2, (1, 1, 1)) | {"colon": (math.nan, 1.5, 1.5)}


def repeated(folder, table):
    """Return results in which each rank of a method on a data set costs it 10 wrong points."""
    errors, wrong = {}, {}
    for dataset, points in table.items():
        known = sorted({one for one in points if not math.isnan(one)}, reverse=True)
        for method, own in zip(RMKL, points, strict=True):
            failed = math.isnan(own)
            errors[dataset, method] = [math.nan if failed else 0.3]
            wrong[dataset, method] = [range(0 if failed else 10 * known.index(own))]
    return made(folder, errors, split_names=("s0",), wrong=wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "totals"), [(TABLE_2, (10.5, 7.5, 12)), (TABLE_3, (9, 10.5, 10.5))]
)
def test_the_points_of_the_paper_add_up_to_its_totals(tmp_path, table, totals):
    found = mcnemar_points(repeated(tmp_path, table))
    for dataset, points in table.items():
        expected = [0 if math.isnan(one) else one for one in points]  # a failure has no point
        assert found.loc[dataset, list(RMKL)].tolist() == expected
    assert found.sum()[list(RMKL)].tolist() == list(totals)


def points(folder, level, uniform, **options):
    errors = {("heart", method): [0.1] * len(level) for method in ("level", "uniform")}
    names = [f"s{number}" for number in range(len(level))]
    wrong = {"level": level, "uniform": uniform}
    results = made(folder, errors, split_names=names, wrong=wrong, **options)
    return mcnemar_points(results.path).loc["heart"].to_dict()


def test_folds_of_a_repetition_are_one_test(tmp_path):
    # Three points in a fold are too few to tell, six in both folds are enough.
    assert stats.binomtest(3, 3).pvalue > 0.05 > stats.binomtest(6, 6).pvalue
    level, uniform = [[], []], [[0, 1, 2], [3, 4, 5]]
    assert points(tmp_path / "two", level, uniform, folds=2) == {"level": 1.0, "uniform": 0.0}
    assert points(tmp_path / "one", level, uniform) == {"level": 0.5, "uniform": 0.5}


def test_points_are_averaged_over_repetitions(tmp_path):
    level = [[], [], [], [0]]
    uniform = [range(6), [], [1], [2]]  # level is better in the first of four repetitions alone
    assert points(tmp_path, level, uniform) == {"level": 0.625, "uniform": 0.375}


def test_methods_are_compared_on_the_same_bank_and_as_asked(tmp_path):
    errors = {("heart", method): [0.1] for method in ("level", "uniform", "skm")}
    wrong = {"level": [[]], "uniform": [range(9)], "skm": [range(9)]}
    results = made(tmp_path, errors, split_names=("s0",), wrong=wrong, banks=("a", "b"))
    found = mcnemar_points(results).loc["heart"]
    assert (found["a/level"], found["b/level"], found["a/skm"]) == (2.0, 2.0, 0.5)
    two = mcnemar_points(results, ["level", "b/skm"])
    assert two.loc["heart", "b/level"] == 1.0
    assert "a/level" not in two


def test_without_predictions_there_are_no_points(tmp_path):
    errors = {("heart", method): [0.1] for method in ("level", "uniform")}
    assert mcnemar_points(made(tmp_path, errors, split_names=("s0",))).empty


def test_no_function_has_the_name_of_a_module_which_would_hide_it():
    functions = [name for name in dir(analysis) if callable(getattr(analysis, name))]
    modules = [name for name in functions if find_spec(f"mkldist.analysis.{name}")]
    assert modules == []
