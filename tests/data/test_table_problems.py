"""One message about all mistakes in the rows of a table."""

import pytest

from mkldist.data.table_problems import TableProblems
from tests.data.mistakes import mistake


@pytest.fixture
def problems() -> TableProblems:
    return TableProblems("t.csv", 5)


def test_a_table_without_mistakes_passes(problems: TableProblems) -> None:
    problems.check(10)


def test_one_mistake_is_named_by_its_line(problems: TableProblems) -> None:
    problems.no_number("age", 7, " old ")
    with mistake("t.csv, line 7, column 'age': found text 'old'", "Correct or empty", '["age"]'):
        problems.check(10)


def test_all_mistakes_are_in_one_message(problems: TableProblems) -> None:
    for line in range(2, 12):
        problems.no_number("sex", line, "male")
        problems.no_number("admitted", line, "2021-03-01")
    problems.no_number("age", 4, "old")
    problems.no_number("dose", 5, "1,5")
    problems.ragged(12, 3)
    problems.ragged(13, 7)
    with mistake(
        "text in column 'sex' (10 of 12 rows, such as 'male' in line 2)",
        "dates in column 'admitted' (10 of 12 rows",
        "text in column 'age' (1 of 12 rows, such as 'old' in line 4)",
        "2 rows of another length than the header, the first of 3 fields in line 12",
        "5 fields in every row",
        'Set categorical = ["sex"]',
        'Set ignore = ["admitted"]',
        'or set ignore = ["age"]',
        "Write decimals with a point",
    ):
        problems.check(12)


def test_many_columns_are_not_all_named(problems: TableProblems) -> None:
    for number in range(20):
        problems.no_number(f"f{number}", 2, "x")
    with mistake("'f7'", "… 12 more"):
        problems.check(1)


@pytest.mark.parametrize("text", ["2021-03-01", "1.3.2021", "03/01/21", "2021-03-01 12:30"])
def test_dates_are_told_from_text(problems: TableProblems, text: str) -> None:
    problems.no_number("admitted", 2, text)
    with mistake(f"a date {text!r}", 'ignore = ["admitted"]', "numbers of days"):
        problems.check(1)
