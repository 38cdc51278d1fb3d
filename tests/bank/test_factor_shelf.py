"""Factors beyond the memory: what stays, what is read, what a file has, and what is freed."""

from __future__ import annotations

import gc
import os
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.factor_bank import FactorBank, FactorCache
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.errors import OutputError
from mkldist.optim.pivoted_cholesky import PivotedFactor

N, RANK = 500, 20
EACH = 8 * N * RANK


def factor(seed: int, rank: int = RANK) -> PivotedFactor:
    values = np.random.default_rng(seed).normal(size=(N, rank))
    return PivotedFactor(values, np.arange(rank), 0.1)


def shelved(folder, fit: int, n_factors: int = 10, rank: int = RANK):
    """Return a shelf on which some factors stay, while two are at hand, and a bank of them all."""
    shelf = FactorCache((fit + 2) * 8 * N * rank, folder)
    return shelf, FactorBank([shelf.put(factor(m, rank)) for m in range(n_factors)], shelf=shelf)


@pytest.mark.parametrize("fit", [0, 3, 9])
def test_every_factor_comes_back_as_it_was(tmp_path, fit):
    shelf, bank = shelved(tmp_path, fit, 12)
    for m in [*range(12), *range(12)]:
        expected = factor(m)
        assert_array_equal(bank.factors[m].values, expected.values)
        assert_array_equal(bank.factors[m].diagonal, expected.diagonal)
        assert (bank.factors[m].rank, bank.factors[m].left) == (RANK, 0.1)
        assert shelf.kept_bytes <= fit * EACH
    assert shelf.kept_bytes == fit * EACH


def test_factors_that_fit_are_neither_written_nor_read(tmp_path):
    shelf, bank = shelved(tmp_path / "none", fit=8)  # ten with the two at hand, which need not be
    answer(bank, [Quadratic(np.ones(N))])
    assert shelf.holds_all
    assert (shelf.n_read, shelf.n_written) == (0, 0)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("fit", [0, 1, 6])
def test_a_pass_reads_the_factors_that_do_not_fit_and_no_more(tmp_path, fit):
    shelf, bank = shelved(tmp_path, fit)
    vectors = np.random.default_rng(1).normal(size=(N, 2))
    expected = [((factor(m).values.T @ vectors) ** 2).sum(axis=0) for m in range(10)]
    answer(bank, [Quadratic(vectors)])
    for _ in range(3):
        before = shelf.n_read
        [found] = answer(bank, [Quadratic(vectors)])
        assert shelf.n_read - before == 10 - fit
        assert np.allclose(found, expected, rtol=1e-12)
    assert shelf.n_written == 10 - fit  # each once


def test_factors_in_use_stay_through_passes(tmp_path):
    shelf, bank = shelved(tmp_path, fit=3)
    vectors, active = np.ones(N), np.array([8, 2, 5])
    answer(bank, [Matvec(active, vectors)])
    before = shelf.n_read
    for _ in range(4):
        answer(bank, [Matvec(active, vectors)])
    assert shelf.n_read == before
    answer(bank, [Quadratic(vectors)])
    assert shelf.n_read - before == 7
    [operator] = answer(bank, [Combine(np.ones(3), active, thin=True)])
    for _ in range(4):
        operator @ vectors
    assert shelf.n_read - before == 7


@pytest.mark.parametrize("n_active", [5, 10])
def test_an_operator_of_more_factors_than_fit_reads_those_that_do_not(tmp_path, n_active):
    shelf, bank = shelved(tmp_path, fit=3)
    active, weights = np.arange(10)[::-1][:n_active], np.linspace(0.5, 1.0, n_active)
    [operator] = answer(bank, [Combine(weights, active, thin=True)])
    matrix = sum(
        w * factor(m).values @ factor(m).values.T for w, m in zip(weights, active, strict=True)
    )
    vectors = np.random.default_rng(1).normal(size=(N, 2))
    operator @ vectors
    before = shelf.n_read
    assert np.allclose(operator @ vectors, matrix @ vectors, rtol=1e-10)
    assert shelf.n_read - before == n_active - 3
    points = np.array([3, 400, 17])
    assert np.allclose(operator.block(points), matrix[np.ix_(points, points)], rtol=1e-10)
    part = operator.on(points)
    assert np.allclose(part @ vectors[:3], matrix[np.ix_(points, points)] @ vectors[:3], rtol=1e-10)
    twice = operator.plus(1.0, operator)
    assert len(twice.factors) == n_active
    assert np.allclose(twice @ vectors, 2 * matrix @ vectors, rtol=1e-10)


@pytest.mark.parametrize("fit", [0, 2])
def test_memory_is_that_of_the_factors_that_stay_and_two_at_hand(tmp_path, fit):
    rank, each = 10 * RANK, 10 * EACH
    tracemalloc.start()
    try:
        shelf, bank = shelved(tmp_path, fit, 20, rank)
        vectors = np.random.default_rng(1).normal(size=(N, 1))
        [operator] = answer(bank, [Combine(np.ones(20), thin=True)])
        tracemalloc.reset_peak()
        answer(bank, [Quadratic(vectors), Matvec(np.arange(20), vectors)])
        operator @ vectors
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    of_points = 3 * 20 * 8 * N  # diagonals, of the factors and of the operator, and products
    assert (fit + 2) * each <= peak <= (fit + 2) * each + of_points + each / 4
    assert shelf.kept_bytes == fit * each


@pytest.mark.parametrize("fit", [0, 2, 20])
def test_factors_in_single_precision_take_half_and_are_at_hand_in_double(tmp_path, fit):
    rank, each = 10 * RANK, 5 * EACH
    values = [factor(m, rank).values.astype(np.float32).astype(np.float64) for m in range(20)]
    tracemalloc.start()
    try:
        shelf = FactorCache((fit + 5) * each, tmp_path, "float32")
        made = (PivotedFactor(one, np.arange(rank), 0.1) for one in values)
        bank = FactorBank([shelf.put(one) for one in made], shelf=shelf)
        assert bank.n_bytes == 20 * each
        before = shelf.n_read
        tracemalloc.reset_peak()
        [found] = answer(bank, [Quadratic(np.ones(N))])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shelf.n_read - before == 20 - fit
    assert shelf.kept_bytes == fit * each
    assert shelf.n_written == 20 - fit
    assert fit * each < peak <= (fit + 5) * each + 20 * 8 * N + each / 4
    for one, expected, form in zip(bank.factors, values, found, strict=True):
        assert_array_equal(one.values, expected)
        assert form == pytest.approx(((expected.T @ np.ones(N)) ** 2).sum(), rel=1e-12)


def test_memory_that_is_left_to_others_comes_back(tmp_path):
    shelf, bank = shelved(tmp_path, fit=8)
    assert shelf.holds_all
    with shelf.leaving(3 * EACH):
        assert shelf.kept_bytes <= 5 * EACH
        assert_array_equal(bank.factors[9].values, factor(9).values)
    answer(bank, [Quadratic(np.ones(N))])
    assert shelf.kept_bytes == 10 * EACH


def test_factors_that_nobody_has_leave_memory_and_file(tmp_path):
    shelf, bank = shelved(tmp_path, fit=2)
    size = os.fstat(shelf._file.fileno()).st_size
    assert size == 8 * EACH
    part = bank.select(np.array([1, 9]))
    del bank
    gc.collect()
    assert_array_equal(part.factors[1].values, factor(9).values)
    assert shelf.kept_bytes <= 2 * EACH
    grown = shelf.put(factor(30, rank=2 * RANK))
    assert_array_equal(grown.values, factor(30, rank=2 * RANK).values)
    assert os.fstat(shelf._file.fileno()).st_size <= size
    del part, grown
    gc.collect()
    assert shelf.kept_bytes == 0
    assert os.fstat(shelf._file.fileno()).st_size == 0


def test_the_file_has_no_name(tmp_path):
    shelf, _ = shelved(tmp_path / "deep" / "folder", fit=0)
    assert shelf.n_written == 10
    assert list((tmp_path / "deep" / "folder").iterdir()) == []


@pytest.mark.parametrize("call", ["pwrite", "preadv"])
def test_a_file_that_fails_is_said(tmp_path, monkeypatch, call):
    shelf, bank = shelved(tmp_path, fit=1)

    def failing(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, failing)
    work = {"pwrite": lambda: shelf.put(factor(40)), "preadv": lambda: bank.factors[9].values}
    with pytest.raises(OutputError, match=str(tmp_path)):
        work[call]()
    monkeypatch.undo()
    assert_array_equal(bank.factors[9].values, factor(9).values)


@pytest.mark.parametrize("place", [0, EACH // 2, EACH - 1])
def test_a_flipped_bit_in_the_file_is_said(tmp_path, monkeypatch, place):
    _, bank = shelved(tmp_path, fit=0)
    preadv = os.preadv

    def flipping(file, buffers, offset):
        n = preadv(file, buffers, offset)
        buffers[0][place] ^= 4
        return n

    monkeypatch.setattr(os, "preadv", flipping)
    with pytest.raises(OutputError, match="it reads back damaged"):
        answer(bank, [Quadratic(np.ones(N))])
    monkeypatch.undo()
    assert_array_equal(bank.factors[9].values, factor(9).values)
