"""Columns of texts of a model, and texts of new rows in files of arrays."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mkldist.data.dataset import SourceColumns
from mkldist.errors import DataError
from mkldist.fit.new_rows import opened_rows

COLUMNS = SourceColumns(("a", "b"), texts=("s", "t"), id="row")


def test_columns_survive_json():
    assert SourceColumns.from_dict(json.loads(json.dumps(COLUMNS.as_dict()))) == COLUMNS


def test_texts_stand_in_the_order_of_the_columns():
    frame = pd.DataFrame({"t": ["x", "y"], "b": [1, 2], "s": [1, None], "a": [3, 4]})
    with opened_rows(frame, COLUMNS, 9, "X") as rows:
        [block] = rows.blocks
    assert block.texts.tolist() == [["1", "x"], ["", "y"]]
    with opened_rows(frame, replace(COLUMNS, texts=(), others=("s", "t")), 9, "X") as rows:
        assert next(rows.blocks).texts is None


def test_arrays_of_texts_stand_beside_features(tmp_path):
    s, t = np.array([" p", "", "r"]), np.array(["1", "2", "3"])
    np.savez(tmp_path / "n.npz", x=np.arange(6.0).reshape(3, 2), t=t, s=s, row=t)
    with opened_rows(tmp_path / "n.npz", COLUMNS, 2) as rows:
        blocks = list(rows.blocks)
    assert [block.texts.tolist() for block in blocks] == [[["p", "1"], ["", "2"]], [["r", "3"]]]
    assert [block.ids for block in blocks] == [["1", "2"], ["3"]]
    assert rows.id == "row"


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, "found no array 's'"),
        ({"s": np.arange(2), "t": np.array(["a", "b"])}, "array 's': found an array of int64"),
        (
            {"s": np.array(["a"]), "t": np.array(["b"])},
            r"array .s.: found shape \(1,\); expected one text for each of 2 rows",
        ),
    ],
    ids=["absent", "numbers", "short"],
)
def test_arrays_that_do_not_fit_are_refused(arrays, said, tmp_path):
    np.savez(tmp_path / "n.npz", x=np.eye(2), **arrays)
    with (
        pytest.raises(DataError, match=said),
        opened_rows(tmp_path / "n.npz", COLUMNS, 9),
    ):
        pass


def test_a_file_without_columns_has_no_texts(tmp_path):
    (tmp_path / "n.svm").write_text("0 1:1 2:1\n")
    columns = replace(COLUMNS, numbers=("f0", "f1"), start=1)
    with (
        pytest.raises(
            DataError, match=r"found an array; expected a DataFrame, for columns of texts"
        ),
        opened_rows(tmp_path / "n.svm", columns, 9),
    ):
        pass
