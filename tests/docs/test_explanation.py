"""The table of methods that helps to choose one says what their code says."""

import re

from mkldist.methods.registry import METHODS
from mkldist.solvers.base import ProblemFacts
from tests.docs.pages import DOCS

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
