"""The page of what is reproduced, on results made up."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from mkldist.analysis.cell_texts import NOTHING
from mkldist.analysis.conclusion import Conclusion
from mkldist.analysis.explanations import Explanation
from mkldist.analysis.outcomes import outcome_of
from mkldist.analysis.published_number import Published
from mkldist.analysis.reproduction import DataFacts
from mkldist.report import reproduced as page_of
from mkldist.report.reproduced import NOT_EXPLAINED, OTHER, UNSTATED
from mkldist.spec.load import load_sweep
from tests.analysis.two_sweeps import made

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
NONE = f"| {NOTHING} | {NOTHING} |"  # shares of no number
UNCHOSEN = f"{NOTHING} | {NOTHING} |"  # of results without validation errors
EXPLANATIONS = [
    Explanation("made-up", "heart", "silp", "*", "Not of these.", "line 2"),
    Explanation("*", "heart", "level", "test_*", "C = 10: 0.4 | 0.5", "line 3"),
]


def reproduced(results, published, conclusions, files, *more):
    """Return the page of results, by their outcomes."""
    outcomes = {
        name: outcome_of(
            one, published, conclusions,
            [own.name for own in files[name].datasets] if name in files else (),
        )
        for name, one in results.items()
    }  # fmt: skip
    return page_of.reproduced(outcomes, published, conclusions, files, *more)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    errors = {("heart", "level"): [0.1, 0.3], ("heart", "uniform"): [0.3, 0.3]}
    return {"made-up": made(tmp_path_factory.mktemp("ours"), errors, split_names=("s0", "s1"))}


def test_the_page_has_each_experiment_conclusion_and_number_outside(results):
    page = reproduced(results, PUBLISHED, CONCLUSIONS, {}, EXPLANATIONS)
    for line in (
        "| made-up | 8 of 8 | 5 | 4 | 1 of 2 (50%) | 1 of 2 (50%) |",
        f"| other | not run | 1 | 0 | {NOTHING} | {NOTHING} |",
        "| Level errs less. | **reproduced** | test_error of level below uniform on 1 of 1 data "
        "set: heart 0.2 and 0.3 |",
        "| It shines. | **not testable** | nobody measures light |",
    ):
        assert line in page.splitlines()
    start = page.splitlines().index("C = 10: 0.4 | 0.5")  # once, above all numbers that it is about
    assert page.splitlines()[start + 4 : start + 6] == [
        "| heart | level | test_error | 31 ± 10 | 20 ± 14 | " + UNCHOSEN,
        "| heart | level | test_error | 5 ± 0 | 20 ± 14 | " + UNCHOSEN,
    ]
    assert page.count("C = 10") == 1
    assert page.count("| heart | level |") == 2


@pytest.mark.parametrize(
    ("kind", "second", "rows"),
    [
        ("other", "1 of 1 (100%)", [NONE, "| 1 of 2 (50%) | 1 of 1 (100%) |"]),
        ("unstated", "2 of 3 (67%)", ["| 1 of 2 (50%) | 1 of 1 (100%) |", NONE]),
    ],
)
def test_shares_are_counted_with_and_without_numbers_of_other_data(results, kind, second, rows):
    fact = "The paper counts 303 points."
    facts = DataFacts(**{kind: [Explanation("made-up", "h*", "level", "*", fact, "line 2")]})
    numbers = [*PUBLISHED[:3], replace(LEVEL, method="uniform", mean=0.3)]
    page = reproduced(results, numbers, CONCLUSIONS, {}, (), facts).splitlines()
    start = page.index("## Shares")
    assert page[start + 2 : start + 5] == [
        "Of the numbers with a published ±, 1 of 1 (100%) lie within it where the data are the",
        f"papers', {second} with those of data whose points the paper does not state,",
        "and 2 of 3 (67%) with those of other data, too.",
    ]
    assert page[start + 8 : start + 12] == [
        "| all | 2 of 3 (67%) | 1 of 1 (100%) |",
        f"| of the papers' data | 1 of 1 (100%) | {NOTHING} |",
        f"| of data whose points are not stated {rows[0]}",
        f"| of other data {rows[1]}",
    ]
    heading, without = (OTHER, UNSTATED) if kind == "other" else (UNSTATED, OTHER)
    assert page[page.index(heading) + 2] == f"- made-up heart: 3 numbers. {fact}"
    assert without not in page
    assert not any(fact in line for line in reproduced(results, numbers, (), {}).splitlines())


def test_numbers_without_an_explanation_are_listed_as_such(results):
    page = reproduced(results, PUBLISHED, CONCLUSIONS, {}, EXPLANATIONS[:1])
    start = page.splitlines().index(NOT_EXPLAINED)
    rows = page.splitlines()[start + 4 :]
    assert len([row for row in rows if row.startswith("| heart | level |")]) == 2


def test_an_explanation_of_the_other_direction_stands_above_no_number(results):
    one = replace(EXPLANATIONS[1], ours="higher")  # ours is lower than 0.31 and above 0.05
    page = reproduced(results, PUBLISHED, CONCLUSIONS, {}, [one]).splitlines()
    start, other = page.index(one.words), page.index(NOT_EXPLAINED)
    assert "| 5 ± 0 |" in page[start + 4]
    assert "| 31 ± 10 |" in page[other + 4]


def test_numbers_without_a_verdict_stand_apart(tmp_path):
    own = {"made-up": made(tmp_path, {("heart", "level"): [0.25]}, split_names=("s0",))}
    numbers = [replace(LEVEL, sd=math.nan), replace(LEVEL, mean=0.01)]
    page = reproduced(own, numbers, CONCLUSIONS, {}, EXPLANATIONS).splitlines()
    outside, apart = (
        page.index(heading)
        for heading in ("## Numbers outside of ±", "## Numbers without a verdict")
    )
    (row,) = (line for line in page[outside:apart] if line.startswith("| heart"))
    assert row.startswith("| heart | level | test_error | 1 ± 10 | 25 |")
    assert page[-1] == "| heart | level | test_error | 15 | 25 |"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"scope": "total"}, "level below uniform in sum, 0.2 and 0.3: heart 0.2 and 0.3"),
        ({"scope": "average"}, "level below uniform by the mean ratio 0.6667: heart 0.2 and 0.3"),
        ({"scope": "t-test"}, "level below uniform by the paired t-test, p = nan: heart 0.2 and 0"),
        (
            {"scope": "t-test", "relation": "alike"},
            "level no different from uniform by the paired t-test, p = nan: heart 0.2 and 0.3",
        ),
        ({"wins": 1}, "level below uniform on 1 of 1 data set, 1 needed: heart 0.2 and 0.3"),
        ({"untestable": "other data"}, "| **not testable** | test_error of level below uniform on"),
        ({"untestable": "other data"}, "heart 0.2 and 0.3; other data |"),
        ({"second_metric": "gap"}, "test_error of level below gap of uniform on 0 of 1 data set:"),
        (
            {"second": "", "rivals": ["uniform", "level"], "factor": 2.0},
            " the least of uniform, level on 1 of 1 data set: heart 0.2 and 0.2",
        ),
        (
            {"first_over": "uniform", "relation": "alike", "within_factor": 3.0, "setting": "C=1"},
            "level / uniform C=1 within a factor of 3 of uniform C=1 on 1 of 1 data set: heart ",
        ),
    ],
)
def test_a_conclusion_says_what_decides(results, words, said):
    one = Conclusion.model_validate({**CONCLUSIONS[0].model_dump(), **words})
    assert said in reproduced(results, PUBLISHED, [one], {})


def test_without_numbers_outside_the_page_says_so(results):
    page = reproduced(results, PUBLISHED[:1], CONCLUSIONS, {}).splitlines()
    assert page[page.index("## Numbers outside of ±") + 2] == "None."


def test_the_page_says_what_ran_other_than_the_file(results):
    spec = json.loads(str(results["made-up"].tree.attrs["spec"]))
    spec["tol"] = 1e-7
    spec["datasets"] = [*spec["datasets"], {"name": "pima"}, {"name": "sonar"}]
    files = {"made-up": load_sweep(spec)}
    page = reproduced(results, PUBLISHED, CONCLUSIONS, files).splitlines()
    (said,) = (line for line in page if line.startswith("- made-up: "))
    assert "not 1e-07" in said
    assert "datasets: 1 of 3" in said
    assert any("**not decided**" in line and "1 of 3 data sets" in line for line in page)


def test_the_same_results_give_the_same_page(results):
    pages = {reproduced(results, PUBLISHED, CONCLUSIONS, {}, EXPLANATIONS) for _ in range(2)}
    assert len(pages) == 1


def test_the_page_names_commits_and_machines_by_the_records_of_runs(tmp_path):
    ours = made(tmp_path, {("heart", "level"): [0.1, 0.3]}, split_names=("s0", "s1"))
    tree, runs = ours.tree.copy(), sorted(ours.store.ids())
    facts = {"commit": "2c3d", "processor": "Example 9000", "processors": 2, "python": "3.12.1",
             "platform": "Linux-6", "machine": "x86_64",
             "versions": {"mkldist": "0.1.0"}}  # fmt: skip
    for run, commit in zip(runs, ("0a1b", ""), strict=False):
        ours.store.write(replace(ours.store.read(run), provenance=facts | {"commit": commit}))
    tree.attrs |= {"provenance": json.dumps(facts), "created": "2026-11-26T10:00:00"}
    page = reproduced(
        {"made-up": replace(ours, tree=tree)}, PUBLISHED, CONCLUSIONS, {}
    ).splitlines()
    rest = len(runs) - 2
    made_by = f"- {len(runs)} runs of 1 sweep: mkldist 0.1.0; Python 3.12.1; 2 processors, "
    made_by += "Linux x86_64, Example 9000; by commit "
    assert made_by + f"2c3d ({rest} runs), 0a1b (1 run), unknown (1 run)." in page
    assert "- Trees of results: 2026-11-26." in page
