"""Files of predictions: columns, probabilities, contributions, scores, notes on odd rows."""

import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from scipy.io import savemat
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    r2_score,
    roc_auc_score,
)

import mkldist
from mkldist.calibration import Calibrated, Isotonic, Sigmoid
from mkldist.data.dataset import SourceColumns, View
from mkldist.errors import DataError, OutputError, SpecError
from mkldist.fit.new_rows import opened_rows
from mkldist.fit.predictions import write_predictions
from tests.fit.made_up import COLUMNS, made_up_model, made_up_table, made_up_views, plain_values

TABLE = made_up_table()
FULL = TABLE.fillna({"a": 0.5, "b": 0.5})


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table in the format of its ending."""
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    elif path.name.endswith(".xlsx"):
        frame.to_excel(path, index=False)
    else:
        separator = "\t" if ".tsv" in path.name else ","
        frame.to_csv(path, index=False, sep=separator)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "rows_at_once", "n_threads"),
    [
        ("csv", 7, 2), ("csv", 10_000, 1), ("csv.gz", 7, 1), ("tsv", 10_000, 2),
        ("xlsx", 7, 1), ("parquet", 7, 2),
    ],
)  # fmt: skip
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


def test_new_rows_are_written_as_those_of_the_fit(tmp_path):
    names = ["row", "a", "constant", "b", "size", "answer"]
    plain = TABLE.assign(constant=1.0, answer="ill")[names].fillna({"a": 0.5})
    written = plain.assign(a=plain["a"].map(lambda v: f"{v} mg".replace(".", ",")))
    written.loc[2, "a"] = "none given"
    plain.loc[2, "a"] = np.nan
    format = {"header": False, "names": names, "decimal": ",", "separator": "|"}
    format |= {"missing_values": ["none given"], "units": {"a": "mg"}}
    model = made_up_model()
    model = replace(model, columns=replace(model.columns, format=format))
    written["b"] = written["b"].map(lambda v: "" if pd.isna(v) else str(v).replace(".", ","))
    write_predictions(made_up_model(), write(plain, tmp_path / "p.csv"), tmp_path / "plain.csv")
    for left_out in ([], ["answer"]):  # new rows may have no label
        own = written.drop(columns=left_out)
        own.to_csv(tmp_path / "new.txt", index=False, header=False, sep="|")
        own.to_excel(tmp_path / "new.xlsx", index=False, header=False)
        for ending in ("txt", "xlsx"):
            new = tmp_path / f"new.{ending}"
            write_predictions(model, new, tmp_path / "new.csv", overwrite=True)
            assert (tmp_path / "new.csv").read_text() == (tmp_path / "plain.csv").read_text()


@pytest.mark.parametrize("classes", [("ill", "well"), ("ill", "old", "well"), None])
def test_a_column_in_the_place_of_the_label_holds_labels(tmp_path, classes):
    model = made_up_model(classes)
    names = ["row", "a", "b", "constant", "size", "answer"]
    format = {"header": False, "names": names}
    model = replace(model, columns=replace(model.columns, format=format))
    rows = FULL.assign(constant=1.0)[names[:-1]]
    label = "well" if classes else 2.5
    for last, known in ((label, True), (np.nan, True), ("small", False), (0.25, classes is None)):
        data = tmp_path / "new.csv"
        rows.assign(answer=last).to_csv(data, index=False, header=False)
        if known:
            done = write_predictions(model, data, None)
            assert [*map(_quoted, done.notes)] == ["answer"]
        else:
            with pytest.raises(DataError, match=f"'answer', by its place.*{last}"):
                write_predictions(model, data, None)


def _quoted(note: str) -> str:
    return note.split("'")[1]


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
    with pytest.raises(DataError, match=said), opened_rows(path, NAMED, 2):
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
    with opened_rows(tmp_path / "new.svm", SourceColumns(("f0",)), 4) as rows:
        [block] = rows.blocks
    assert block.x.tolist() == [[0.5], [0.0]]
    assert rows.note == "1 feature that the model's data lack (f1), left out"
    with (
        pytest.raises(DataError, match=r"new\.svm: found 2 columns; expected 1"),
        opened_rows(tmp_path / "new.svm", SourceColumns(("age",)), 4),
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
        (lambda text: text + "inf,r,S,n,1\n", "line 52, column 'b': found an infinite value"),
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
    (tmp_path / "new.q").touch()
    with pytest.raises(DataError, match=r"ending in '\.q'; expected a file ending in one of"):
        write_predictions(model, tmp_path / "new.q", tmp_path / "out.csv")
    with pytest.raises(DataError, match=r"nex\.csv: found no such file.*Did you mean 'new\.csv'"):
        write_predictions(model, tmp_path / "nex.csv", tmp_path / "out.csv")
    with pytest.raises(OutputError, match=r"a name ending in '\.txt'"):
        write_predictions(model, data, tmp_path / "out.txt")
    (tmp_path / "linked.csv").hardlink_to(data)
    (tmp_path / "mine.csv").touch()
    for target in ("new.csv", "linked.csv", "mine.csv"):
        with pytest.raises(OutputError, match="a file that this command reads"):
            write_predictions(
                model, data, tmp_path / target, overwrite=True, inputs=[tmp_path / "mine.csv"]
            )
    write_predictions(model, data, tmp_path / "out.csv")
    with pytest.raises(OutputError, match=r"a file of that name.*--overwrite"):
        write_predictions(model, data, tmp_path / "out.csv")
    write_predictions(model, data, tmp_path / "out.csv", overwrite=True)
    other, saved = write(TABLE, tmp_path / "other.csv"), tmp_path / "model.csv"
    model.save(saved)
    for target in (other, saved):
        before = target.read_bytes()
        with pytest.raises(OutputError):
            write_predictions(model, data, target, overwrite=True)
        assert target.read_bytes() == before


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
    assert peaks[1] < 2 * peaks[0]  # of eight times the rows; blocks that wait for a thread vary


@pytest.mark.slow
def test_a_kill_while_writing_leaves_no_file_of_that_name(tmp_path):
    data = write(made_up_table(3000), tmp_path / "new.csv")
    script = """
import os, sys
from pathlib import Path
from mkldist.fit.decision import LabelCoding
from mkldist.fit.predictions import write_predictions
from tests.fit.made_up import made_up_model
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


HALF = Calibrated((Sigmoid(2.0, 0.5),), threshold=-0.25)


def calibrated(calibration: Calibrated = HALF, classes=("ill", "well")):
    """Return a model with probabilities."""
    return replace(made_up_model(classes), calibration=calibration)


def predicted(model, frame: pd.DataFrame, folder: Path, **settings):
    """Write a table and its predictions; return what was done, and the predictions."""
    frame.to_csv(folder / "new.csv", index=False)
    done = write_predictions(model, folder / "new.csv", folder / "out.csv", **settings)
    return done, pd.read_csv(folder / "out.csv")


def test_probabilities_follow_the_decision_and_read_back(tmp_path):
    calibrated().save(tmp_path / "a.model")
    model = mkldist.load_model(tmp_path / "a.model")
    assert model.calibration == HALF
    done, found = predicted(model, FULL, tmp_path)
    assert list(found.columns) == ["row", "prediction", "decision", "probability"]
    expected = 1 / (1 + np.exp(-2.0 * found["decision"] - 0.5))
    np.testing.assert_allclose(found["probability"], expected)
    probability = model.predict_proba(FULL)[:, 1]
    np.testing.assert_allclose(found["probability"], probability, rtol=1e-14)
    assert found["prediction"].tolist() == np.where(expected >= 0.5, "well", "ill").tolist()
    assert done.notes == ()


@pytest.mark.parametrize("threshold", [-np.inf, 0.3, np.inf])
def test_predictions_other_than_the_most_probable_class_are_counted(threshold, tmp_path):
    model = calibrated(replace(HALF, threshold=threshold))
    model.save(tmp_path / "a.model")
    done, found = predicted(mkldist.load_model(tmp_path / "a.model"), FULL, tmp_path)
    positive = found["decision"] >= threshold
    assert (found["prediction"] == "well").tolist() == positive.tolist()
    other = int((positive != (found["probability"] > 0.5)).sum())
    [note] = done.notes
    assert note.startswith(f"{other} rows predicted as another class")


def test_several_classes_have_a_probability_each(tmp_path):
    curves = Sigmoid(1.0, 0.0), Isotonic((-1.0, 1.0), (0.0, 1.0)), Sigmoid(0.0, -1.0)
    calibration = Calibrated(curves, class_weights=(1.0, 1.0, 3.0))
    model = calibrated(calibration, ("p", "q", "r"))
    model.save(tmp_path / "a.model")
    _, found = predicted(mkldist.load_model(tmp_path / "a.model"), FULL, tmp_path)
    values = found[["decision[p]", "decision[q]", "decision[r]"]].to_numpy().T
    by_hand = np.stack(
        [1 / (1 + np.exp(-values[0])), np.clip(values[1] / 2 + 0.5, 0, 1),
         np.full(len(found), 1 / (1 + np.e))], axis=1
    )  # fmt: skip
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    own = found[["probability[p]", "probability[q]", "probability[r]"]]
    np.testing.assert_allclose(own, by_hand)
    best = (by_hand * [1.0, 1.0, 3.0]).argmax(axis=1)
    assert found["prediction"].tolist() == np.array(["p", "q", "r"])[best].tolist()
    plain = replace(model, calibration=replace(calibration, class_weights=()))
    done, found = predicted(plain, FULL, tmp_path, overwrite=True)
    assert found["prediction"].tolist() == made_up_model(("p", "q", "r")).predict(FULL).tolist()
    other = int((by_hand.argmax(axis=1) != values.argmax(axis=0)).sum())
    assert [note.split()[0] for note in done.notes] == [str(other)]


def test_a_model_without_probabilities_says_how_to_have_them():
    with pytest.raises(SpecError, match=r"found a model without a calibration.*--calibrate"):
        made_up_model().predict_proba(FULL)


@pytest.mark.parametrize("by", ["views", "features", "kernels"])
@pytest.mark.parametrize("classes", [("ill", "well"), ("p", "q", "r")], ids=len)
def test_contributions_and_intercept_are_the_decision(by, classes, tmp_path):
    model = replace(made_up_model(classes), views={"pair": View((0, 1)), "size": View((2, 3))})
    _, found = predicted(model, FULL, tmp_path, explained_by=by)
    table = model.contributions(FULL, by=by)
    for c in [""] if len(classes) == 2 else [f"[{name}]" for name in classes]:
        own = [n for n in found if n.startswith(f"contribution{c}[")]
        parts = found[[*own, f"intercept{c}"]]
        np.testing.assert_allclose(parts.sum(axis=1), found[f"decision{c}"], rtol=0, atol=1e-9)
        in_python = table[c[1:-1]] if c else table
        np.testing.assert_allclose(in_python, parts, rtol=0, atol=1e-12)
        names = [name.removeprefix(f"contribution{c}[")[:-1] for name in own]
        assert [*names, "intercept"] == in_python.columns.tolist()
        assert ("polynomial(2)[all]" if by == "kernels" else "all") in names
    if len(classes) == 2 and by == "kernels":
        [function] = model.functions
        assert table.shape[1] == function.n_kernels + 1


def test_contributions_of_views_are_those_of_their_kernels():
    found = made_up_views().contributions(
        [[0.0], [7.0]], by="views",
        views={"v": [[1.0, 1.0], [np.nan, np.nan]], "k": np.ones((2, 2, 4))},
    )  # fmt: skip
    assert found.columns.tolist() == ["v", "k", "intercept"]
    # 2 [(b + 2c) - 3b], zero where a row lacks the view, and 10 [K_0 + 4 K_2]
    np.testing.assert_allclose(found, [[0.0, 50.0, 0.5], [0.0, 50.0, 0.5]])


def test_scores_are_those_of_scikit_learn(tmp_path):
    table = FULL.assign(answer=np.where(FULL["b"] > 0.2, "well", "ill"))
    labels = replace(made_up_model().labels, answers=(0.9, 0.1))
    done, found = predicted(replace(calibrated(), labels=labels), table, tmp_path, scored=True)
    y, own = table["answer"], found["prediction"]
    positive, probable = y == "well", found["probability"]
    assert done.score.values == pytest.approx(
        {
            "error": (y != own).mean(),
            "balanced_error": 1 - balanced_accuracy_score(y, own),
            "auc": roc_auc_score(positive, found["decision"]),
            "average_precision": average_precision_score(positive, found["decision"]),
            "f1": f1_score(y, own, pos_label="well"),
            "log_loss": log_loss(positive, probable),
            "brier": brier_score_loss(positive, probable),
        }
    )
    plain, share = done.score.of_constant, positive.mean()  # of the fit: nine in ten are ill
    assert (plain["error"], plain["balanced_error"]) == (pytest.approx(share), 0.5)
    assert plain["brier"] == pytest.approx(brier_score_loss(positive, np.full(len(y), 0.1)))
    matrix = [[row[c] for c in ("ill", "well")] for row in done.score.confusion.values()]
    np.testing.assert_array_equal(matrix, confusion_matrix(y, own, labels=["ill", "well"]))


def test_codes_that_are_one_number_are_scored_apart(tmp_path):
    codes = ("007", "07", "7")
    table = TABLE.assign(answer=[codes[n % 3] for n in range(len(TABLE))])
    done, _ = predicted(made_up_model(codes), table, tmp_path, scored=True)
    found = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert done.score.values["error"] == (found["prediction"] != table["answer"]).mean()


def test_real_values_are_scored_without_a_file(tmp_path):
    model = made_up_model(None)
    y = np.round(model.predict(FULL) + np.linspace(-1, 1, len(FULL)), 6)
    FULL.assign(answer=y).to_csv(tmp_path / "new.csv", index=False)
    done = write_predictions(model, tmp_path / "new.csv", None, scored=True)
    assert [*done.score.values] == ["rmse", "mae", "r2"]
    assert done.score.values["r2"] == pytest.approx(r2_score(y, model.predict(FULL)))
    of_fit = replace(model, labels=replace(model.labels, answers=(1.0, 2.0)))  # mean, median
    plain = write_predictions(of_fit, tmp_path / "new.csv", None, scored=True).score.of_constant
    assert plain["rmse"] == pytest.approx(np.sqrt(np.mean((y - 1.0) ** 2)))
    assert plain["mae"] == pytest.approx(np.abs(y - 2.0).mean())
    assert not (tmp_path / "out.csv").exists()


def test_arrays_have_their_labels_beside_them(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(x[:, 0] > 0, 1, 0)
    model = mkldist.MKLClassifier("uniform").fit(x, y).to_model()
    np.savez(tmp_path / "new.npz", x=x, y=y.astype(float))
    savemat(tmp_path / "new.mat", {"X": x, "Y": y})
    lines = [f"{label} 1:{a} 2:{b}" for label, (a, b) in zip(y, x.tolist(), strict=True)]
    (tmp_path / "new.svm").write_text("\n".join(lines))
    by_svm, by_mat = (
        write_predictions(model, tmp_path / f"new.{ending}", None, scored=True)
        for ending in ("svm", "mat")
    )
    done = write_predictions(model, tmp_path / "new.npz", None, scored=True)
    assert by_svm.score == by_mat.score == done.score
    wrong = float((model.predict(x) != y).mean())
    assert done.score.values["error"] == wrong
    assert done.score.of_constant["error"] == min(y.mean(), 1 - y.mean())


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (None, "found no labels; expected the column 'answer'"),
        ("sick", "found labels that the model does not know in 50 rows: 'sick' in 50; exp"),
        ("", "labels that the model does not know in 50 rows: '' in 50"),
    ],
)
def test_labels_that_cannot_be_scored_are_met_by_one_message(labels, said, tmp_path):
    table = FULL if labels is None else FULL.assign(answer=labels)
    table.to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(DataError, match=said):
        write_predictions(calibrated(), tmp_path / "new.csv", tmp_path / "out.csv", scored=True)
    assert not (tmp_path / "out.csv").exists()


def test_values_that_are_filled_are_counted(tmp_path):
    table = FULL.copy()
    table.loc[[1, 2], "a"] = np.nan
    table.loc[2, "b"] = np.nan
    done, _ = predicted(made_up_model(), table, tmp_path)
    [note] = done.notes
    assert note.startswith("2 of 50 rows lack values")
    assert note.endswith("'a' in 2, 'b' in 1")


def test_values_far_outside_the_fit_are_counted(tmp_path):
    ranges = np.array([[-3.0, -3.0, 0.0, 0.0], [3.0, 3.0, 1.0, 1.0]])
    model = replace(made_up_model(), ranges=ranges)
    model.save(tmp_path / "a.model")
    table = FULL.copy()
    table.loc[[1, 2], "a"] = 9.1  # more than the width of the range beyond it
    table.loc[2, "b"] = -9.1
    table.loc[3, "b"] = 8.9
    done, _ = predicted(mkldist.load_model(tmp_path / "a.model"), table, tmp_path)
    [note] = done.notes
    assert note.startswith("2 of 50 rows have values outside the range of the fit")
    assert note.endswith("'a' in 2 (-3 to 3), 'b' in 1 (-3 to 3)")
    assert predicted(model, FULL, tmp_path, overwrite=True)[0].notes == ()


@pytest.mark.parametrize("missing", ["zero", "impute"])
def test_rows_that_lack_a_view_are_counted(missing, tmp_path):
    model = replace(made_up_model(), views={"pair": View((0, 1), missing)})
    table = FULL.copy()
    table.loc[[4, 5, 6], ["a", "b"]] = np.nan
    done, found = predicted(model, table, tmp_path, rows_at_once=6)
    [note] = done.notes
    assert note.startswith("view 'pair': 3 of 50 rows lack it; its ")
    assert ("zero" in note) == (missing == "zero")
    _, _, told = note.partition("Predicted there ")
    for part, answers in zip(
        told.split("; of the others "), [found[4:7], found.drop([4, 5, 6])], strict=True
    ):
        counts = answers["prediction"].value_counts().items()
        assert {*part.split(", ")} == {f"{answer}: {n}" for answer, n in counts}


def test_rows_that_lack_a_view_of_a_file_are_counted(tmp_path):
    pd.DataFrame({"row": ["x", "y", "z"], "a": 1.0}).to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame({"row": ["z"], "b": 1.0, "c": 2.0}).to_csv(tmp_path / "v.csv", index=False)
    np.savez(tmp_path / "k.npz", grams=np.ones((2, 2, 4)), ids=["x", "y"])
    files = {"v": tmp_path / "v.csv", "k": tmp_path / "k.npz"}
    done = write_predictions(
        made_up_views(), tmp_path / "new.csv", tmp_path / "o.csv", views=files, explained_by="views"
    )
    found = pd.read_csv(tmp_path / "o.csv")
    parts = found[["contribution[v]", "contribution[k]", "intercept"]]
    np.testing.assert_allclose(parts.sum(axis=1), found["prediction"], rtol=0, atol=1e-9)
    assert (parts["contribution[v]"] == 0).tolist() == [True, True, False]
    assert (parts["contribution[k]"] == 0).tolist() == [False, False, True]
    assert [note.split(";")[0] for note in done.notes] == [
        "view 'v': 2 of 3 rows lack it",
        "view 'k': 1 of 3 rows lack it",
    ]
