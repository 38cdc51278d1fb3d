"""A data set in words, as `plan` and `sweep` print it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import Dataset
from mkldist.data.validate import summary_lines
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec

HEADER = "number,age,sex,flat,note,disease"
ROWS = [
    f"{i},{'' if i % 7 == 0 else 30 + i % 5},{'mf'[i % 2]},3,text {i},{('no', 'yes', 'No')[i % 3]}"
    for i in range(21)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    return tmp_path


def said(folder: Path, fit: str = "train", **entry: Any) -> list[str]:
    columns = {"ignore": ("note",), "categorical": ("sex",), "label": "disease"}
    spec = DatasetSpec(**{"name": "t", "file": "t.csv", "impute": "median"} | columns | entry)
    return summary_lines(load_dataset(spec, [], folder, 0), PreprocessingSpec(fit=fit))


def test_everything_that_was_decided_is_said(folder: Path) -> None:
    assert said(folder) == [
        "t: 21 rows, 4 features, classification",
        "  label:     column 'disease', chosen by label = \"disease\"",
        "  classes:   No (7 rows), no (7 rows), yes (7 rows)",
        "  left out:  'note' (ignored)",
        "  constant:  'flat'",
        "  encoded:   'sex' as 2 features",
        "  missing:   3 of 21 rows miss values in 1 column: filled with the median of each "
        "training part",
        "  note:      'number' numbers the rows and is taken as a feature; id = \"number\" leaves "
        "it out",
        "  note:      classes 'No' and 'no' differ in upper and lower case alone",
    ]


def test_of_two_classes_the_signs_are_said_and_of_rows_those_left_out(folder: Path) -> None:
    lines = said(folder, "all", classes=("no", "yes"), id="number", impute="most_frequent")
    assert lines[0] == "t: 14 of 21 rows, 3 features, classification"
    assert lines[2] == "  classes:   no (7 rows) is -1, yes (7 rows) is +1"
    assert lines[3] == "  left out:  'number' (names the rows), 'note' (ignored)"
    assert lines[-2].endswith("filled with the most frequent value of all rows")
    assert "6 rows are equal to others in all features, such as line 5 and line 15" in lines[-1]


def test_values_and_gram_matrices() -> None:
    y = np.array([25.0, 346, 100])
    values = Dataset("v", np.eye(3), y, None, ("a", "b", "c"))
    assert summary_lines(values, PreprocessingSpec()) == [
        "v: 3 rows, 3 features, regression",
        "  values:    from 25 to 346",
    ]
    grams = Dataset("g", None, np.sign(y - 50), ("no", "yes"), grams=np.ones((7, 3, 3)))
    first, *_ = summary_lines(grams, PreprocessingSpec())
    assert first == "g: 3 rows, 7 Gram matrices, classification"


def test_groups_are_counted() -> None:
    y = np.array([1.0, -1, 1, -1])
    groups = np.array([0, 1, 1, 0])
    dataset = Dataset("t", np.eye(4), y, ("no", "yes"), tuple("abcd"), row_groups=groups)
    assert "  groups:    2, whose rows stay in one part" in summary_lines(
        dataset, PreprocessingSpec()
    )
