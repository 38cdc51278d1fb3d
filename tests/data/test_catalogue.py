"""Data sets by name or source: files, and those of scikit-learn."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer

from mkldist.data.catalogue import (
    DESCRIPTIONS,
    list_datasets,
    load_bundled,
    load_dataset,
)
from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
from tests.data.mistakes import mistake

TABLE = "a,b,label\n1,2,x\n2,1,y\n"


def load(*data_dirs: Path, base: Path = Path(), seed: int = 0, **spec: Any) -> Dataset:
    return load_dataset(DatasetSpec(**spec), data_dirs, base, seed)


def test_a_data_directory_comes_before_what_is_built_in(tmp_path):
    (tmp_path / "wdbc.csv").write_text(TABLE)
    assert load(tmp_path, name="wdbc").n_points == 2
    assert load(name="wdbc").n_points == 569
    assert load(tmp_path, name="two_moons").n_points == 200


def test_the_first_directory_wins(tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    for folder, rows in ((first, ""), (second, "3,3,x\n")):
        folder.mkdir()
        (folder / "t.csv").write_text(TABLE + rows)
    assert load(first, second, name="t").n_points == 2
    assert load(second, first, name="t").n_points == 3


def test_two_files_of_one_name(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    np.savez(tmp_path / "t.npz", x=np.eye(2), y=[0, 1])
    with mistake("t.csv and t.npz", 'file = "t.csv"'):
        load(tmp_path, name="t")
    assert load(tmp_path, name="t", file="t.npz").classes == ("0", "1")


def test_a_source_lets_one_data_set_serve_several_tasks():
    seven = load(name="one-seven", source="digits", classes=("1", "7"))
    eight = load(name="three-eight", source="digits", classes=("3", "8"))
    assert (seven.name, eight.name) == ("one-seven", "three-eight")
    assert seven.fingerprint != eight.fingerprint
    small = load(name="small", source="two_moons", options={"n": 50})
    assert (small.name, small.n_points) == ("small", 50)


def test_files_are_found_from_the_sweep_then_in_data_directories(tmp_path):
    base, data = tmp_path / "sweeps", tmp_path / "data"
    for folder, text in ((base, TABLE), (data, TABLE + "3,3,x\n")):
        folder.mkdir()
        (folder / "t.csv").write_text(text)
    assert load(data, base=base, name="u", file="t.csv").n_points == 2
    (base / "t.csv").unlink()
    assert load(data, base=base, name="u", file="t.csv").n_points == 3
    assert load(base=base, name="u", file=str(data / "t.csv")).n_points == 3
    with mistake("data set 'u'", str(base / "absent.csv"), "no such file"):
        load(data, base=base, name="u", file="absent.csv")
    with mistake("a directory"):
        load(base=tmp_path, name="u", file="data")


def test_gram_matrices_and_labels_are_found(tmp_path):
    np.save(tmp_path / "g.npy", np.stack([np.eye(3), np.ones((3, 3))]))
    (tmp_path / "y.txt").write_text("a\nb\na\n")
    found = load(base=tmp_path, name="g", grams="g.npy", labels="y.txt")
    assert found.grams is not None
    assert found.grams.shape == (2, 3, 3)
    assert found.y.tolist() == [-1, 1, -1]
    with mistake("label = 0", "array of labels"):
        load(base=tmp_path, name="g", grams="g.npy", labels="y.txt", label=0)


def test_seeds_of_synthetic_data():
    one, other = load(name="two_moons", seed=1), load(name="two_moons", seed=2)
    assert one.fingerprint != other.fingerprint
    assert load(name="two_moons", seed=1).fingerprint == one.fingerprint
    assert load(name="m", source="two_moons", seed=2, options={"seed": 1}).fingerprint == (
        one.fingerprint
    )


def test_options_choose_the_generator_even_if_a_file_has_its_name(tmp_path):
    (tmp_path / "ringnorm.csv").write_text(TABLE)
    assert load(tmp_path, name="ringnorm").n_points == 2
    assert load(tmp_path, name="ringnorm", options={"n": 30}).n_points == 30


def test_unknown_names(tmp_path):
    (tmp_path / "ionosphere.csv").write_text(TABLE)
    with mistake("'ionosfere'", str(tmp_path), "Did you mean 'ionosphere'?"):
        load(tmp_path, name="ionosfere")
    with mistake("a data file in a folder named by --data-dir", "Did you mean 'breast_cancer'?"):
        load(name="breastcancer")
    with mistake("'qqq'", "mkldist list datasets"):
        load(name="qqq")
    with mistake("data set 'mine'", "'wdcb'", "Did you mean 'wdbc'?"):
        load(name="mine", source="wdcb")


def test_options_that_do_not_belong(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    with mistake("no synthetic data set 'wdbc'", "two_moons"):
        load(name="wdbc", options={"n": 5})
    with mistake("options", "synthetic"):
        load(base=tmp_path, name="t", file="t.csv", options={"n": 5})
    with mistake("label = 'x'", "its label is known"):
        load(name="wdbc", label="x")
    with mistake("labels without grams", "Set label"):
        load(base=tmp_path, name="t", file="t.csv", labels="x")


def test_data_directories_must_be_there(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    with mistake(str(tmp_path / "absent"), "nothing there", error=SpecError):
        load(tmp_path / "absent", name="wdbc")
    with mistake("a file", "a folder", error=SpecError):
        load(tmp_path / "t.csv", name="wdbc")


def test_the_list_opens_no_file(tmp_path):
    (tmp_path / "broken.csv.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "wine.parquet").touch()
    (tmp_path / "notes.md").touch()
    (tmp_path / "folder.csv").mkdir()
    entries = {entry.name: entry for entry in list_datasets([tmp_path])}
    assert (entries["broken"].kind, entries["wine"].kind) == ("file", "file")
    assert entries["iris"].kind == "bundled"
    assert entries["waveform"].kind == "synthetic"
    assert not entries.keys() & {"notes", "folder"}
    assert all(entry.description for entry in entries.values())
    assert len(entries) == len(list_datasets([tmp_path, tmp_path]))


@pytest.mark.parametrize(
    "name", [e.name for e in list_datasets([]) if e.name not in ("iris", "wine", "digits")]
)
def test_every_data_set_of_the_list_loads_by_its_name(name):
    options = {"positive": "1"} if name == "waveform" else {}
    found = load(name=name, **options)
    assert found.x is not None
    assert found.x.dtype == np.float64
    if name in ("diabetes", "friedman1"):
        assert found.task == "regression"
        assert len(np.unique(found.y)) > 100
    else:
        assert set(found.y) == {-1.0, 1.0}
    assert len(found.feature_names) == found.n_features


Y = np.array([1.5, -2.0, 300.0, 0.25])


@pytest.mark.parametrize("kind", ["csv", "tsv", "npz", "svm", "parquet", "grams", "grams.npy"])
def test_every_reader_takes_real_values(tmp_path, kind):
    x = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0], [0.5, 1.0]])
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "target": Y})
    source: dict[str, Any] = {"file": f"t.{kind}"}
    path = tmp_path / f"t.{kind}"
    if kind in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="," if kind == "csv" else "\t")
    elif kind == "npz":
        np.savez(path, x=x, y=Y)
    elif kind == "svm":
        dump_svmlight_file(x, Y, str(path), zero_based=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "grams":
        np.savez(tmp_path / "t.npz", grams=(x @ x.T)[None], y=Y)
        source = {"grams": "t.npz"}
    else:
        np.save(tmp_path / "t.npy", (x @ x.T)[None])
        (tmp_path / "y.txt").write_text("\n".join(map(repr, Y.tolist())))
        source = {"grams": "t.npy", "labels": "y.txt"}
    found = load(base=tmp_path, name="t", task="regression", **source)
    assert found.task == "regression"
    np.testing.assert_array_equal(found.y, Y)
    with mistake("4 classes", 'task = "regression"'):
        load(base=tmp_path, name="t", **source)


@pytest.mark.parametrize(
    ("name", "shape", "n_classes", "n_partitions"),
    [
        ("usps_train", (7291, 256), 10, 0),
        ("uspst_splits", (2007, 256), 10, 10),
        ("wine", (178, 13), 3, 0),
        ("text", (1946, 7511), 2, 10),
    ],
)
def test_data_of_few_labels(name, shape, n_classes, n_partitions, data_dir):
    if data_dir is None or not list(data_dir.glob(f"{name}.*")):
        pytest.skip(f"no data set {name} here; see --data-dir")
    found = load_dataset(DatasetSpec(name=name, drop_constant=False), [data_dir], Path(), 0)
    assert found.x is not None
    assert found.x.shape == shape
    assert found.classes is not None
    assert len(found.classes) == n_classes
    assert len(found.predefined) == n_partitions
    for split in found.predefined:
        assert len(split.train) == 50
        assert len(split.train) + len(split.test) == len(found.y)


def test_a_table_is_divided_by_its_columns(tmp_path):
    rows = [
        f"{i},{'abc'[i % 3]},p{i // 4},{'train' if i < 8 else 'test'},2021-03-{30 - i}"
        for i in range(12)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["f,class,patient,part,day", *rows]) + "\n")
    spec = DatasetSpec(name="t", file="t.csv", classes=("a", "b"), ignore=("part", "day"))
    found = load_dataset(spec, [], tmp_path, 0, SplitsSpec(groups="patient"))
    assert found.feature_names == ("f",)
    assert found.row_groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    plain = load_dataset(
        spec.model_copy(update={"ignore": ("part", "patient", "day")}), [], tmp_path, 0
    )
    assert plain.row_groups is None
    assert plain.fingerprint != found.fingerprint
    spec = spec.model_copy(update={"ignore": ("patient", "part")})
    late = load_dataset(spec, [], tmp_path, 0, SplitsSpec(kind="time", order="day"))
    np.testing.assert_array_equal(late.row_order, np.arange(8)[::-1])
    assert late.feature_names == ("f",)
    spec = spec.model_copy(update={"ignore": ("patient", "day")})
    with mistake("column 'part'", "'train' in line 2", "dates such as"):
        load_dataset(spec, [], tmp_path, 0, SplitsSpec(kind="time", order="part"))
    [split] = load_dataset(
        spec, [], tmp_path, 0, SplitsSpec(kind="predefined", column="part")
    ).predefined
    assert found.x[split.train, 0].tolist() == [0, 1, 3, 4, 6, 7]
    assert found.x[split.test, 0].tolist() == [9, 10]


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptions_say_what_is_there(name):
    raw = load_bundled(name)
    assert raw.x is not None
    assert np.isfinite(raw.x).all()
    text = DESCRIPTIONS["breast_cancer" if name == "wdbc" else name]
    assert text.startswith(f"{len(raw.x)} points, {raw.x.shape[1]} features; ")
    if raw.task == "regression":
        assert "regression" in text
        return
    assert name in ("digits", "wdbc") or set(np.unique(raw.labels)) <= {
        word.strip(" :(;,") for word in text.split()
    }


def test_malignant_is_positive_under_both_names():
    bunch = load_breast_cancer()
    for name in ("breast_cancer", "wdbc"):
        dataset = load_dataset(DatasetSpec(name=name), [], Path(), 0)
        np.testing.assert_array_equal(dataset.x, bunch.data)
        np.testing.assert_array_equal(dataset.y, 1 - 2 * bunch.target)
        assert dataset.classes == ("benign", "malignant")
        assert dataset.feature_names[0] == "mean radius"
        assert "load_breast_cancer" in dataset.origin
