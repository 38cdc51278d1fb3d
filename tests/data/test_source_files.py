"""The files of an entry: its own, those of its views, and those in folders of data."""

from pathlib import Path

from mkldist.run.saved_inputs import source_files
from mkldist.spec.datasets import DatasetSpec


def test_all_files_of_an_entry_are_found(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pathways.gmt").write_text("")
    (tmp_path / "data" / "mine.csv").write_text("")
    entry = DatasetSpec.model_validate({
        "name": "t", "file": "t.csv", "group_file": "pathways.gmt",
        "views": [{"name": "a", "file": "a.csv"}, {"name": "k", "grams": "k.npz"}],
    })  # fmt: skip
    found = source_files(entry, (tmp_path / "data",), tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in found]
    assert names == ["t.csv", "data/pathways.gmt", "a.csv", "k.npz"]
    assert source_files(DatasetSpec(name="wdbc"), (), tmp_path) == []
    named = source_files(DatasetSpec(name="mine"), (tmp_path / "data",), tmp_path)
    assert named == [tmp_path / "data" / "mine.csv"]
