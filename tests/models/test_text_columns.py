"""Columns of texts of a model, and texts of new rows in files of arrays."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from mkldist.data.source_columns import SourceColumns
from mkldist.errors import DataError
from mkldist.fit.model_file import ModelTexts, texts_of
from mkldist.fit.new_rows import NewTable, opened_rows
from mkldist.row_places import FROM_ZERO

TEXTS = ModelTexts(("dna", "v.rna"), (False, True))
COLUMNS = SourceColumns(("a", "b"), texts=("s", "t"), id="row")


def test_a_text_that_rows_need_is_refused_by_row_and_column():
    rows = np.array([["a", ""], ["", "b"], ["", ""]], dtype=object)
    TEXTS.check(rows[:1], "X")
    with pytest.raises(DataError, match=r"column 'dna' for row 11 \(from 0\), row 12;"):
        TEXTS.check(rows, "X", row_places=FROM_ZERO.after(10))


def test_columns_survive_json():
    fields = json.loads(json.dumps(TEXTS.as_dict()))
    assert ModelTexts.from_dict(fields) == TEXTS
    assert SourceColumns.from_dict(json.loads(json.dumps(COLUMNS.as_dict()))) == COLUMNS


def test_texts_stand_in_the_order_of_the_columns():
    words = {"t": ["x", "y"], "other": ["-", "-"], "s": ["1", ""]}
    found = texts_of(("s", "t"), words)
    assert found is not None
    assert found.tolist() == [["1", "x"], ["", "y"]]
    assert texts_of((), words) is None


def test_arrays_of_texts_stand_beside_features(tmp_path):
    s, t = np.array([" p", "", "r"]), np.array(["1", "2", "3"])
    np.savez(tmp_path / "n.npz", x=np.arange(6.0).reshape(3, 2), t=t, s=s, row=t)
    with opened_rows(tmp_path / "n.npz", NewTable(COLUMNS, 2)) as file:
        blocks = list(file.blocks)
    assert [block.texts.tolist() for block in blocks] == [[["p", "1"], ["", "2"]], [["r", "3"]]]
    assert [block.ids for block in blocks] == [["1", "2"], ["3"]]
    assert file.rows.id == "row"


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, "found no array 's'"),
        ({"s": np.arange(2), "t": np.array(["a", "b"])}, "array 's': found an array of int64"),
        ({"s": np.array(["a"]), "t": np.array(["b"])}, "found 1 text; expected one for each of 2"),
    ],
    ids=["absent", "numbers", "short"],
)
def test_arrays_that_do_not_fit_are_refused(arrays, said, tmp_path):
    np.savez(tmp_path / "n.npz", x=np.eye(2), **arrays)
    with (
        pytest.raises(DataError, match=said),
        opened_rows(tmp_path / "n.npz", NewTable(COLUMNS, 9)),
    ):
        pass


def test_a_file_without_columns_has_no_texts(tmp_path):
    (tmp_path / "n.svm").write_text("0 1:1 2:1\n")
    columns = replace(COLUMNS, numbers=("f0", "f1"), start=1)
    with (
        pytest.raises(
            DataError, match=r"found an array; expected a DataFrame, for columns of texts"
        ),
        opened_rows(tmp_path / "n.svm", NewTable(columns, 9)),
    ):
        pass
