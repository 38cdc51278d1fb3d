"""Snapshots of data sets: whole, written once, and independent of later ones."""

import errno
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.core.checksums import checked_json, parsed
from mkldist.core.durable import is_temporary
from mkldist.data.dataset import Dataset, GramView, Split, View
from mkldist.data.snapshot import HEADER, damaged_files, load_snapshot, save_snapshot
from mkldist.errors import OutputError, StoreError, UnreadableError
from tests.data.mistakes import mistake
from tests.variants import quick

X = np.random.default_rng(0).normal(size=(6, 3))
Y = np.array([1.0, -1, 1, -1, 1, -1])
SPLITS = (Split(np.array([0, 1, 2]), np.array([5, 3])), Split(np.array([4, 5]), np.array([0])))
DATASET = Dataset(
    "größe", X, Y, ("nein", "ja"), ("a", "b", "c"), SPLITS, {"g": (2, 0)}, origin="file t.csv"
)
GRAMS = Dataset("g", None, Y, ("a", "b"), grams=np.stack([X @ X.T, np.eye(6)]).astype(np.float32))
GAPS = Dataset(
    "m",
    np.where(X > 1, np.nan, X),
    Y,
    ("a", "b"),
    ("a", "b", "c"),
    impute="mean",
    row_groups=np.array([0, 1, 1, 2, 2, 0]),
)
VIEWS = Dataset(
    "w",
    np.where(np.arange(6)[:, None] == 2, [[0.0, np.nan, np.nan]], X),
    Y,
    ("a", "b"),
    ("a", "b", "c"),
    groups={"genes": (1, 2)},
    views={"genes": View((1, 2), "zero")},
    given={
        "k": GramView(np.eye(6)[None], np.ones(6, dtype=bool)),
        "l": GramView(np.diag([1.0, 1, 1, 1, 1, 0])[None], np.arange(6) < 5, "zero"),
        "m": GramView(2.0 * np.eye(6)[None], np.ones(6, dtype=bool), made_of="graphs"),
    },
)
VALUES = Dataset("v", X, np.linspace(0, 300, 6), None, ("a", "b", "c"))


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("dataset", [DATASET, GRAMS, GAPS, VIEWS, VALUES])
def test_all_comes_back(tmp_path, dataset, mmap):
    save_snapshot(tmp_path / "s", dataset, SPLITS)
    found, splits = load_snapshot(tmp_path / "s", mmap=mmap)
    assert found.fingerprint == dataset.fingerprint
    for name in ("name", "classes", "task", "feature_names", "groups", "views", "origin", "impute"):
        assert getattr(found, name) == getattr(dataset, name)
    assert [s.fingerprint for s in splits] == [s.fingerprint for s in SPLITS]
    for name, one in dataset.given.items():
        np.testing.assert_array_equal(found.given[name].present, one.present)
        assert found.given[name].missing == one.missing
        assert isinstance(found.given[name].grams, np.memmap) == mmap
    large = found.x if dataset.x is not None else found.grams
    assert isinstance(large, np.memmap) == mmap


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4))
def test_splits_of_any_size(tmp_path_factory, sizes):
    path = tmp_path_factory.mktemp("snapshot")
    splits = [Split(np.arange(a), np.arange(a, a + b)) for a, b in sizes]
    save_snapshot(path, DATASET, splits)
    assert [s.fingerprint for s in load_snapshot(path)[1]] == [s.fingerprint for s in splits]


def test_nothing_is_written_twice(tmp_path):
    save_snapshot(tmp_path, DATASET, SPLITS)
    before = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    save_snapshot(tmp_path, DATASET, SPLITS)
    assert {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before


def test_a_reader_of_the_old_snapshot_is_not_disturbed(tmp_path):
    save_snapshot(tmp_path, DATASET, SPLITS)
    old, _ = load_snapshot(tmp_path, mmap=True)
    changed = Dataset("n", X + 1, Y, ("a", "b"), ("a", "b", "c"))
    save_snapshot(tmp_path, changed, SPLITS[:1])
    np.testing.assert_array_equal(old.x, X)
    found, splits = load_snapshot(tmp_path)
    np.testing.assert_array_equal(found.x, X + 1)
    assert len(splits) == 1
    assert len(list(tmp_path.glob("x-*.npy"))) == 1
    assert not [path for path in tmp_path.iterdir() if is_temporary(path.name)]


def test_a_writer_that_dies_leaves_the_old_snapshot(tmp_path, monkeypatch):
    save_snapshot(tmp_path, DATASET, SPLITS)

    def die(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", die)
        with pytest.raises(OutputError, match="no space left on the device"):
            save_snapshot(tmp_path, Dataset("n", X + 1, Y, ("a", "b")), SPLITS)
    assert load_snapshot(tmp_path)[0].fingerprint == DATASET.fingerprint
    assert not [path for path in tmp_path.iterdir() if is_temporary(path.name)]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"a file where|part of the path"):
        save_snapshot(tmp_path / "file" / "s", DATASET, SPLITS)


def test_damage_is_found(tmp_path):
    with mistake("missing, cut short or damaged", error=StoreError):
        load_snapshot(tmp_path / "absent")
    save_snapshot(tmp_path, DATASET, SPLITS)
    array = next(tmp_path.glob("x-*.npy"))
    header = tmp_path / HEADER
    whole, text = array.read_bytes(), header.read_bytes()
    array.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with mistake("does not match its checksum", error=StoreError):
        load_snapshot(tmp_path)
    array.write_bytes(whole[:-8])
    for mmap in (True, False):
        with mistake("damaged", error=StoreError):
            load_snapshot(tmp_path, mmap=mmap)
    array.unlink()
    with mistake("No such file", error=StoreError):
        load_snapshot(tmp_path)
    array.write_bytes(whole)
    load_snapshot(tmp_path)
    for damaged in (b"{", b"[]", b"{}", text.replace(b'"files"', b'"file"')):
        header.write_bytes(damaged)
        with mistake("damaged", error=StoreError):
            load_snapshot(tmp_path)
    for version in (0, 4):
        header.write_bytes(checked_json({**json.loads(text), "version": version}))
        with mistake(f"version {version}", error=StoreError):
            load_snapshot(tmp_path)
    header.write_bytes(
        checked_json({**json.loads(text), "sizes": {"train": [1, 1], "test": [], "unlabelled": []}})
    )
    with mistake("indices for splits", error=StoreError):
        load_snapshot(tmp_path)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Cannot allocate memory"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (MemoryError(), "no memory"),
    ],
)
def test_a_read_that_fails_is_not_called_damage(tmp_path, monkeypatch, error, said):
    def refuse(*_: object, **__: object) -> None:
        raise error

    save_snapshot(tmp_path, DATASET, SPLITS)
    monkeypatch.setattr(np, "load", refuse)
    with mistake("a read that failed", said, error=UnreadableError):
        load_snapshot(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("mmap", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dataset", quick([DATASET, GRAMS, GAPS], 2))
def test_a_flipped_bit_anywhere_is_found_and_mended(tmp_path, dataset, mmap):
    """A snapshot with a flipped bit is refused or reads as before, and a writer mends it."""
    save_snapshot(tmp_path, dataset, SPLITS)
    rng = np.random.default_rng(5)
    for file in sorted(tmp_path.iterdir()):
        whole = file.read_bytes()
        for place in rng.choice(8 * len(whole), size=min(20, 8 * len(whole)), replace=False):
            flipped = bytearray(whole)
            flipped[place // 8] ^= 1 << place % 8
            file.write_bytes(flipped)
            try:
                found, splits = load_snapshot(tmp_path, mmap=mmap)
            except StoreError:
                assert damaged_files(tmp_path) == [file]
            else:  # spaces that fill up the header of an array
                assert file.suffix == ".npy"
                assert found.fingerprint == dataset.fingerprint
                assert [s.fingerprint for s in splits] == [s.fingerprint for s in SPLITS]
            save_snapshot(tmp_path, dataset, SPLITS)
            assert load_snapshot(tmp_path)[0].fingerprint == dataset.fingerprint
            file.write_bytes(whole)


def test_a_snapshot_without_a_checksum_is_refused(tmp_path):
    save_snapshot(tmp_path, DATASET, SPLITS)
    header = parsed((tmp_path / HEADER).read_bytes())
    (tmp_path / HEADER).write_text(json.dumps(header))
    with mistake("damaged", error=StoreError):
        load_snapshot(tmp_path)
