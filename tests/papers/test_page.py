"""The page of what is reproduced, on results made up."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from sweeps.papers.judge import (
    NOT_EXPLAINED,
    NOT_HELD,
    NOTHING,
    Conclusion,
    Explanation,
    Papers,
    Published,
    Results,
    changes,
    experiments,
    judge,
    judged_by,
    our_number,
    outcome_of,
    page_of,
    read_outcomes,
    write_outcome,
)
from tests.analysis.made_up import made

LEVEL = Published("made-up", "heart", "level", "", "test_error", 0.15, 0.1, "Table 1")
PUBLISHED = [
    LEVEL,  # ours is 0.2: within 0.1
    replace(LEVEL, mean=0.31),  # 0.11 away
    replace(LEVEL, sd=math.nan),  # within our standard deviation, 0.141
    replace(LEVEL, mean=0.05, sd=0.0),  # 0.15 away
    replace(LEVEL, method="silp"),
    replace(LEVEL, experiment="other"),
]
CONCLUSIONS = [
    Conclusion(
        paper="Paper | 1", words="Level errs less.", experiment="made-up", metric="test_error",
        first="level", second="uniform",
    ),
    Conclusion(paper="Paper 2", words="It shines.", untestable="nobody measures light"),
]  # fmt: skip
LESS = CONCLUSIONS[0]
OTHER_SWEEP = replace(LESS, experiment="other")
UNCHOSEN = f"{NOTHING} | {NOTHING} |"  # of results without validation errors
EXPLANATIONS = [
    Explanation("made-up", "heart", "silp", "*", "Not of these."),
    Explanation("*", "heart", "level", "test_*", "C = 10: 0.4 | 0.5"),
]


def page(results: Results, *said, **more) -> list[str]:
    """Return the lines of the page of results, by their outcomes."""
    papers = Papers(*said, **more)
    outcome = outcome_of(results, papers.published, papers.conclusions)
    return page_of({"made-up": outcome}, papers).splitlines()


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    errors = {("heart", "level"): [0.1, 0.3], ("heart", "uniform"): [0.3, 0.3]}
    folder = tmp_path_factory.mktemp("ours")
    made(folder, errors, split_names=("s0", "s1"))
    return Results(folder)


@pytest.fixture
def kept(results, tmp_path):
    """Return the outcome of the results as it is read back."""
    write_outcome(tmp_path / "outcomes", outcome_of(results, PUBLISHED, [LESS, OTHER_SWEEP]))
    return read_outcomes(tmp_path / "outcomes")


def test_the_page_has_each_experiment_conclusion_and_number_outside(results):
    lines = page(results, PUBLISHED, CONCLUSIONS, EXPLANATIONS)
    for line in (
        "| made-up | 8 of 8 | 5 | 4 | 1 of 2 (50%) | 1 of 2 (50%) |",
        f"| other | not run | 1 | 0 | {NOTHING} | {NOTHING} |",
        "| Level errs less. | **reproduced** | test_error of level below uniform on 1 of 1 data "
        "set: heart 0.2 and 0.3 |",
        "| It shines. | **not testable** | nobody measures light |",
    ):
        assert line in lines
    start = lines.index("C = 10: 0.4 | 0.5")  # once, above all numbers that it is about
    assert lines[start + 4 : start + 6] == [
        "| heart | level | test_error | 31 ± 10 | 20 ± 14 | " + UNCHOSEN,
        "| heart | level | test_error | 5 ± 0 | 20 ± 14 | " + UNCHOSEN,
    ]
    assert "\n".join(lines).count("C = 10") == 1
    assert "\n".join(lines).count("| heart | level |") == 2


def test_an_explanation_of_the_other_direction_stands_above_no_number(results):
    one = replace(EXPLANATIONS[1], ours="higher")  # ours is lower than 0.31 and above 0.05
    lines = page(results, PUBLISHED, CONCLUSIONS, [one])
    assert "| 5 ± 0 |" in lines[lines.index(one.words) + 4]
    assert "| 31 ± 10 |" in lines[lines.index(NOT_EXPLAINED) + 4]


def test_numbers_without_a_verdict_stand_apart(tmp_path):
    made(tmp_path, {("heart", "level"): [0.25]}, split_names=("s0",))
    numbers = [replace(LEVEL, sd=math.nan), replace(LEVEL, mean=0.01)]
    numbers.append(replace(LEVEL, sd=math.nan, mean=0.25))  # the published mean itself is within
    lines = page(Results(tmp_path), numbers, CONCLUSIONS, EXPLANATIONS)
    assert "| made-up | 2 of 2 | 3 | 3 | 0 of 1 (0%) | 1 of 1 (100%) |" in lines
    outside, apart = (
        lines.index(heading)
        for heading in ("## Numbers outside of ±", "## Numbers without a verdict")
    )
    (row,) = (line for line in lines[outside:apart] if line.startswith("| heart"))
    assert row.startswith("| heart | level | test_error | 1 ± 10 | 25 |")
    assert lines[-1] == "| heart | level | test_error | 15 | 25 |"


def test_the_page_says_what_ran_other_than_the_file(results):
    file = json.loads(str(results.tree.attrs["spec"]))
    file["tol"] = 1e-7
    file["datasets"] = [*file["datasets"], {"name": "pima"}, {"name": "sonar"}]
    outcome = outcome_of(results, PUBLISHED, CONCLUSIONS, file)
    lines = page_of({"made-up": outcome}, Papers(PUBLISHED, CONCLUSIONS)).splitlines()
    (said,) = (line for line in lines if line.startswith("- made-up: "))
    assert "not 1e-07" in said
    assert "datasets: 1 of 3" in said
    assert any("**not decided**" in line and "1 of 3 data sets" in line for line in lines)


def test_the_page_names_what_made_the_results(results):
    tree = results.tree.copy()
    facts = {"commit": "2c3d", "processor": "Example 9000", "processors": 2, "python": "3.12.1",
             "platform": "Linux-6", "machine": "x86_64",
             "versions": {"mkldist": "0.1.0"}}  # fmt: skip
    tree.attrs |= {"provenance": json.dumps(facts), "created": "2026-11-26T10:00:00"}
    lines = page(Results(results.folder, tree), PUBLISHED, CONCLUSIONS)
    made_by = "- 8 runs of 1 sweep: mkldist 0.1.0; Python 3.12.1; 2 processors, Linux x86_64, "
    assert made_by + "Example 9000; by commit 2c3d (8 runs)." in lines
    assert "- Trees of results: 2026-11-26." in lines


def test_an_outcome_has_the_numbers_and_verdicts_of_the_results(results, kept):
    own, other = experiments(kept, Papers(PUBLISHED))
    for cell, number in zip(own.cells, PUBLISHED, strict=False):
        ours = our_number(results, number)
        assert (cell.n_splits, cell.lacking) == (ours.n_splits, ours.lacking)
        assert (cell.mean, cell.sd) == pytest.approx((ours.mean, ours.sd), rel=0.0, nan_ok=True)
    assert (other.name, other.outcome, other.compared, other.n_published) == ("other", None, [], 1)
    assert judged_by(LESS, kept["made-up"]) == judge(LESS, results)
    assert judged_by(LESS, kept["made-up"]).verdict == "reproduced"


def test_what_the_paper_prints_may_change_after(kept):
    (own,) = experiments(kept, Papers([replace(LEVEL, mean=0.4, source="Table 2")]))
    assert (own.cells[0].mean, own.cells[0].is_within) == (0.2, False)
    assert judged_by(replace(LESS, words="Level is better."), kept["made-up"]).cases
    excused = judged_by(replace(LESS, untestable="other digits"), kept["made-up"])
    assert excused.verdict == "not testable"
    assert excused.cases


def test_what_nobody_asked_of_the_results_is_said_to_be_unknown(kept):
    (own,) = experiments(kept, Papers([replace(LEVEL, metric="auc")]))
    assert (own.cells[0].n_splits, own.cells[0].lacking) == (0, NOT_HELD)
    assert judged_by(replace(LESS, relation="more"), kept["made-up"]).note == NOT_HELD
    assert judged_by(OTHER_SWEEP, kept.get("other")).note == "other was not run"


def test_a_key_newer_than_an_answer_has_its_default(kept):
    del kept["made-up"]["answers"][0]["test"]["wins"]
    assert judged_by(LESS, kept["made-up"]).verdict == "reproduced"
    assert judged_by(replace(LESS, wins=1), kept["made-up"]).note == NOT_HELD


FILE = {
    "name": "a",
    "tol": 0.01,
    "datasets": [{"name": "iris"}, {"name": "wine"}],
    "splits": {"repeats": 20},
    "banks": [{"name": "gaussians", "kernels": [{"function": "gaussian", "widths": [1, 2]}]}],
    "methods": [{"name": "level", "C": [1, 10]}, {"name": "uniform", "C": 1}],
}
BANK = {"name": "gaussians", "kernels": FILE["banks"][0]["kernels"], "normalisation": "none"}


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({}, []),
        ({"wall_time": "2h", "outputs": {"keep_banks": False}}, []),  # no result depends on
        ({"splits": {"repeats": 5}}, ["splits.repeats = 5, not 20"]),
        ({"datasets": [{"name": "wine"}]}, ["datasets: 1 of 2"]),
        (
            {"datasets": [{"name": "wine"}, {"name": "sonar"}]},
            ["datasets: 1 of 2", "datasets: sonar besides"],
        ),
        (
            {"methods": [{"name": "level", "C": [1]}], "tol": 0.1},
            ["tol = 0.1, not 0.01", "methods: 1 of 2", "methods.level.C = [1], not [1, 10]"],
        ),
        ({"banks": [BANK]}, ['banks.gaussians.normalisation = "none", not "variance"']),
    ],
)
def test_each_value_that_differs_from_the_file_is_said(run, said):
    assert changes(FILE, FILE | run) == said
