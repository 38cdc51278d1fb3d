"""Graph Laplacians on disk: built once, checked, and computed again after damage."""

from __future__ import annotations

import itertools
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from mkldist.bank.byte_store import LAPLACIANS, open_bytes
from mkldist.bank.store import list_banks
from mkldist.errors import DataError
from mkldist.kernels.graph import graph_laplacian
from mkldist.run import bank_refs as laplacian_cache
from mkldist.run.bank_refs import (
    cached_laplacian,
    checked_laplacians,
    laplacian_id,
    remove_damaged_laplacians,
)
from mkldist.spec.datasets import GraphSpec

SPEC = GraphSpec(neighbours=3, weights="heat")


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(40, 3))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[GraphSpec]:
    """Every Laplacian that was computed."""
    calls: list[GraphSpec] = []

    def counting(points: Any, spec: GraphSpec) -> sparse.csr_array:
        calls.append(spec)
        return graph_laplacian(points, spec)

    monkeypatch.setattr(laplacian_cache, "graph_laplacian", counting)
    return calls


def only_file(folder: Path) -> Path:
    (file,) = (folder / LAPLACIANS).glob("*.npz")
    return file


def same(found: sparse.csr_array, x: Any, spec: GraphSpec = SPEC) -> None:
    expected = graph_laplacian(x, spec)
    assert isinstance(found, sparse.csr_array)
    assert_array_equal(found.toarray(), expected.toarray())
    assert found.nnz == expected.nnz


def test_built_once(x: np.ndarray, tmp_path: Path, computed: list[GraphSpec]) -> None:
    for points in (x, x.copy(), np.asfortranarray(x), x.tolist()):
        same(cached_laplacian(points, SPEC, tmp_path / "new" / "folder"), x)
    assert len(computed) == 1
    assert list((tmp_path / "new" / "folder" / ".partial").iterdir()) == []


def test_their_folder_among_banks_is_none(x: np.ndarray, tmp_path: Path) -> None:
    cached_laplacian(x, SPEC, tmp_path)
    (tmp_path / "bank").mkdir()
    assert list_banks(tmp_path) == ["bank"]


def test_sparse_points_by_any_representation(tmp_path: Path, computed: list[GraphSpec]) -> None:
    rng = np.random.default_rng(1)
    x = sparse.csr_array(rng.normal(size=(30, 50)) * (rng.uniform(size=(30, 50)) < 0.2))
    entries = x.tocoo()
    halves = (np.tile(entries.data / 2, 2), (np.tile(entries.row, 2), np.tile(entries.col, 2)))
    twice = sparse.coo_array(halves, shape=x.shape)
    for points in (x, sparse.csc_matrix(x), sparse.coo_array(x), twice):
        same(cached_laplacian(points, SPEC, tmp_path), x)
    assert len(computed) == 1


def test_whatever_matters_has_a_file_of_its_own(x: np.ndarray, tmp_path: Path) -> None:
    specs = [
        SPEC,
        SPEC.model_copy(update={"distance": "cosine"}),
        SPEC.model_copy(update={"neighbours": 4}),
        SPEC.model_copy(update={"weights": "binary"}),
        SPEC.model_copy(update={"width": 0.5}),
        SPEC.model_copy(update={"laplacian": "normalised"}),
        SPEC.model_copy(update={"power": 2}),
        GraphSpec(kind="epsilon", epsilon=0.5),
        GraphSpec(kind="epsilon", epsilon=0.6),
    ]
    other = x.copy()
    other[0, 0] = np.nextafter(other[0, 0], 1)
    pairs = list(itertools.product((x, other, x[:-1], sparse.csr_array(x)), specs))
    for points, spec in pairs:
        same(cached_laplacian(points, spec, tmp_path), points, spec)
    assert len(list((tmp_path / LAPLACIANS).glob("*.npz"))) == len(pairs)
    assert len({laplacian_id(points, spec) for points, spec in pairs}) == len(pairs)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "footer", "other"])
def test_damaged_files_are_computed_again(
    x: np.ndarray, tmp_path: Path, computed: list[GraphSpec], damage: str
) -> None:
    cached_laplacian(x, SPEC, tmp_path)
    file = only_file(tmp_path)
    sound = file.read_bytes()
    if damage == "other":
        other = cached_laplacian(x[:20], SPEC, tmp_path / "other")
        assert other.shape == (20, 20)
        file.write_bytes(only_file(tmp_path / "other").read_bytes())
    else:
        middle = len(sound) // 2
        bad = {
            "flip": sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :],
            "cut": sound[:middle],
            "empty": b"",
            "footer": sound[:-1] + bytes([sound[-1] ^ 128]),
        }
        file.write_bytes(bad[damage])
    before = len(computed)
    same(cached_laplacian(x, SPEC, tmp_path), x)
    same(cached_laplacian(x, SPEC, tmp_path), x)
    assert len(computed) == before + 1
    assert file.read_bytes() == sound


@pytest.mark.parametrize("place", ["memory://laplacians-to-check", "here"])
def test_damaged_files_are_named_and_removed(x: np.ndarray, tmp_path: Path, place: str) -> None:
    folder = place if "://" in place else str(tmp_path / place)
    assert checked_laplacians(folder) == {}
    for points in (x, x[:20]):
        cached_laplacian(points, SPEC, folder)
    names = [f"{laplacian_id(points, SPEC)}.npz" for points in (x, x[:20])]
    assert checked_laplacians(folder) == dict.fromkeys(names, True)
    blobs = open_bytes(folder, LAPLACIANS)
    content = blobs.get(names[0])
    assert content is not None
    blobs.put(names[0], [content[:100], bytes([content[100] ^ 1]), content[101:]])
    assert checked_laplacians(folder) == {names[0]: False, names[1]: True}
    assert remove_damaged_laplacians(folder) == 1
    assert checked_laplacians(folder) == {names[1]: True}
    assert remove_damaged_laplacians(folder) == 0


def test_a_folder_that_cannot_be_written_costs_the_computation(
    x: np.ndarray, tmp_path: Path, computed: list[GraphSpec]
) -> None:
    (tmp_path / "file").write_text("in the way")
    for _ in range(2):
        same(cached_laplacian(x, SPEC, tmp_path / "file"), x)
    assert len(computed) == 2


def test_a_folder_in_the_place_of_the_file(x: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / LAPLACIANS / f"{laplacian_id(x, SPEC)}.npz").mkdir(parents=True)
    same(cached_laplacian(x, SPEC, tmp_path), x)


def test_behind_a_url(x: np.ndarray, computed: list[GraphSpec]) -> None:
    for _ in range(2):
        same(cached_laplacian(x, SPEC, "memory://laplacian-cache-test"), x)
    assert len(computed) == 1


def test_what_cannot_be_computed_leaves_nothing(x: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        cached_laplacian(x, GraphSpec(neighbours=40), tmp_path)
    with pytest.raises(DataError):
        cached_laplacian([[np.nan]], SPEC, tmp_path / "nan")
    assert not list(tmp_path.rglob("*.npz"))


def _build(folder: str, log: str) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))

    def logging(points: Any, spec: GraphSpec) -> sparse.csr_array:
        with Path(log).open("a") as file:
            file.write("computed\n")
        return graph_laplacian(points, spec)

    laplacian_cache.graph_laplacian = logging  # type: ignore[assignment]
    same(cached_laplacian(x, SPEC, folder), x)


@pytest.mark.slow
def test_of_many_processes_one_computes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    log = tmp_path / "log"
    processes = [
        context.Process(target=_build, args=(str(tmp_path / "shared"), str(log))) for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert log.read_text() == "computed\n"
