"""Explanations of numbers that are not reproduced."""

from __future__ import annotations

import math

import pytest

from mkldist.analysis.explanations import explanation_of, read_explanations
from mkldist.analysis.published_number import Published
from mkldist.errors import DataError

HEADER = "experiment,data set,method,metric,explanation\n"
NUMBER = Published("table1", "heart", "level", "C=1", "test_error", 0.2, math.nan, "Table 1")


def read(tmp_path, rows):
    file = tmp_path / "explanations.csv"
    file.write_text(HEADER + rows)
    return read_explanations(file, [NUMBER])


def test_the_first_that_is_about_a_number_explains_it(tmp_path):
    found = read(tmp_path, "*,heart,level,*,one\ntable1,*,l*,test_error,two\n")
    assert explanation_of(NUMBER, found) == "one"
    assert explanation_of(NUMBER, found[1:]) == "two"
    assert explanation_of(NUMBER, []) == ""


def test_an_explanation_of_the_other_direction_does_not_count(tmp_path):
    file = tmp_path / "explanations.csv"
    file.write_text(
        "experiment,data set,method,metric,ours,explanation\n"
        "*,*,*,*,higher,why more\n*,*,*,*,lower,why less\n*,*,*,*,,either\n"
    )
    found = read_explanations(file, [NUMBER])
    assert explanation_of(NUMBER, found, 0.3) == "why more"
    assert explanation_of(NUMBER, found, 0.1) == "why less"
    assert explanation_of(NUMBER, found[1:], 0.3) == "either"
    assert explanation_of(NUMBER, found[:1], 0.1) == ""
    assert explanation_of(NUMBER, found) == "why more"  # of data, which have no direction


def test_another_direction_is_refused(tmp_path):
    file = tmp_path / "explanations.csv"
    file.write_text("experiment,data set,method,metric,ours,explanation\n*,*,*,*,up,why\n")
    with pytest.raises(DataError, match="column 'ours': found 'up'; expected higher, lower or non"):
        read_explanations(file, [NUMBER])


def test_none_are_read_without_a_file(tmp_path):
    assert read_explanations(tmp_path / "explanations.csv", [NUMBER]) == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("table1,heart,silp,test_error,why", "line 2: found table1, heart, silp, test_error;"),
        ("table1,heart,level,gap,why", "expected experiment, ... of a published number. Names are"),
        ("table1,heart,level,test_error,", "column 'explanation': found nothing; expected what"),
        ("table1,heart,level", "found 3 fields; expected 5"),
    ],
)
def test_a_row_that_explains_nothing_is_refused(tmp_path, row, said):
    with pytest.raises(DataError) as caught:
        read(tmp_path, f"{row}\n")
    assert said in str(caught.value)
