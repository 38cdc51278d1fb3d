"""Views of a bank and their `normalisation`, against matrices that are cut step by step."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.bank import MemoryBank, MemoryBudget, TileLayout
from mkldist.bank.requests import (
    Combine,
    Diagonal,
    Inner,
    Matvec,
    Quadratic,
    Radii,
    Request,
)
from mkldist.bank.view import BankView, answer_views, make_views
from mkldist.errors import SpecError
from mkldist.fit.decision import BankFunctions
from tests.bank.bank_suite import answers, random_grams
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget", [None, MemoryBudget(2**20), MemoryBudget(1)], ids=["bank", "kept", "one kept"]
)
@pytest.mark.parametrize("subset", ["all", "permuted half"])
@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_answers_are_those_of_the_normalised_matrices(bank, grams, chain, subset, budget):
    rng = np.random.default_rng(3)
    index = None if subset == "all" else rng.permutation(N_POINTS)[:11]
    rows = np.arange(N_POINTS) if index is None else index
    [view] = make_views(bank, [index], chain, budget)
    assert (view.kernels is None) == (budget is None or subset == "all")
    expected = normalised(grams[:, rows[:, None], rows], chain)
    assert (view.n_points, view.n_kernels) == (len(rows), N_KERNELS)
    requests = requests_for(len(rows), rng)
    for request, found in zip(requests, answers(view, requests), strict=True):
        plain = reply(expected, request)
        assert found.shape == plain.shape
        assert_allclose(found, plain, rtol=1e-10, atol=1e-12 * np.abs(plain).max())


@pytest.mark.parametrize("budget", [None, MemoryBudget(2**20)], ids=["bank", "kept"])
@pytest.mark.parametrize(
    "chain", [(), ("trace",), ("variance",), ("centre", "trace")], ids="-".join
)
def test_points_count_as_often_as_they_weigh(bank, grams, chain, budget):
    rng = np.random.default_rng(3)
    index, weights = rng.permutation(N_POINTS)[:11], rng.integers(1, 4, N_POINTS).astype(float)
    [view] = make_views(bank, [index], chain, budget, weights=weights)
    often = np.repeat(np.arange(11), weights[index].astype(int))
    repeated = index[often]
    first = np.unique(often, return_index=True)[1]
    expected = normalised(grams[:, repeated[:, None], repeated], chain)[:, first[:, None], first]
    requests = requests_for(11, rng)
    for request, found in zip(requests, answers(view, requests), strict=True):
        plain = reply(expected, request)
        assert_allclose(found, plain, rtol=1e-10, atol=1e-12 * np.abs(plain).max())
    [traces] = answer_views([(view, Diagonal(np.ones((11, 1))))])
    own = np.einsum("mii->m", grams[:, index[:, None], index])
    assert_allclose(traces[:, 0], view.scale * own)
    assert view.id != make_views(bank, [index], ("centre", "trace"))[0].id


def test_views_of_many_splits_share_their_passes(bank, grams):
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
def test_no_pass_when_nothing_is_to_be_fitted(bank, chain):
    views = make_views(bank, [None, np.arange(4)], chain)
    assert bank.counter.passes == 0
    for view in views:
        assert_array_equal(view.scale, 1.0)
    assert make_views(bank, [], ("trace",)) == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("chain", [c for c in CHAINS if set(c) - {"centre"}], ids="-".join)
def test_kernels_that_vanish_stay_zero(grams, chain, dtype):
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
    [q] = answers(view, [Quadratic(np.ones(len(index)))])
    assert np.isfinite(q).all()


def test_unknown_normalisation_names_the_nearest(bank):
    with pytest.raises(SpecError, match=r"'center'; expected trace, .*Did you mean 'centre'\?"):
        make_views(bank, [None], ("center",))


@pytest.mark.parametrize("centred", [False, True])
def test_diagonals_are_those_of_the_matrices_before_centring(bank, grams, centred):
    rng, index = np.random.default_rng(4), np.array([5, 0, 3])
    scale, weights = rng.random(N_KERNELS), rng.standard_normal((3, 2))
    view = BankView(bank, index, scale, centred)
    [found] = answer_views([(view, Diagonal(weights))])
    expected = scale[:, None] * (np.diagonal(grams, axis1=1, axis2=2)[:, index] @ weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not view.needs_pass(Diagonal(weights))
    assert bank.counter.passes == 0


@pytest.mark.parametrize("index", [None, np.arange(1, N_POINTS, 2)], ids=["all", "some"])
@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_traces_that_normalise_are_kept_and_those_of_the_bank(bank, grams, chain, index):
    [view] = make_views(bank, [index], chain)
    assert (view.traces is None) == (not set(chain) - {"centre"})
    ones = Diagonal(np.ones((view.n_points, 1)))
    read = bank.counter.diagonals
    [found] = answer_views([(view, ones)])
    assert bank.counter.diagonals == read + (view.traces is None)
    [plain] = answer_views([(replace(view, traces=None), ones)])
    assert_array_equal(found, plain, strict=True)
    points = slice(None) if index is None else index
    traces = np.einsum("mii->m", grams[:, points][:, :, points])
    assert_allclose(found[:, 0], view.scale * traces, rtol=1e-12)
    weights = np.random.default_rng(1).random((view.n_points, 1))
    for others in (weights, np.column_stack([weights, weights])):
        [found], [plain] = (
            answer_views([(one, Diagonal(others))]) for one in (view, replace(view, traces=None))
        )
        assert_array_equal(found, plain, strict=True)


def test_views_have_one_id_exactly_where_their_kernels_are_the_same(bank):
    index, scale = np.arange(5), np.ones(N_KERNELS)
    view = BankView(bank, index, scale, centred=False)
    assert BankView(bank, index.copy(), scale.copy(), centred=False).id == view.id
    others = [
        BankView.whole(bank),
        BankView(bank, index[::-1], scale, centred=False),
        BankView(bank, index, 2.0 * scale, centred=False),
        BankView(bank, index, scale, centred=True),
    ]
    assert len({view.id, *(other.id for other in others)}) == 5


N_FEW_KERNELS, N_FEW_POINTS = 20, 22


@pytest.fixture
def small_bank() -> MemoryBank:
    return MemoryBank.from_grams(random_grams(N_FEW_KERNELS, N_FEW_POINTS))


def test_kernels_of_a_view_are_read_from_the_bank_once(small_bank):
    index = np.arange(3, 14)
    [view] = make_views(small_bank, [index], ("centre",), MemoryBudget(2**20))
    few = Combine(np.isin(np.arange(N_FEW_KERNELS), [2, 5, 6]).astype(float))
    row_bytes = small_bank.n_bytes // N_FEW_KERNELS
    answers(view, [few])
    assert (small_bank.counter.bytes_read, small_bank.counter.passes) == (3 * row_bytes, 0)
    answers(view, [few, Matvec(np.array([6, 2]), np.ones(len(index)))])
    assert small_bank.counter.bytes_read == 3 * row_bytes
    answers(view, [Matvec(np.array([6, 7]), np.ones(len(index)))])
    assert small_bank.counter.bytes_read == 4 * row_bytes


def test_views_share_the_memory_and_the_one_used_longest_ago_is_evicted(small_bank):
    indices = [np.arange(11), np.arange(11, 22)]
    own = TileLayout.for_points(11).n_entries * 8
    views = make_views(
        small_bank, indices, (), MemoryBudget(40 * own)
    )  # one reserves memory for 32 at first
    row_bytes = small_bank.n_bytes // N_FEW_KERNELS
    asked = Matvec(np.array([1, 4]), np.ones(11))
    read = []
    for view in (views[0], views[0], views[1], views[1], views[0]):
        before = small_bank.counter.bytes_read
        answers(view, [asked])
        read.append((small_bank.counter.bytes_read - before) // row_bytes)
    assert read == [2, 0, 2, 0, 2]


@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_functions_of_a_bank_are_those_of_its_view(bank, grams, chain):
    """Against test rows that are centred with the training means, as in kernel PCA."""
    rng = np.random.default_rng(5)
    train = rng.permutation(N_POINTS)[:15]
    test = np.setdiff1d(np.arange(N_POINTS), train)
    [view] = make_views(bank, [train], chain)
    weights = np.where(rng.random(N_KERNELS) < 0.5, 0.0, rng.random(N_KERNELS))
    coefficients = rng.standard_normal(15)

    inner, cross = (
        grams[:, train[:, None], train],
        grams[:, test[:, None], train],
    )
    if "centre" in chain:
        cross = (
            cross
            - cross.mean(axis=2, keepdims=True)
            - inner.mean(axis=1, keepdims=True)
            + inner.mean(axis=(1, 2), keepdims=True)
        )
    expected = np.einsum("m,mti,i->t", weights * view.scale, cross, coefficients) + 0.3

    raw = BankFunctions.of(view, weights, coefficients, 0.3)
    assert_array_equal(raw.kernels, np.flatnonzero(weights))
    found = raw.bias + np.einsum(
        "s,sti,ik->tk",
        raw.weights,
        grams[raw.kernels][:, test[:, None], train],
        raw.coefficients,
    )
    assert_allclose(found[:, 0], expected, rtol=1e-10, atol=1e-12)

    two = np.stack([coefficients, -2.0 * coefficients], axis=1)
    several = BankFunctions.of(view, weights, two, np.array([0.3, 1.0]))
    assert_allclose(several.coefficients, raw.coefficients * [1.0, -2.0], atol=1e-12)
    assert_allclose(several.bias, [raw.bias[0], 1.0 - 2.0 * (raw.bias[0] - 0.3)], atol=1e-12)


@pytest.mark.parametrize("chain", [(), ("centre",), ("trace", "centre")])
def test_functions_of_kernels_with_coefficients_of_their_own(bank, grams, chain):
    """Each is the sum of the functions of the single kernels."""
    rng = np.random.default_rng(6)
    train = rng.permutation(N_POINTS)[:15]
    [view] = make_views(bank, [train], chain)
    weights = np.where(rng.random(N_KERNELS) < 0.5, 0.0, rng.random(N_KERNELS))
    kept = np.flatnonzero(weights)
    own = rng.standard_normal((len(kept), 15))
    raw = BankFunctions.of(view, weights, own, 0.3)
    found = np.full(N_POINTS, raw.bias)
    for s, kernel in enumerate(raw.kernels):
        found += raw.weights[s] * (grams[kernel][:, train] @ raw.coefficients[s, :, 0])
    expected = np.full(N_POINTS, 0.3)
    for kernel, coefficients in zip(kept, own, strict=True):
        alone = np.where(np.arange(N_KERNELS) == kernel, weights, 0.0)
        one = BankFunctions.of(view, alone, coefficients, 0.0)
        image = grams[kernel][:, train] @ one.coefficients[:, 0]
        expected += one.weights[0] * image + one.bias
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
