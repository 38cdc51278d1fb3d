from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.errors import SpecError
from mkldist.gram.bank import MemoryBank
from mkldist.gram.kept_rows import KeptRows, MemoryBudget
from mkldist.gram.layout import TileLayout
from mkldist.gram.predictor import raw_predictor
from mkldist.gram.requests import Combine, Inner, Matvec, Quadratic, Radii, Request
from mkldist.gram.view import answer_views, make_views
from tests.gram.bank_suite import random_grams
from tests.methods.plain_bank import reply

N_KERNELS, N_POINTS = 14, 23
CHAINS = [
    (),
    ("centre",),
    *itertools.permutations(["centre", "trace"]),
    *itertools.permutations(["centre", "variance"]),
    ("trace",),
    ("variance",),
    ("trace", "variance"),
    ("variance", "centre", "trace"),
]


def normalised(grams: np.ndarray, chain: tuple[str, ...]) -> np.ndarray:
    """Apply the definitions step by step to explicit matrices."""
    n = grams.shape[1]
    centring = np.eye(n) - 1.0 / n
    for name in chain:
        match name:
            case "centre":
                grams = centring @ grams @ centring
            case "trace":
                grams = grams / np.trace(grams, axis1=1, axis2=2)[:, None, None]
            case "variance":
                spread = np.trace(grams, axis1=1, axis2=2) / n - grams.mean(axis=(1, 2))
                grams = grams / spread[:, None, None]
    return grams


def requests_for(n: int, rng: np.random.Generator) -> list[Request]:
    matrices = rng.standard_normal((3, n, n))
    sparse = np.zeros(N_KERNELS)
    sparse[[2, 5]] = rng.random(2)
    return [
        Combine(rng.random(N_KERNELS)),
        Combine(np.stack([sparse, rng.random(N_KERNELS)])),
        Combine(sparse),
        Combine(rng.random(3), np.array([9, 0, 4])),
        Combine(rng.random((2, N_KERNELS)), rng.permutation(N_KERNELS)),
        Quadratic(rng.standard_normal(n)),
        Quadratic(rng.standard_normal((n, 2))),
        Inner(matrices + matrices.transpose(0, 2, 1)),
        Matvec(np.array([7, 1]), rng.standard_normal(n)),
        Matvec(np.array([0]), rng.standard_normal((n, 3))),
        Quadratic(rng.standard_normal(n), np.array([3])),
        Quadratic(rng.standard_normal((n, 2)), np.array([12, 0, 4])),
        Quadratic(rng.standard_normal((n, 9)), np.arange(N_KERNELS)),
        Radii(),
        Radii(np.array([2, 0, 7])),
    ]


@pytest.fixture(scope="module")
def grams() -> np.ndarray:
    return random_grams(N_KERNELS, N_POINTS)


@pytest.fixture
def bank(grams: np.ndarray) -> MemoryBank:
    return MemoryBank.from_grams(grams)


@pytest.mark.parametrize(
    "budget", [None, MemoryBudget(2**20), MemoryBudget(1)], ids=["bank", "kept", "one kept"]
)
@pytest.mark.parametrize("subset", ["all", "permuted half"])
@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_answers_are_those_of_the_normalised_matrices(
    bank: MemoryBank,
    grams: np.ndarray,
    chain: tuple[str, ...],
    subset: str,
    budget: MemoryBudget | None,
) -> None:
    rng = np.random.default_rng(3)
    index = None if subset == "all" else rng.permutation(N_POINTS)[:11]
    rows = np.arange(N_POINTS) if index is None else index
    [view] = make_views(bank, [index], chain, budget)
    assert (view.kernels is None) == (budget is None or subset == "all")
    expected = normalised(grams[:, rows[:, None], rows], chain)
    assert (view.n_points, view.n_kernels) == (len(rows), N_KERNELS)
    requests = requests_for(len(rows), rng)
    for request, found in zip(requests, view.answer(requests), strict=True):
        plain = reply(expected, request)
        assert found.shape == plain.shape
        assert_allclose(found, plain, rtol=1e-10, atol=1e-12 * np.abs(plain).max())


def test_views_of_many_splits_share_their_passes(bank: MemoryBank, grams: np.ndarray) -> None:
    rng = np.random.default_rng(4)
    indices = [rng.permutation(N_POINTS)[:12] for _ in range(6)]
    views = make_views(bank, indices, ("centre", "variance"))
    assert bank.counter.passes == 1
    vectors = rng.standard_normal((6, 12))
    asked = [Quadratic(vector) for vector in vectors]
    replies = answer_views(list(zip(views, asked, strict=True)))
    assert bank.counter.passes == 2
    for index, request, got in zip(indices, asked, replies, strict=True):
        part = normalised(grams[:, index[:, None], index], ("centre", "variance"))
        assert_allclose(got, reply(part, request), rtol=1e-10)


@pytest.mark.parametrize("chain", [(), ("centre",)])
def test_no_pass_when_nothing_is_to_be_fitted(bank: MemoryBank, chain: tuple[str, ...]) -> None:
    views = make_views(bank, [None, np.arange(4)], chain)
    assert bank.counter.passes == 0
    for view in views:
        assert_array_equal(view.scale, 1.0)
    assert make_views(bank, [], ("trace",)) == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("chain", [c for c in CHAINS if set(c) - {"centre"}], ids="-".join)
def test_kernels_that_vanish_stay_zero(
    grams: np.ndarray, chain: tuple[str, ...], dtype: str
) -> None:
    index = np.arange(3, 14)
    constant, outside = np.full((N_POINTS, N_POINTS), 0.1), np.zeros((N_POINTS, N_POINTS))
    outside[0, 0] = 1.0
    bank = MemoryBank.from_grams(np.stack([constant, outside, *grams]), dtype)
    [view] = make_views(bank, [index], chain)
    assert np.isfinite(view.scale).all()
    assert view.scale[1] == 0
    assert (view.scale[2:] > 0).all()
    trace_of_the_constant = "variance" not in chain and chain[0] == "trace"
    assert (view.scale[0] > 0) == trace_of_the_constant
    [q] = view.answer([Quadratic(np.ones(len(index)))])
    assert np.isfinite(q).all()


@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_raw_predictor_is_the_decision_function(
    bank: MemoryBank, grams: np.ndarray, chain: tuple[str, ...]
) -> None:
    """Against test rows that are centred with the training means, as in kernel PCA."""
    rng = np.random.default_rng(5)
    train = rng.permutation(N_POINTS)[:15]
    test = np.setdiff1d(np.arange(N_POINTS), train)
    [view] = make_views(bank, [train], chain)
    weights = np.where(rng.random(N_KERNELS) < 0.5, 0.0, rng.random(N_KERNELS))
    coefficients = rng.standard_normal(15)

    inner, cross = grams[:, train[:, None], train], grams[:, test[:, None], train]
    if "centre" in chain:
        cross = (
            cross
            - cross.mean(axis=2, keepdims=True)
            - inner.mean(axis=1, keepdims=True)
            + inner.mean(axis=(1, 2), keepdims=True)
        )
    expected = np.einsum("m,mti,i->t", weights * view.scale, cross, coefficients) + 0.3

    raw = raw_predictor(view, weights, coefficients, 0.3)
    assert_array_equal(raw.kernels, np.flatnonzero(weights))
    found = raw.bias + np.einsum(
        "s,sti,i->t", raw.weights, grams[raw.kernels][:, test[:, None], train], raw.coefficients
    )
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("chain", [(), ("centre",), ("trace", "centre")])
def test_raw_predictor_of_kernels_with_coefficients_of_their_own(
    bank: MemoryBank, grams: np.ndarray, chain: tuple[str, ...]
) -> None:
    """It is the sum of the predictors of the single kernels."""
    rng = np.random.default_rng(6)
    train = rng.permutation(N_POINTS)[:15]
    [view] = make_views(bank, [train], chain)
    weights = np.where(rng.random(N_KERNELS) < 0.5, 0.0, rng.random(N_KERNELS))
    kept = np.flatnonzero(weights)
    own = rng.standard_normal((len(kept), 15))
    raw = raw_predictor(view, weights, own, 0.3)
    found = np.full(N_POINTS, raw.bias)
    for s, kernel in enumerate(raw.kernels):
        found += raw.weights[s] * (grams[kernel][:, train] @ raw.coefficients[s])
    expected = np.full(N_POINTS, 0.3)
    for kernel, coefficients in zip(kept, own, strict=True):
        alone = np.where(np.arange(N_KERNELS) == kernel, weights, 0.0)
        one = raw_predictor(view, alone, coefficients, 0.0)
        image = grams[kernel][:, train] @ one.coefficients
        expected += one.weights[0] * image + one.bias
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_unknown_normalisation_names_the_nearest(bank: MemoryBank) -> None:
    with pytest.raises(SpecError, match=r"'center'; expected trace, .*Did you mean 'centre'\?"):
        make_views(bank, [None], ("center",))


def test_kernels_of_a_view_are_read_from_the_bank_once(bank: MemoryBank) -> None:
    index = np.arange(3, 14)
    [view] = make_views(bank, [index], ("centre",), MemoryBudget(2**20))
    few = Combine(np.isin(np.arange(N_KERNELS), [2, 5, 6]).astype(float))
    row_bytes = bank.n_bytes // N_KERNELS
    view.answer([few])
    assert (bank.counter.bytes_read, bank.counter.passes) == (3 * row_bytes, 0)
    view.answer([few, Matvec(np.array([6, 2]), np.ones(len(index)))])
    assert bank.counter.bytes_read == 3 * row_bytes
    view.answer([Matvec(np.array([6, 7]), np.ones(len(index)))])
    assert bank.counter.bytes_read == 4 * row_bytes


def test_views_share_the_room_and_who_waited_longest_gives_way(bank: MemoryBank) -> None:
    indices = [np.arange(11), np.arange(11, 22)]
    own = TileLayout.for_points(11).n_entries * 8
    views = make_views(bank, indices, (), MemoryBudget(40 * own))  # one takes room for 32 at first
    row_bytes = bank.n_bytes // N_KERNELS
    asked = Matvec(np.array([1, 4]), np.ones(11))
    read = []
    for view in (views[0], views[0], views[1], views[1], views[0]):
        before = bank.counter.bytes_read
        view.answer([asked])
        read.append((bank.counter.bytes_read - before) // row_bytes)
    assert read == [2, 0, 2, 0, 2]


def test_rows_take_little_more_room_than_they_need() -> None:
    budget, fetched = MemoryBudget(2 * 42 * 8), 0
    holders = [KeptRows(1, np.float64, budget) for _ in range(2)]

    def fetch(kernels: list[int], rows: list[np.ndarray]) -> None:
        nonlocal fetched
        fetched += len(kernels)
        for kernel, row in zip(kernels, rows, strict=True):
            row[:] = kernel

    for asked in (np.arange(30), np.arange(33), np.arange(33)):
        for holder in holders:
            [found] = holder.rows(asked, fetch)
            assert_array_equal(found.values[found.lines, 0], asked)
    assert fetched == 2 * 33


def test_rows_that_do_not_all_fit_are_not_all_dropped_in_every_round() -> None:
    n_rows, fetched = 32, 0
    budget = MemoryBudget(4 * n_rows * 8)
    holders = [KeptRows(1, np.float64, budget) for _ in range(6)]

    def fetch(kernels: list[int], rows: list[np.ndarray]) -> None:
        nonlocal fetched
        fetched += len(kernels)

    def rounds(users: list[KeptRows], n_rounds: int) -> float:
        before = fetched
        for _ in range(n_rounds):
            for holder in users:
                list(holder.rows(np.arange(n_rows), fetch))
        return (fetched - before) / (n_rounds * n_rows)

    assert rounds(holders, 1) == 6
    assert rounds(holders, 10) <= 3  # two cannot be kept, one more gives way to them
    rounds(holders[2:], 4)  # the first two do not come back
    assert rounds(holders[2:], 5) == 0
