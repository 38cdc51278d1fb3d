"""Data sets, their source columns and texts."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mkldist.core.checksums import array_id
from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import Dataset, SourceColumns, Split, TextColumns
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.data.validate import summary_lines
from mkldist.errors import DataError
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from tests.data.mistakes import mistake

X = np.arange(6.0).reshape(3, 2)
TWO = Dataset("t", X, np.array([1.0, -1.0, 1.0]), ("no", "yes"), ("a", "b"))
THREE = Dataset("t", X, np.array([2.0, 0.0, 1.0]), ("a", "b", "c"), ("a", "b"))
REAL = Dataset("t", X, np.array([2.0, 0.0, 1.0]), None, ("a", "b"))


def test_more_than_two_classes_are_multiclass():
    assert (TWO.multiclass, THREE.multiclass, REAL.multiclass) == ((), ("a", "b", "c"), ())
    assert (TWO.task, REAL.task) == ("classification", "regression")


def test_the_fingerprint_depends_on_content_and_task_but_not_on_names():
    renamed = dataclasses.replace(TWO, name="u", classes=("-", "+"), origin="elsewhere")
    assert renamed.fingerprint == TWO.fingerprint
    flipped = dataclasses.replace(TWO, y=-TWO.y)
    assert len({d.fingerprint for d in (TWO, THREE, REAL, flipped)}) == 4


def test_a_split_without_unlabelled_rows_is_known_by_its_two_parts_as_ever():
    train, test = np.array([3, 1], np.intp), np.array([0], np.intp)
    plain, few = Split(train, test), Split(train, test, np.array([2], np.intp))
    # What runs of supervised sweeps were recorded under must not change.
    assert plain.fingerprint == Split(train, test, np.zeros(0, np.intp)).fingerprint
    assert plain.fingerprint == array_id(train, test)
    assert plain.known is train
    assert few.known.tolist() == [1, 2, 3]
    assert few.fingerprint not in (plain.fingerprint, Split(train, few.unlabelled).fingerprint)


TABLE = "id,a,flat,size,note,y\n" + "".join(
    f"r{i},{i},1,{'SML'[i % 3] if i % 4 else ''},n,{'ab'[i % 2]}\n" for i in range(12)
)


@pytest.fixture
def dataset(tmp_path: Path):
    (tmp_path / "t.csv").write_text(TABLE)
    spec = DatasetSpec(name="t", file="t.csv", id="id", ignore=("note",), categorical=("size",))
    return load_dataset(spec, (), tmp_path, 0)


def test_a_table_says_of_which_columns_its_features_are_made(dataset):
    columns = dataset.columns
    assert columns == SourceColumns(
        numbers=("a", "flat"),
        categories={"size": ("L", "M", "S", "?")},
        label="y",
        others=("id", "note"),
        id="id",
        kept=(0, 2, 3, 4, 5),
    )
    assert columns.required == ("a", "size")
    assert columns.names == ("a", "flat", "size")
    every = ("a", "flat", *(f"size={one}" for one in columns.categories["size"]))
    assert dataset.feature_names == tuple(every[place] for place in columns.kept)


def test_columns_survive_snapshots(dataset, tmp_path):
    save_snapshot(tmp_path / "snapshot", dataset, ())
    again, _ = load_snapshot(tmp_path / "snapshot")
    assert again.columns == dataset.columns


def test_features_of_other_sources_are_columns():
    bundled = load_dataset(DatasetSpec(name="wdbc"), (), Path(), 0)
    assert bundled.columns == SourceColumns(bundled.feature_names)
    assert bundled.columns.required == bundled.feature_names


TEXTS_TABLE = "id,age,dna,label\np1,50,acgt,a\np2,60,NA,b\np3,70,gé,a\np4,80,tt,b\n"
DNA = ["acgt", "NA", "gé", "tt"]
FOLDS = "id,rna,chain\np4,uu,B\np1,u,\np3,ug,AB\n"
RNA = {"name": "folds", "file": "folds.csv", "texts": ["rna", "chain"], "missing": "zero"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(TEXTS_TABLE)
    (tmp_path / "folds.csv").write_text(FOLDS)
    return tmp_path


def load(folder: Path, *views: dict[str, Any], **entry: Any) -> Dataset:
    entry = {"name": "t", "file": "t.csv", "id": "id", "texts": ["dna"], **entry}
    return load_dataset(DatasetSpec.model_validate({**entry, "views": views}), (), folder, 0)


def texts_of(dataset: Dataset, column: int = 0) -> list[str]:
    assert dataset.texts is not None
    return list(dataset.texts.values[:, column])


def said(dataset: Dataset) -> str:
    return "\n".join(summary_lines(dataset, PreprocessingSpec()))


def test_a_column_of_a_table_is_kept_as_texts_and_is_no_feature(folder):
    found = load(folder)
    assert found.feature_names == ("age",)
    assert texts_of(found) == DNA
    assert "  texts:     'dna', of 2 to 4 letters\n" in said(found) + "\n"
    assert found.columns is not None
    assert found.columns.others == ("id", "dna")


def test_parquet_holds_texts_too(folder):
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(folder / "t.csv", keep_default_na=False)
    frame.to_parquet(folder / "t.parquet")
    found = load(folder, file="t.parquet", id="id")
    assert texts_of(found) == DNA
    assert found.n_features == 1


def test_texts_of_a_view_are_joined_by_the_ids(folder):
    found = load(folder, RNA)
    assert found.texts is not None
    assert found.texts.names == ("dna", "folds.rna", "folds.chain")
    assert texts_of(found, 1) == ["u", "", "ug", "uu"]
    assert texts_of(found, 2) == ["", "", "AB", "B"]
    assert found.texts.groups == {"folds": (1, 2)}
    assert found.views == {}
    line = "'folds.chain', of 1 to 2 letters; 2 of 4 points have none: its kernels are zero"
    assert line in said(found)


def test_a_view_of_the_own_table_says_what_holds_without_a_text(folder):
    (folder / "t.csv").write_text(TEXTS_TABLE.replace("NA", ""))
    view = {"name": "v", "columns": ["dna", "age"], "missing": "zero"}
    found = load(folder, view)
    assert found.texts is not None
    assert found.texts.absent.ravel().tolist() == [False, True, False, False]
    assert found.views["v"].columns == found.texts.views["v"].columns == (0,)
    with mistake("texts: found no text in column 'dna' for 1 of 4 points (p2); expected a text"):
        load(folder)
    with mistake("found no text in column 'dna' for 1 of 4 points", 'Set missing = "zero" for'):
        load(folder, {**view, "missing": "impute"})
    (folder / "t.csv").write_text("id,age,dna,label\np1,5,,a\np2,6,,b\np3,5,,a\n")
    with mistake("found no text at all in column 'dna'"):
        load(folder, view)


def test_rows_of_other_classes_are_left_out(folder):
    (folder / "t.csv").write_text(TEXTS_TABLE + "p5,3,xyz,c\n")
    assert texts_of(load(folder, classes=["a", "b"])) == DNA


def test_texts_are_part_of_the_content(folder):
    before = load(folder).fingerprint
    assert load(folder).fingerprint == before
    (folder / "t.csv").write_text(TEXTS_TABLE.replace("acgt", "acga"))
    assert load(folder).fingerprint != before
    one, other = TextColumns.of({"d": ["ab", "c"]}), TextColumns.of({"d": ["a", "bc"]})
    assert one is not None
    assert other is not None
    assert one.arrays[0].tobytes() == other.arrays[0].tobytes()
    assert one.arrays[1].tolist() != other.arrays[1].tolist()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"texts": ["dns"]}, "texts: found no column 'dns'; expected names of columns. Did you"),
        ({"texts": ["dna"], "ignore": ["dna"]}, "found column 'dna' in ignore and in texts"),
        ({"texts": ["label"]}, "found no label, and no column that is called label"),
        ({"texts": ["label"], "label": "label"}, "'label' as the label and in another"),
        ({"file": "t.svm", "id": None}, "found texts, but no table of columns"),
    ],
)
def test_mistakes_are_told(folder, entry, message):
    (folder / "t.svm").write_text("1 1:1\n-1 1:2\n")
    with pytest.raises(DataError, match=message):
        load(folder, **entry)


def test_a_column_is_described_by_its_lengths_and_gaps():
    columns = TextColumns.of({"dna": ["", "a", "acgt"]})
    assert columns is not None
    gaps = "1 of 3 points have none: its kernels are zero there"
    assert list(columns.lines()) == [f"'dna', of 1 to 4 letters; {gaps}"]
