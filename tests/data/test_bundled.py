"""Data sets that come with scikit-learn: their descriptions, and their positive class."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from mkldist.data import catalogue as bundled
from mkldist.data.catalogue import DESCRIPTIONS, load_bundled, load_dataset
from mkldist.spec.datasets import DatasetSpec


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for copies."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    return tmp_path / "datasets"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with every data set, as scikit-learn loads them all."""
    found: list[str] = []
    load = bundled._loaded
    monkeypatch.setattr(bundled, "CANCER_HEAD", "of no file")

    def counted(loader: str, options: dict[str, Any]) -> dict[str, Any]:
        found.append(loader)
        return load(loader, options)

    monkeypatch.setattr(bundled, "_loaded", counted)
    return found


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_copy_is_the_data_set(name: str, loads: list[str]) -> None:
    first, second = load_bundled(name), load_bundled(name)
    assert len(loads) == 1
    assert (first.feature_names, first.origin) == (second.feature_names, second.origin)
    assert first.task == second.task
    for mine, other in ((first.x, second.x), (first.labels, second.labels)):
        np.testing.assert_array_equal(mine, other, strict=True)


@pytest.mark.parametrize("name", ["breast_cancer", "wdbc"])
def test_the_file_of_breast_cancer_is_what_scikit_learn_loads(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(bundled, "_loaded", None)
        found = load_bundled(name)
    for copy in folder.glob("*.npz"):
        copy.unlink()
    monkeypatch.setattr(bundled, "CANCER_HEAD", "of no file")
    loaded = load_bundled(name)
    np.testing.assert_array_equal(found.x, loaded.x, strict=True)
    np.testing.assert_array_equal(found.labels, loaded.labels, strict=True)
    assert (found.feature_names, found.origin) == (loaded.feature_names, loaded.origin)


@pytest.mark.parametrize("file", [None, "", "569,30,malignant,benign\n1.0,2.0,0\n", "1,2,a,b\nx"])
def test_another_file_of_breast_cancer_is_left_to_scikit_learn(
    file: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = SimpleNamespace(locate_file=lambda path: tmp_path / Path(path).name)
    monkeypatch.setattr(bundled.metadata, "distribution", lambda name: elsewhere)
    if file is not None:
        (tmp_path / "breast_cancer.csv").write_text(file)
    assert bundled._cancer_file() is None


def test_two_names_of_a_data_set_share_a_copy(loads: list[str]) -> None:
    load_bundled("wdbc")
    load_bundled("breast_cancer")
    assert loads == ["load_breast_cancer"]


def test_a_damaged_copy_is_made_again(folder: Path, loads: list[str]) -> None:
    good = load_bundled("iris")
    [copy] = folder.glob("*.npz")
    whole = copy.read_bytes()
    half, flipped = len(whole) // 2, bytearray(whole)
    flipped[half] ^= 0xFF
    for content in (b"", whole[:half], bytes(flipped)):
        copy.write_bytes(content)
        np.testing.assert_array_equal(load_bundled("iris").x, good.x)
    assert len(loads) == 4


def test_a_folder_that_takes_no_copies_does_no_harm(folder: Path, loads: list[str]) -> None:
    folder.write_text("a file")
    assert len(load_bundled("iris").labels) == len(load_bundled("iris").labels) == 150
    assert len(loads) == 2


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptions_say_what_is_there(name: str) -> None:
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


def test_malignant_is_positive_under_both_names() -> None:
    bunch = load_breast_cancer()
    for name in ("breast_cancer", "wdbc"):
        dataset = load_dataset(DatasetSpec(name=name), [], Path(), 0)
        np.testing.assert_array_equal(dataset.x, bunch.data)
        np.testing.assert_array_equal(dataset.y, 1 - 2 * bunch.target)
        assert dataset.classes == ("benign", "malignant")
        assert dataset.feature_names[0] == "mean radius"
        assert "load_breast_cancer" in dataset.origin
