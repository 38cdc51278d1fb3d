"""The pages of documentation: their code runs, and their sweep files are right."""

import re
import tomllib

import pytest

from mkldist.methods.registry import METHODS
from mkldist.planning.checks import resolve_methods
from mkldist.solvers.base import ProblemFacts
from mkldist.spec.model import SweepSpec
from tests.docs.pages import COMPLETE, DOCS, blocks, run

# The gallery and the tutorials are executed when the site is built.
ROOMS = ("start", "howto", "explanation", "reference")
PAGES = [page for room in ROOMS for page in (DOCS / room).glob("*.md")]
NAMES = [str(page.relative_to(DOCS)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_sweep_files_are_right(page):
    for block in blocks(page):
        if block.language == "toml" and block.is_run:
            resolve_methods(SweepSpec.model_validate(COMPLETE | tomllib.loads(block.code)))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_its_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    run(page, tmp_path)


ROW = re.compile(r"^\| \[`(\w+)`\]\(\.\./reference/methods/\1\.md\) \|(.*)\|$", re.MULTILINE)


def test_the_table_of_methods_is_true():
    page = (DOCS / "explanation" / "choosing_a_method.md").read_text(encoding="utf-8")
    rows = {name: [cell.strip() for cell in cells.split("|")] for name, cells in ROW.findall(page)}
    assert rows.keys() == METHODS.keys()
    for name, method in METHODS.items():
        factors = method.refuses(ProblemFacts(factors=True)) is None
        marks = factors, method.weighs_points, method.joint_classes
        words = zip(marks, ("yes", "yes", "shared"), strict=True)
        assert rows[name][4:] == [word * mark for mark, word in words], name


def test_the_methods_with_a_path_are_named():
    page = (DOCS / "explanation" / "choosing_a_method.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"^With a path: (.*?)\. They", page, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == {n for n, m in METHODS.items() if m.has_path}
