"""Numbers with their nouns, and messages that have one of something."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.core.counted import counted
from mkldist.data.columns import label_position
from mkldist.data.first_look import read_columns
from mkldist.data.raw import check_rows
from mkldist.data.table_problems import TableProblems
from mkldist.data.views import read_groups
from mkldist.errors import DataError


def test_one_is_the_singular() -> None:
    said = [counted(n, "field") for n in (0, 1, 2)]
    assert said == ["0 fields", "1 field", "2 fields"]
    assert counted(3, "matrix", "matrices") == "3 matrices"


def of_table(folder: Path) -> None:
    problems = TableProblems("t.csv", 3)
    problems.ragged(7, 1)
    problems.check(9)


def of_first_look(folder: Path) -> None:
    (folder / "t.csv").write_text("a,b\n1,2\n3\n")
    read_columns(folder / "t.csv")


def of_gmt(folder: Path) -> None:
    (folder / "g.gmt").write_text("ALONE\n")
    read_groups(folder / "g.gmt", "g.gmt")


def of_group_table(folder: Path) -> None:
    (folder / "g.csv").write_text("group\nA,x\n")
    read_groups(folder / "g.csv", "g.csv")


@pytest.mark.parametrize("make", [of_table, of_first_look, of_gmt, of_group_table])
def test_a_row_of_one_field_is_told_so(make, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found 1 field;"):
        make(tmp_path)


def test_one_row_and_one_label_are_told_so() -> None:
    with pytest.raises(DataError, match="found 1 row of features but 2 labels"):
        check_rows(1, 2, "d")
    with pytest.raises(DataError, match="found 3 rows of features but 1 label;"):
        check_rows(3, 1, "d")


def test_one_column_is_told_so() -> None:
    with pytest.raises(DataError, match="found label = 4, but 1 column;"):
        label_position(["a"], 4, "t.csv")
