"""How features were made of columns: kept through assembling and snapshots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import SourceColumns
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.spec.datasets import DatasetSpec

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


def test_columns_survive_json_and_snapshots(dataset, tmp_path):
    assert SourceColumns.from_dict(json.loads(json.dumps(dataset.columns.as_dict()))) == (
        dataset.columns
    )
    save_snapshot(tmp_path / "snapshot", dataset, ())
    again, _ = load_snapshot(tmp_path / "snapshot")
    assert again.columns == dataset.columns


def test_features_of_other_sources_are_columns():
    bundled = load_dataset(DatasetSpec(name="wdbc"), (), Path(), 0)
    assert bundled.columns == SourceColumns(bundled.feature_names)
    assert bundled.columns.required == bundled.feature_names
