"""The page of what is reproduced, its details and pictures, on results made up."""

import json
import math
import shutil
from dataclasses import replace

import pytest

from sweeps.papers.judge import (
    HERE,
    NOT_HELD,
    NOTHING,
    OUTCOMES,
    Conclusion,
    Papers,
    Published,
    Results,
    Text,
    cell_of,
    changes,
    judge,
    judged_by,
    our_number,
    outcome_of,
    read_outcomes,
    write_outcome,
)
from sweeps.papers.reproduced import (
    conclusions_of,
    details_of,
    main,
    numbers_of,
    page_of,
    write_picture,
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
        first="level", second="uniform", rank=1,
    ),
    Conclusion(paper="Paper 2", words="It shines.", untestable="nobody measures light"),
]  # fmt: skip
LESS = CONCLUSIONS[0]
MORE = replace(LESS, words="Level errs more.", relation="more", cause="data")
OTHER_SWEEP = replace(LESS, experiment="other")
EXPLANATIONS = [
    Text("made-up", "heart", "silp", "*", "Not of these.", "reading"),
    Text("*", "heart", "level", "test_*", "C = 10: 0.4 | 0.5", "solver"),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    errors = {("heart", "level"): [0.1, 0.3], ("heart", "uniform"): [0.3, 0.3]}
    folder = tmp_path_factory.mktemp("ours")
    made(folder, errors, split_names=("s0", "s1"))
    return Results(folder)


@pytest.fixture
def kept(results, tmp_path):
    """Return the outcome of the results as it is read back."""
    write_outcome(tmp_path / "outcomes", outcome_of(results, PUBLISHED, [LESS, MORE, OTHER_SWEEP]))
    return read_outcomes(tmp_path / "outcomes")


def test_numbers_are_within_outside_or_without_a_verdict_and_have_a_cause(kept):
    found = numbers_of(kept, Papers(PUBLISHED, CONCLUSIONS, EXPLANATIONS))
    assert found["state"].tolist() == ["within ±", "outside of ±", "within ±", "outside of ±"]
    assert found["published"].tolist() == ["15 ± 10", "31 ± 10", "15", "5 ± 0"]
    assert set(found["ours"]) == {"20 ± 14"}
    assert set(found["cause"]) == {"solver"}
    higher = replace(EXPLANATIONS[1], ours="higher")  # ours is lower than 0.31 and above 0.05
    found = numbers_of(kept, Papers(PUBLISHED, CONCLUSIONS, [higher]))
    assert found["cause"].tolist()[1::2] == ["unknown", "solver"]


def test_one_split_without_a_published_deviation_has_no_verdict(tmp_path):
    made(tmp_path, {("heart", "level"): [0.25]}, split_names=("s0",))
    numbers = [replace(LEVEL, sd=math.nan, mean=mean) for mean in (0.15, 0.25)]
    outcome = outcome_of(Results(tmp_path), numbers, [])
    found = numbers_of({"made-up": outcome}, Papers(numbers))
    assert found["state"].tolist() == ["without a verdict", "within ±"]


def test_the_page_begins_with_counts_conclusions_and_causes(kept):
    surrogate = Text("made-up", "*", "*", "*", "Drawn here.", "surrogate")
    papers = Papers(PUBLISHED, [*CONCLUSIONS, MORE], EXPLANATIONS, [surrogate])
    lines = page_of(kept, papers).splitlines()
    head = lines[
        : lines.index("## Paper / 1") if "## Paper / 1" in lines else lines.index("## Paper | 1")
    ]
    assert len(head) < 40
    for line in (
        "| Paper / 1 | 1 of 2 (50%) | 1 of 2 (50%) | 1 | 1 | 0 |",
        f"| Paper 2 | {NOTHING} | {NOTHING} | 0 | 0 | 1 |",
        "| of the paper's data, splits drawn in place of its own | 1 of 2 (50%) | 1 of 2 (50%) |",
        "| Level errs less. | yes |  |",
        "| numbers outside of ± | 0 | 0 | 0 | 2 | 0 |",
        "| conclusions that do not hold | 1 | 0 | 0 | 0 | 0 |",
    ):
        assert line in head
    assert "| Level errs more. | **no** | data |" in lines[len(head) :]
    assert "- made-up heart: 4 numbers. Drawn here." in lines


def test_the_details_have_the_figures_of_each_conclusion_and_number(kept):
    papers = Papers(PUBLISHED, [LESS, MORE], EXPLANATIONS)
    tables = numbers_of(kept, papers), conclusions_of(kept, papers)
    lines = details_of(kept["made-up"], *tables).splitlines()
    start = lines.index("## Level errs more.")
    assert lines[start + 2].startswith("**Not reproduced** (data): test_error of level above uni")
    assert lines[start + 6] == "| heart | 0.2 | 0.3 | no |"
    start = lines.index("**Solver.** C = 10: 0.4 | 0.5")
    ends = f"{NOTHING} | {NOTHING} |"  # of results without validation errors
    assert lines[start + 4 : start + 6] == [
        f"| heart | level | test_error | 31 ± 10 | 20 ± 14 | {ends}",
        f"| heart | level | test_error | 5 ± 0 | 20 ± 14 | {ends}",
    ]


def test_what_ran_other_than_the_file_and_by_which_software_is_said(results):
    file = json.loads(str(results.tree.attrs["spec"]))
    file["tol"] = 1e-7
    file["datasets"] = [*file["datasets"], {"name": "pima"}, {"name": "sonar"}]
    tree = results.tree.copy()
    facts = {"commit": "2c3d", "processor": "Example 9000", "processors": 2, "python": "3.12.1",
             "platform": "Linux-6", "machine": "x86_64",
             "versions": {"mkldist": "0.1.0"}}  # fmt: skip
    tree.attrs |= {"provenance": json.dumps(facts), "created": "2026-11-26T10:00:00"}
    outcome = outcome_of(Results(results.folder, tree), PUBLISHED, CONCLUSIONS, file)
    papers = Papers(PUBLISHED, CONCLUSIONS)
    lines = page_of({"made-up": outcome}, papers).splitlines()
    made_by = "- 8 runs: mkldist 0.1.0; Python 3.12.1; 2 processors, Linux x86_64, Example 9000; "
    assert lines[-2:] == [made_by + "by commit 2c3d (8 runs).", "- Trees of results: 2026-11-26."]
    assert "| Level errs less. | not decided |  |" in lines  # 1 of 3 data sets
    tables = numbers_of({"made-up": outcome}, papers), conclusions_of({"made-up": outcome}, papers)
    assert "datasets: 1 of 3" in details_of(outcome, *tables)


def test_pictures_are_the_same_each_time(kept, tmp_path):
    numbers, texts = numbers_of(kept, Papers(PUBLISHED, CONCLUSIONS)), set()
    for _ in range(2):
        write_picture(tmp_path / "one.svg", numbers)
        texts.add((tmp_path / "one.svg").read_text())
    assert len(texts) == 1


def test_an_outcome_has_the_numbers_and_verdicts_of_the_results(results, kept):
    for number in PUBLISHED[:4]:
        cell = cell_of(kept["made-up"], number)
        ours = our_number(results, number)
        assert (cell.n_splits, cell.lacking) == (ours.n_splits, ours.lacking)
        assert (cell.mean, cell.sd) == pytest.approx((ours.mean, ours.sd), rel=0.0, nan_ok=True)
    assert judged_by(LESS, kept["made-up"]) == judge(LESS, results)
    assert judged_by(LESS, kept["made-up"]).verdict == "reproduced"


def test_what_the_paper_prints_may_change_after(kept):
    cell = cell_of(kept["made-up"], replace(LEVEL, mean=0.4, source="Table 2"))
    assert (cell.mean, cell.is_within) == (0.2, False)
    assert judged_by(replace(LESS, words="Level is better."), kept["made-up"]).cases
    excused = judged_by(replace(LESS, untestable="other digits"), kept["made-up"])
    assert excused.verdict == "not testable"
    assert excused.cases


def test_what_nobody_asked_of_the_results_is_said_to_be_unknown(kept):
    cell = cell_of(kept["made-up"], replace(LEVEL, metric="auc"))
    assert (cell.n_splits, cell.lacking) == (0, NOT_HELD)
    assert judged_by(replace(LESS, factor=2.0), kept["made-up"]).note == NOT_HELD
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


# ``python -m sweeps.papers.reproduced``, and the page of the project.


NUMBERS = """\
experiment,data set,method,setting,metric,mean,sd,source
made-up,heart,level,,test_error,0.15,0.1,Table 1
"""
SHINES = '[[conclusions]]\npaper = "A"\nwords = "B"\nuntestable = "C"\n'


@pytest.fixture
def folder(tmp_path):
    made(tmp_path / "ours", {("heart", "level"): [0.1, 0.2]}, split_names=("s0", "s1"))
    (tmp_path / "published").mkdir()
    (tmp_path / "published/numbers.csv").write_text(NUMBERS)
    (tmp_path / "published/conclusions.toml").write_text(SHINES)
    return tmp_path


def written(folder, *words: str) -> str:
    """Return the page of results, by the words of the command."""
    given = [str(folder / word) for word in words]
    main([*given, "--published", str(folder / "published"), "--page", str(folder / "page.md")])
    return (folder / "page.md").read_text()


@pytest.mark.slow
def test_the_pages_of_the_project_are_those_of_its_outcomes():
    papers, outcomes = Papers.read(HERE / "published"), read_outcomes(HERE / "published" / OUTCOMES)
    assert (HERE / "REPRODUCED.md").read_text(encoding="utf-8") == page_of(outcomes, papers)
    tables = numbers_of(outcomes, papers), conclusions_of(outcomes, papers)
    for name, outcome in outcomes.items():
        text = (HERE / "reproduced" / f"{name}.md").read_text(encoding="utf-8")
        assert text == details_of(outcome, *tables)


def test_what_results_said_is_kept_for_pages_without_them(folder):
    first = written(folder, "ours")
    assert f"| Other papers | 1 of 1 (100%) | {NOTHING} | 0 | 0 | 0 |" in first.splitlines()
    shutil.rmtree(folder / "ours")
    assert written(folder) == first
    made(folder / "ours", {("heart", "level"): [0.5, 0.4]}, split_names=("s0", "s1"))
    assert written(folder, "ours") != first


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (["ours"], lambda folder: (folder / "page.md").write_text("# Mine")),
        (["ours", "again"], lambda folder: shutil.copytree(folder / "ours", folder / "again")),
        (["none"], lambda _: None),
        ([], lambda _: None),
        (["ours"], lambda folder: (folder / "published/numbers.csv").unlink()),
    ],
    ids=["another file", "two of a sweep", "no such results", "nothing", "no numbers"],
)
def test_mistakes_end_with_2_and_write_nothing(folder, words, change, capsys):
    change(folder)
    with pytest.raises(SystemExit) as caught:
        written(folder, *words)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (folder / "published" / OUTCOMES).exists()
