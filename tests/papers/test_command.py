"""``python sweeps/papers/judge.py``, on a sweep made up, and the page of the project."""

from __future__ import annotations

import shutil

import pytest

from sweeps.papers.judge import HERE, NOTHING, OUTCOMES, PAGE, Papers, main, page_of, read_outcomes
from tests.analysis.two_sweeps import made

NUMBERS = """\
experiment,data set,method,setting,metric,mean,sd,source
made-up,heart,level,,test_error,0.15,0.1,Table 1
"""
CONCLUSIONS = '[[conclusions]]\npaper = "A"\nwords = "B"\nuntestable = "C"\n'
TEXT = 'experiment,data set,method,metric,explanation\nmade-up,*,level,*,"C = 1, 10: both 0.15"\n'


@pytest.fixture
def folder(tmp_path):
    made(tmp_path / "ours", {("heart", "level"): [0.1, 0.2]}, split_names=("s0", "s1"))
    (tmp_path / "published").mkdir()
    (tmp_path / "published/numbers.csv").write_text(NUMBERS)
    (tmp_path / "published/conclusions.toml").write_text(CONCLUSIONS)
    return tmp_path


def page(folder, *words: str) -> str:
    """Return the page of results, by the words of the command."""
    given = [str(folder / word) for word in words]
    main([*given, "--published", str(folder / "published"), "--page", str(folder / "page.md")])
    return (folder / "page.md").read_text()


@pytest.mark.slow
def test_the_page_of_the_project_is_that_of_its_outcomes():
    papers = Papers.read(HERE / "published")
    text = page_of(read_outcomes(HERE / "published" / OUTCOMES), papers)
    assert PAGE.read_text(encoding="utf-8") == text


def test_numbers_are_printed_beside_ours(folder, capsys):
    main([str(folder / "ours"), "--published", str(folder / "published")])
    assert "0.15 ± 0.1 0.15 ± 0.071" in " ".join(capsys.readouterr().out.split())
    assert not (folder / "published" / OUTCOMES).exists()


def test_what_results_said_is_kept_for_pages_without_them(folder):
    first = page(folder, "ours")
    assert f"| made-up | 4 of 4 | 1 | 1 | 1 of 1 (100%) | {NOTHING} |" in first.splitlines()
    shutil.rmtree(folder / "ours")
    assert page(folder) == first
    made(folder / "ours", {("heart", "level"): [0.5, 0.4]}, split_names=("s0", "s1"))
    assert page(folder, "ours") != first


@pytest.mark.parametrize("name", ["other_data.csv", "unstated_data.csv", "explanations.csv"])
def test_texts_on_numbers_stand_on_the_page(folder, name):
    (folder / "published" / name).write_text(TEXT)
    (folder / "published/numbers.csv").write_text(NUMBERS.replace("0.15", "0.9"))
    lines = page(folder, "ours").splitlines()
    if name == "explanations.csv":
        row = lines[lines.index("C = 1, 10: both 0.15") + 4]
        assert row.startswith("| heart | level | test_error | 90 ± 10 | 15 ± 7.1 |")
    else:
        assert "- made-up heart: 1 number. C = 1, 10: both 0.15" in lines


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
        page(folder, *words)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (folder / "published" / OUTCOMES).exists()


def test_results_without_published_numbers_are_refused(folder):
    (folder / "published/numbers.csv").write_text(NUMBERS.replace("made-up", "other"))
    with pytest.raises(SystemExit) as caught:
        main([str(folder / "ours"), "--published", str(folder / "published")])
    assert caught.value.code == 2
