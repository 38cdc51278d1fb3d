"""Predictions for files, in blocks of rows and bounded memory, whole or absent."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

from mkldist.data.dataset import SourceColumns
from mkldist.errors import DataError, OutputError
from mkldist.fit.new_rows import opened_rows
from mkldist.fit.predictions import write_predictions
from tests.models.made_up import COLUMNS, made_up_model, made_up_table, plain_values

TABLE = made_up_table()


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table in the format of its ending."""
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    elif path.name.endswith(".zarr"):
        group = zarr.open_group(path, mode="w")
        for name in frame.columns:
            values = frame[name].to_numpy()
            if values.dtype.kind == "O":
                values = frame[name].fillna("").to_numpy(dtype=object)
            dtype = str if values.dtype.kind == "O" else values.dtype
            group.create_array(name, shape=len(values), chunks=11, dtype=dtype)[:] = values
    else:
        separator = "\t" if ".tsv" in path.name else ","
        frame.to_csv(path, index=False, sep=separator)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "zarr"])
@pytest.mark.parametrize("rows_at_once", [7, 10_000])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_file_has_the_predictions_of_its_rows(ending, rows_at_once, n_threads, tmp_path):
    data = write(TABLE, tmp_path / f"new.{ending}")
    model = made_up_model()
    done = write_predictions(
        model, data, tmp_path / "out.csv", n_threads=n_threads, rows_at_once=rows_at_once
    )
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns) == ["row", "prediction", "decision"]
    assert found["row"].tolist() == TABLE["row"].tolist()
    expected = plain_values(model, TABLE)[:, 0]
    np.testing.assert_allclose(found["decision"], expected, rtol=0, atol=1e-10)
    assert found["prediction"].tolist() == np.where(expected >= 0, "well", "ill").tolist()
    assert done.n_rows == len(TABLE)
    assert done.counts == found["prediction"].value_counts().to_dict()


def test_several_classes_have_decisions_by_name_and_real_values_none(tmp_path):
    data = write(TABLE, tmp_path / "new.csv")
    model = made_up_model(("p", "q", "r"))
    write_predictions(model, data, tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns)[1:] == ["prediction", "decision[p]", "decision[q]", "decision[r]"]
    np.testing.assert_allclose(found.iloc[:, 2:], plain_values(model, TABLE), rtol=0, atol=1e-10)
    values = made_up_model(None)
    done = write_predictions(values, data, tmp_path / "values.csv")
    assert list(pd.read_csv(tmp_path / "values.csv").columns) == ["row", "prediction"]
    assert not done.counts


@pytest.mark.parametrize("ending", ["npz", "zarr"])
def test_arrays_of_a_file_are_predicted(tmp_path, ending):
    x = np.random.default_rng(0).normal(size=(9, 3))
    path = tmp_path / f"new.{ending}"
    if ending == "npz":
        np.savez(path, x=x)
    else:
        zarr.open_group(path, mode="w").create_array("x", data=x, chunks=(2, 3))
    columns = SourceColumns(("f0", "f1", "f2"))
    with opened_rows(path, columns, 4) as rows:
        blocks = list(rows.blocks)
    assert [block.row_labels.of(0) for block in blocks] == [f"row {i} (from 1)" for i in (1, 5, 9)]
    np.testing.assert_array_equal(np.concatenate([block.x for block in blocks]), x)


def array_file(path: Path, **arrays: np.ndarray) -> Path:
    """Write named arrays in the format of a file's ending."""
    if path.suffix == ".zarr":
        node = zarr.open_group(path, mode="w")
        for name, values in arrays.items():
            kind = str if values.dtype.kind == "U" else values.dtype
            array = node.create_array(name, shape=values.shape, chunks=values.shape, dtype=kind)
            array[...] = values.astype(object) if kind is str else values
    else:
        with path.open("wb") as file:
            np.savez(file, **arrays)
    return path


def features_of(
    path: Path, columns: SourceColumns, ignored: tuple[str, ...] = (), *, sparse: bool = False
) -> np.ndarray:
    """Return the features of all rows of a file."""
    with opened_rows(path, columns, 2, ignored=ignored, sparse=sparse) as rows:
        blocks = [block.x for block in rows.blocks]
    return np.concatenate([x.toarray() if sparse else x for x in blocks])


NAMED = SourceColumns(("age", "flat", "bmi"), label="ill", kept=(0, 2))
ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("ending", ["npz", "zarr", "NPZ"])
def test_named_features_of_arrays_may_stand_in_any_order(tmp_path, ending):
    names = np.array(["bmi", "ill", "age", "note"])
    x = np.column_stack([ROWS[:, 1], [0, 1, 0], ROWS[:, 0], [7, 8, 9]])
    path = array_file(tmp_path / f"new.{ending}", x=x, feature_names=names)
    found = features_of(path, NAMED, ("note",))
    np.testing.assert_array_equal(found, ROWS)
    with (
        pytest.raises(DataError, match=r"column 'note', unknown to the model.*--ignore v\.note"),
        opened_rows(path, NAMED, 2, place="v."),
    ):
        pass


def test_named_features_of_sparse_arrays_may_stand_in_any_order(tmp_path):
    from scipy.sparse import csr_array

    matrix = csr_array(ROWS[:, ::-1])
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    names = np.array(["bmi", "age"])
    path = tmp_path / "new.npz"
    array_file(path, **parts, shape=np.array(matrix.shape), feature_names=names)
    for sparse in (True, False):
        np.testing.assert_array_equal(features_of(path, NAMED, sparse=sparse), ROWS)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["bmi", "weight"], "no column 'age'; column 'weight', unknown to the model"),
        (["bmi", "bmi"], "array 'feature_names': found 2 names, 1 of them distinct"),
        (["bmi"], "array 'feature_names': found 1 name"),
    ],
)
@pytest.mark.parametrize("ending", ["npz", "zarr"])
def test_other_names_of_features_are_refused(names, said, ending, tmp_path):
    path = array_file(tmp_path / f"new.{ending}", x=ROWS, feature_names=np.array(names))
    with (
        pytest.raises(DataError, match=said),
        opened_rows(path, NAMED, 2),
    ):
        pass


@pytest.mark.parametrize("letter", ["f", "x"])
def test_features_without_names_stand_by_their_position(letter, tmp_path):
    columns = SourceColumns((f"{letter}0", f"{letter}1"))
    path = array_file(tmp_path / "new.npz", x=ROWS, feature_names=np.array(["age", "bmi"]))
    np.testing.assert_array_equal(features_of(path, columns), ROWS)
    names = np.array([f"{letter}1", f"{letter}0"])
    array_file(path, x=ROWS[:, ::-1], feature_names=names)
    np.testing.assert_array_equal(features_of(path, columns), ROWS)


@pytest.mark.parametrize(
    ("names", "line", "note"),
    [
        (("age", "bmi"), "0 1:1 2:2\n", "taken by their position: age, bmi"),
        (("f0", "f1"), "0 1:1 2:2\n", ""),
    ],
)
def test_features_of_numbers_alone_are_matched_by_position_and_told(names, line, note, tmp_path):
    (tmp_path / "new.svm").write_text(line)
    columns = SourceColumns(names)
    with opened_rows(tmp_path / "new.svm", columns, 4) as rows:
        assert rows.note.endswith(note)
        assert bool(rows.note) == bool(note)


def test_sparse_rows_are_predicted(tmp_path):
    (tmp_path / "new.svm").write_text("0 1:0.5 2:2\n0 2:1.5\n")
    columns = SourceColumns(("f0", "f1", "f2"))
    with opened_rows(tmp_path / "new.svm", columns, 4) as rows:
        [block] = rows.blocks
    assert block.x.tolist() == [[0.5, 2.0, 0.0], [0.0, 1.5, 0.0]]
    assert block.row_labels.names([0, 1]) == ["line 1", "line 2"]
    columns = SourceColumns(("f0",))
    with (
        pytest.raises(DataError, match=r"new\.svm: found 2 columns; expected 1"),
        opened_rows(tmp_path / "new.svm", columns, 4),
    ):
        pass


def test_unknown_categories_are_counted_over_all_blocks(tmp_path):
    data = write(TABLE.assign(size=["XL", *TABLE["size"][1:-1], "XL"]), tmp_path / "new.csv")
    done = write_predictions(made_up_model(), data, tmp_path / "out.csv", rows_at_once=7)
    assert done.unseen == {("size", "XL"): 2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("row,", "name,"), "column 'name', unknown to the model"),
        (lambda text: text.replace("\n", ",\n", 5), "found no name of column 6 of 6"),
        (lambda text: text + "1,2\n", "line 52: found 2 fields; expected 5, as in the header"),
        (
            lambda text: text + "tall,r,S,n,1\n",
            "line 52, column 'b': found text 'tall'.*takes numbers",
        ),
        (
            lambda text: text + '"1,5",r,S,n,1\n',
            r"line 52, column 'b': found text '1,5'.*Write decimals with a point",
        ),
        (
            lambda text: text + "inf,r,S,n,1\n",
            "line 52, column 'b': found an infinite value",
        ),
        (lambda text: text + '1,r,S,"n,1\n', "line 52: found a line that is no row"),
        (lambda text: text.split("\n")[0] + "\n", "no rows"),
        (lambda text: "", "an empty file"),
    ],
    ids=["column", "nameless", "short", "text", "comma", "infinite", "quote", "no rows", "empty"],
)
def test_a_file_that_does_not_fit_leaves_nothing(change, said, tmp_path):
    data = tmp_path / "new.csv"
    data.write_text(change(TABLE.to_csv(index=False)))
    with pytest.raises(DataError, match=rf"new\.csv.*({said})"):
        write_predictions(made_up_model(), data, tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_a_file_of_another_kind_or_place_is_refused(tmp_path):
    model, data = made_up_model(), write(TABLE, tmp_path / "new.csv")
    (tmp_path / "new.txt").touch()
    with pytest.raises(DataError, match=r"ending in '\.txt'; expected a file ending in one of"):
        write_predictions(model, tmp_path / "new.txt", tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"nex\.csv: found no such file.*Did you mean 'new\.csv'"):
        write_predictions(model, tmp_path / "nex.csv", tmp_path / "out.csv")
    with pytest.raises(OutputError, match=r"a name ending in '\.txt'"):
        write_predictions(model, data, tmp_path / "out.txt")
    with pytest.raises(OutputError, match=r"new\.csv: found the file of the rows"):
        write_predictions(model, data, tmp_path / "new.csv", overwrite=True)
    write_predictions(model, data, tmp_path / "out.csv")
    with pytest.raises(OutputError, match=r"a file of that name.*--overwrite"):
        write_predictions(model, data, tmp_path / "out.csv")
    write_predictions(model, data, tmp_path / "out.csv", overwrite=True)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path):
    model = made_up_model()
    peaks = []
    for n in (1000, 8000):
        data = write(made_up_table(n), tmp_path / f"{n}.csv")
        tracemalloc.start()
        write_predictions(
            model, data, tmp_path / "out.csv", overwrite=True, n_threads=2, rows_at_once=64
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.slow
def test_a_kill_while_writing_leaves_no_file_of_that_name(tmp_path):
    data = write(made_up_table(3000), tmp_path / "new.csv")
    script = """
import os, sys
from pathlib import Path
from mkldist.fit.model import LabelCoding
from mkldist.fit.predictions import write_predictions
from tests.models.made_up import made_up_model
predictions, calls = LabelCoding.predictions, []
def killed(*given):
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), 9)
    return predictions(*given)
LabelCoding.predictions = killed
write_predictions(made_up_model(), Path(sys.argv[1]), Path(sys.argv[2]), rows_at_once=64)
"""
    out = tmp_path / "out.csv"
    root = Path(__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", script, str(data), str(out)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert killed.returncode == -9
    assert not out.exists()
    assert len(list(tmp_path.iterdir())) == 2  # the table, and what the killed process left
    write_predictions(made_up_model(), data, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "out.csv"]


def test_the_columns_that_are_read_are_those_of_the_model(tmp_path):
    data = write(TABLE, tmp_path / "new.csv")
    with opened_rows(data, COLUMNS, 20) as rows:
        blocks = list(rows.blocks)
    assert [len(block.x) for block in blocks] == [20, 20, 10]
    assert blocks[1].ids == TABLE["row"][20:40].tolist()


@pytest.mark.parametrize(
    ("names", "lines", "said"),
    [
        (
            ("gene1", "gene2"),
            "0 1:1\n",
            "features by their numbers alone: f0; expected features of",
        ),
        (("f0", "gene"), "0 1:1\n", "expected features of the model: f0, gene. Write the rows to"),
        (("f0", "f7"), "0 3:1\n", "alone: f2; expected features of the model: f0, f7. Check that"),
    ],
)
def test_numbered_features_that_are_not_those_of_the_model_are_refused(
    names, lines, said, tmp_path
):
    (tmp_path / "new.svm").write_text(lines)
    columns = SourceColumns(names)
    with (
        pytest.raises(DataError, match=rf"new\.svm: found .*{said}"),
        opened_rows(tmp_path / "new.svm", columns, 4, sparse=True),
    ):
        pass


def test_features_of_sparse_rows_have_their_places(tmp_path):
    (tmp_path / "new.svm").write_text("0 1:0.5 3:2 8:4\n")
    columns = SourceColumns(("f0", "f7"))
    with opened_rows(tmp_path / "new.svm", columns, 4, sparse=True) as rows:
        [block] = rows.blocks
        assert block.x.toarray().tolist() == [[0.5, 4.0]]
        assert rows.note == "1 feature that no row of the model's data has (f2), left out"
