"""``mkldist compare RESULTS... --published FOLDER -o FILE``, on a sweep made up."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner

from mkldist.analysis.cell_texts import NOTHING
from mkldist.analysis.outcomes import read_outcomes, write_outcome
from mkldist.cli.compare import command
from mkldist.cli.reproduced import write_reproduced
from mkldist.errors import MkldistError
from tests.analysis.two_sweeps import made

NUMBERS = """\
experiment,data set,method,setting,metric,mean,sd,source
made-up,heart,level,,test_error,0.15,0.1,Table 1
"""
CONCLUSIONS = '[[conclusions]]\npaper = "A"\nwords = "B"\nuntestable = "C"\n'


@pytest.fixture
def folder(tmp_path):
    made(tmp_path / "ours", {("heart", "level"): [0.1, 0.2]}, split_names=("s0", "s1"))
    (tmp_path / "published").mkdir()
    (tmp_path / "published/numbers.csv").write_text(NUMBERS)
    (tmp_path / "published/conclusions.toml").write_text(CONCLUSIONS)
    return tmp_path


def run(folder, *more: str, words: tuple[str, ...] = ("ours",)) -> str:
    given = [str(folder / word) for word in words]
    options = ["--published", str(folder / "published"), "-o", str(folder / "REPRODUCED.md")]
    done = CliRunner().invoke(command, [*given, *options, *more], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_page_is_written_and_written_again(folder):
    assert "REPRODUCED.md" in run(folder)
    first = (folder / "REPRODUCED.md").read_text()
    assert f"| made-up | 4 of 4 | 1 | 1 | 1 of 1 (100%) | {NOTHING} |" in first.splitlines()
    run(folder)
    assert (folder / "REPRODUCED.md").read_text() == first


def test_what_results_said_is_kept_for_pages_without_them(folder):
    run(folder)
    first = (folder / "REPRODUCED.md").read_text()
    shutil.rmtree(folder / "ours")
    assert "1 sweep by outcomes kept in" in run(folder, words=())
    assert (folder / "REPRODUCED.md").read_text() == first


def test_results_replace_what_is_kept_of_their_sweep_alone(folder):
    run(folder)
    kept = folder / "published/outcomes/made-up.json"
    other = folder / "published/outcomes/other.json"
    outcome = read_outcomes(kept.parent)["made-up"]
    write_outcome(kept.parent, replace(outcome, sweep="other"))
    before = kept.read_bytes(), other.read_bytes()
    shutil.rmtree(folder / "ours")
    made(folder / "ours", {("heart", "level"): [0.1, 0.4]}, split_names=("s0", "s1"))
    assert "1 sweep by outcomes kept in" in run(folder)
    assert kept.read_bytes() != before[0]
    assert other.read_bytes() == before[1]


def test_a_damaged_outcome_is_refused_by_name(folder):
    run(folder)
    page, kept = folder / "REPRODUCED.md", folder / "published/outcomes/made-up.json"
    first = page.read_text()
    kept.write_bytes(kept.read_bytes().replace(b"heart", b"Heart"))
    with pytest.raises(MkldistError, match=r"made-up\.json: found its checksum does not fit"):
        run(folder, words=())
    assert page.read_text() == first


def test_explanations_stand_above_the_numbers_outside(folder):
    text = NUMBERS + "made-up,heart,level,,test_error,0.9,0.1,Table 2\n"
    (folder / "published/numbers.csv").write_text(text)
    (folder / "published/explanations.csv").write_text(
        "experiment,data set,method,metric,explanation\n"
        'made-up,*,level,test_error,"C = 1, 10: both 0.15"\n'
    )
    run(folder)
    page = (folder / "REPRODUCED.md").read_text().splitlines()
    row = page[page.index("C = 1, 10: both 0.15") + 4]
    assert row.startswith("| heart | level | test_error | 90 ± 10 | 15 ± 7.1 |")


@pytest.mark.parametrize("name", ["other_data.csv", "unstated_data.csv"])
def test_numbers_of_other_data_are_counted_apart(folder, name):
    (folder / "published" / name).write_text(
        "experiment,data set,method,metric,explanation\n"
        "made-up,heart,*,*,The paper counts 303 points.\n"
    )
    run(folder)
    page = (folder / "REPRODUCED.md").read_text().splitlines()
    assert "- made-up heart: 1 number. The paper counts 303 points." in page


def test_another_file_is_not_replaced(folder):
    (folder / "REPRODUCED.md").write_text("# Mine")
    with pytest.raises(MkldistError, match="found a file that is no such page; expected a new"):
        run(folder)
    assert (folder / "REPRODUCED.md").read_text() == "# Mine"


def test_two_results_of_a_sweep_are_refused(folder):
    shutil.copytree(folder / "ours", folder / "again")
    with pytest.raises(MkldistError, match=r"two results of made-up: .*expected one of each sweep"):
        run(folder, words=("ours", "again"))


@pytest.mark.parametrize(
    ("more", "words", "said"),
    [
        (["--method", "level"], ("ours",), "found other options beside it; expected RESULTS"),
        ([], (), r"found no RESULTS, and no outcome in .*outcomes; expected RESULTS\.\.\. --publ"),
    ],
)
def test_words_that_do_not_fit_a_page_are_refused(folder, more, words, said):
    with pytest.raises(MkldistError, match=said):
        run(folder, *more, words=words)


def test_a_page_needs_a_folder_of_numbers(folder):
    with pytest.raises(MkldistError, match=r"found no folder; expected a folder of published num"):
        write_reproduced([], folder / "published/numbers.csv", folder / "a.md")
    with pytest.raises(MkldistError, match=r"found another ending; expected a name ending in \.md"):
        write_reproduced([], folder / "published", folder / "a.html")
