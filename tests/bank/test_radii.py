"""Squared radii: the ball against a conic solver, and one computation for a bank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from mkldist.bank.bank import Bank, MemoryBank
from mkldist.bank.build import open_bank
from mkldist.bank.cache import NodeCache
from mkldist.bank.passes import answer, needs_pass, squared_radius
from mkldist.bank.readers import DamagedBlocksError, MappedBank
from mkldist.bank.requests import Quadratic, Radii
from mkldist.bank.store import GramStore
from tests.bank.bank_suite import random_grams
from tests.bank.stores import damage, stored
from tests.methods import balls

N_KERNELS, N_POINTS = 30, 20
SUBSET = np.array([3, 17, 0, 8, 12, 5])


def kernels() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    for n, d in ((2, 3), (3, 1), (40, 1), (60, 3), (90, 20)):
        x = rng.standard_normal((n, d))
        for width in (0.05, 0.5, 2.0, 20.0):
            yield f"Gaussian {width} in {d}, n={n}", rbf_kernel(x, gamma=1 / (2 * width**2))
        for degree in (1, 3):
            yield f"degree {degree} in {d}, n={n}", polynomial_kernel(x, degree=degree)
    x = rng.standard_normal((25, 2))
    yield "every point twice", np.kron(rbf_kernel(x), np.ones((2, 2)))
    yield "far from the origin", (1e4 + x) @ (1e4 + x).T


@pytest.mark.parametrize("K", [pytest.param(K, id=name) for name, K in kernels()])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_radius_is_the_conic_solvers(K: np.ndarray, scale: float) -> None:
    accuracy = max(1e-10, 1e-15 * np.trace(K) / (np.trace(K) - K.mean() * len(K)))
    assert squared_radius(scale * K) == pytest.approx(scale * balls.squared_radius(K), rel=accuracy)


def test_rounding_to_float32_costs_no_more_than_it_must() -> None:
    x = np.random.default_rng(0).standard_normal((200, 1))
    for width in (0.03, 0.3, 3.0):
        K = rbf_kernel(x, gamma=1 / (2 * width**2))
        rounded = K.astype(np.float32).astype(np.float64)
        assert squared_radius(rounded) == pytest.approx(balls.squared_radius(K), rel=3e-6)


def test_radii_that_are_known() -> None:
    assert squared_radius(np.eye(8)) == pytest.approx(1 - 1 / 8, rel=1e-14)
    line = np.array([[-1.0], [0.5], [3.0]])
    assert squared_radius(line @ line.T) == pytest.approx(4.0, rel=1e-12)
    angles = np.linspace(0, 2 * np.pi, 12)
    circle = 3.0 * np.column_stack([np.cos(angles), np.sin(angles)]) + 7.0
    assert squared_radius(circle @ circle.T) == pytest.approx(9.0, rel=1e-11)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e-300, 1e12])
def test_points_that_coincide_have_radius_zero(value: float) -> None:
    assert squared_radius(np.full((7, 7), value)) == 0.0
    assert squared_radius(np.array([[value]])) == 0.0


@pytest.fixture(scope="module")
def grams() -> np.ndarray:
    return random_grams(N_KERNELS, N_POINTS)


@pytest.fixture
def store(tmp_path: Path, grams: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> GramStore:
    monkeypatch.setattr("mkldist.bank.store.CHUNK_BYTES", 4_000)
    return stored(tmp_path / "banks", grams, "float64")


def opened(store: GramStore, backend: str, tmp_path: Path) -> Bank:
    return open_bank(store, backend, 20_000, NodeCache(tmp_path / "cache"))  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["memory", "mmap", "stream"])
@pytest.mark.parametrize("index", [None, SUBSET], ids=["all", "subset"])
def test_bank_answers_what_the_matrices_say(
    store: GramStore, grams: np.ndarray, tmp_path: Path, backend: str, index: np.ndarray | None
) -> None:
    bank = opened(store, backend, tmp_path)
    [found] = answer(bank, [Radii(index)])
    part = grams if index is None else grams[:, index[:, None], index]
    assert_allclose(found, balls.squared_radii(part), rtol=1e-9)
    assert (found.dtype, found.shape) == (np.float64, (N_KERNELS,))


def test_radii_are_computed_once_by_one_traversal_for_all_who_ask(grams: np.ndarray) -> None:
    bank = MemoryBank.from_grams(grams)
    asked = [Radii(), Quadratic(np.ones(N_POINTS)), Radii(SUBSET), Radii(), Radii(SUBSET[::-1])]
    found = answer(bank, asked)
    assert bank.counter.radii == 2
    assert bank.counter.passes == 2
    assert bank.counter.bytes_read == 2 * bank.n_bytes
    assert_array_equal(found[0], found[3])
    assert_array_equal(found[2], found[4])
    found[0][:] = np.nan
    assert_array_equal(answer(bank, [Radii(np.arange(N_POINTS))])[0], found[3])
    assert (bank.counter.radii, bank.counter.passes) == (2, 2)


def test_only_the_first_to_ask_needs_a_pass(grams: np.ndarray) -> None:
    bank = MemoryBank.from_grams(grams)
    assert needs_pass(bank, Radii(SUBSET))
    answer(bank, [Radii(SUBSET)])
    assert not needs_pass(bank, Radii(SUBSET))
    assert needs_pass(bank, Radii())


@pytest.mark.parametrize("index", [np.array([0, 20]), np.array([-1]), np.zeros((2, 2), int), []])
def test_points_outside_the_bank_are_refused(grams: np.ndarray, index: object) -> None:
    with pytest.raises(ValueError, match=r"Radii: found points .*; expected some of 0\.\.19"):
        answer(MemoryBank.from_grams(grams), [Radii(np.asarray(index, dtype=np.intp))])


def test_a_mapped_bank_over_its_limit_gives_pages_back(
    store: GramStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = []
    monkeypatch.setattr(MappedBank, "give_back", lambda bank: given_back.append(bank))
    answer(open_bank(store, "mmap", 1_000, NodeCache(tmp_path / "cache")), [Radii(SUBSET)])
    assert given_back


def test_a_damaged_block_is_named(store: GramStore, tmp_path: Path) -> None:
    damage(store, store.blocks[1])
    with pytest.raises(DamagedBlocksError) as caught:
        answer(opened(store, "stream", tmp_path), [Radii()])
    assert caught.value.blocks == (1,)
