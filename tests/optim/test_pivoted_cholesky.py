"""Randomly pivoted Cholesky factors against eigenvalues and direct elimination."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.optim.pivoted_cholesky import PROPOSALS, factor_bytes, pivoted_cholesky

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(150, 4))
MATRICES = {
    "smooth": rbf_kernel(POINTS, gamma=0.05),
    "narrow": rbf_kernel(POINTS, gamma=50.0),
    "duplicates": rbf_kernel(np.repeat(POINTS[:30], 5, axis=0), gamma=0.5),
    "rank deficient": POINTS @ POINTS.T,
    "of unlike scales": np.outer(s := 10.0 ** RNG.uniform(-6, 3, 150), s) * rbf_kernel(POINTS),
    "with empty rows": np.pad(rbf_kernel(POINTS[:100]), (0, 50)),
    "zero": np.zeros((150, 150)),
}


def factorised(K, rank, tolerance=0.0, seed=0, between=None, **settings):
    return pivoted_cholesky(
        np.diagonal(K).copy(),
        between or (lambda rows, columns: K[rows][:, columns]),
        rank=rank,
        tolerance=tolerance,
        seed=(seed,),
        **settings,
    )


class Kept(dict):
    """Pieces that are kept in memory."""

    def put(self, index, piece):
        self[index] = piece


@pytest.mark.parametrize("K", MATRICES.values(), ids=MATRICES.keys())
@pytest.mark.parametrize("rank", [1, 7, 40, 400])
def test_what_is_left_is_semidefinite_and_its_trace_is_told(K, rank):
    found = factorised(K, rank)
    left = K - found.values @ found.values.T
    size = max(np.trace(K), 1e-300)
    assert np.linalg.eigvalsh(left)[0] >= -1e-13 * size
    assert found.left == pytest.approx(np.trace(left) / size, abs=1e-13)
    assert_allclose(left[found.pivots], 0.0, atol=1e-13 * size)
    assert found.rank <= min(rank, len(K))
    assert len(set(found.pivots.tolist())) == found.rank
    assert_array_equal(np.triu(found.values[found.pivots], 1), 0.0)


@pytest.mark.parametrize("name", ["smooth", "duplicates", "rank deficient"])
def test_noise_of_the_entries_leaves_the_rows_of_pivots_triangular(name):
    K = MATRICES[name]
    rng = np.random.default_rng(1)

    def between(rows, columns):  # as of distances that are computed by two products of matrices
        entries = K[rows][:, columns]
        return entries + 1e-12 * rng.uniform(-1.0, 1.0, entries.shape)

    found = factorised(K, len(K), between=between)
    triangle = found.values[found.pivots]
    assert len(set(found.pivots.tolist())) == found.rank
    assert_array_equal(np.triu(triangle, 1), 0.0)
    assert (np.diagonal(triangle) > 0.0).all()


@pytest.mark.parametrize("K", MATRICES.values(), ids=MATRICES.keys())
def test_enough_rank_reproduces_the_matrix(K):
    found = factorised(K, len(K))
    assert_allclose(found.values @ found.values.T, K, rtol=0, atol=1e-11 * np.abs(K).max())


def test_ranks_follow_the_matrix():
    ranks = {name: factorised(K, 150).rank for name, K in MATRICES.items()}
    assert ranks["rank deficient"] == 4
    assert ranks["duplicates"] == 30
    assert ranks["narrow"] == 150
    assert ranks["zero"] == 0
    assert ranks["with empty rows"] <= 100


@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-6])
def test_the_rank_is_what_the_tolerance_asks_for(tolerance):
    K = MATRICES["smooth"]
    found = factorised(K, 150, tolerance)
    assert found.left <= tolerance
    # the best factor of any rank keeps the largest eigenvalues
    tails = np.cumsum(np.linalg.eigvalsh(K)) / np.trace(K)
    least = int((tails > tolerance).sum())
    assert least <= found.rank <= min(3 * least + PROPOSALS // 4, 150)


def test_pivots_are_seeded():
    K = MATRICES["smooth"]
    one, same, other = (factorised(K, 20, seed=seed).pivots for seed in (1, 1, 2))
    assert_array_equal(one, same)
    assert one.tolist() != other.tolist()


@pytest.mark.slow
def test_pivots_are_drawn_in_proportion_to_the_diagonal_that_is_left():
    # Of two blocks of equal points each draw takes one; the second pivot is in the other block.
    K = np.kron(np.diag([1.0, 3.0]), np.ones((4, 4)))
    firsts = []
    for seed in range(400):
        found = factorised(K, 8, seed=seed)
        assert found.rank == 2
        firsts.append(found.pivots[0] >= 4)
    assert np.mean(firsts) == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / 400))


@pytest.mark.parametrize("shape", [(150,), (150, 3)])
@pytest.mark.parametrize("name", ["smooth", "narrow", "duplicates", "rank deficient"])
def test_coefficients_on_pivots_give_the_same_function(name, shape):
    K = MATRICES[name]
    found = factorised(K, 12)
    c = np.random.default_rng(3).normal(size=shape)
    a = found.on_pivots(c)
    assert not np.delete(a, found.pivots, axis=0).any()
    assert_allclose(K @ a, found.values @ (found.values.T @ c), rtol=1e-7, atol=1e-9)
    norms = np.einsum("i...,i...->...", a, K @ a)
    assert_allclose(norms, ((found.values.T @ c) ** 2).sum(axis=0), rtol=1e-7)


def test_memory_grows_with_the_rank_and_not_with_n_squared():
    n, rank = 4000, 60
    points = np.random.default_rng(0).normal(size=(n, 2))
    tracemalloc.start()
    pivoted_cholesky(
        np.ones(n),
        lambda rows, columns: rbf_kernel(points[rows], points[columns]),
        rank=rank,
        tolerance=0.0,
        seed=(0,),
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * factor_bytes(n, rank) + 4 * factor_bytes(n, PROPOSALS)
    assert peak < 8 * n * n / 4


@pytest.mark.parametrize("K", MATRICES.values(), ids=MATRICES.keys())
@pytest.mark.parametrize("rank", [20, 110])
def test_a_factor_goes_on_from_where_it_stands(K, rank):
    begun = factorised(K, rank)
    longer = factorised(K, 150, begun=begun)
    size = np.sqrt(np.abs(K).max())
    assert_allclose(longer.values[:, : begun.rank], begun.values, rtol=0, atol=1e-9 * size)
    assert_array_equal(longer.pivots[: begun.rank], begun.pivots)
    assert_array_equal(longer.pivots, factorised(K, 150).pivots)
    assert_allclose(longer.values @ longer.values.T, K, rtol=0, atol=1e-11 * np.abs(K).max())


def counting(K, asked):
    def between(rows, columns):
        if isinstance(columns, slice):
            asked.append(len(rows))
        return K[rows][:, columns]

    return between


def test_a_factor_that_goes_on_keeps_its_whole_pieces():
    K, asked = MATRICES["narrow"], []
    begun = factorised(K, 110)
    found = factorised(K, 130, between=counting(K, asked), begun=begun)
    assert (found.rank, sum(asked)) == (130, 30)
    assert_array_equal(found.values[:, :100], begun.values[:, :100])


def test_a_factor_that_is_long_enough_stays_as_it_is():
    begun = factorised(MATRICES["smooth"], 20)
    assert_array_equal(factorised(MATRICES["smooth"], 10, begun=begun).values, begun.values)


def test_pieces_are_made_whole_once_and_taken_by_every_factor():
    K, asked, kept = MATRICES["narrow"], [], Kept()
    first = factorised(K, 20, kept=kept)
    assert [len(piece.pivots) for piece in kept.values()] == [100]
    assert first.rank == 20
    longer = factorised(K, 130, kept=kept, begun=first)
    assert [len(piece.pivots) for piece in kept.values()] == [100, 50]
    again = factorised(K, 130, kept=kept, between=counting(K, asked))
    assert_array_equal(again.values, longer.values)
    assert not asked
    assert_array_equal(longer.values[:, :20], first.values)


def test_a_piece_is_the_same_whoever_makes_it():
    K, at_once, one_by_one = MATRICES["narrow"], Kept(), Kept()
    factorised(K, 150, kept=at_once)
    factorised(K, 100, kept=one_by_one)
    factorised(K, 150, kept=one_by_one)
    for index in (0, 1):
        assert_array_equal(one_by_one[index].columns, at_once[index].columns)
        assert_array_equal(one_by_one[index].pivots, at_once[index].pivots)


def test_a_piece_that_was_made_after_other_pivots_is_made_again():
    K, kept, others = MATRICES["narrow"], Kept(), Kept()
    factorised(K, 150, kept=kept)
    factorised(K, 100, kept=others, seed=1)
    kept[0] = others[0]  # as if it was lost, and another machine had made it
    stale = kept[1]
    found = factorised(K, 150, kept=kept)
    assert kept[1] is not stale
    assert len(set(found.pivots.tolist())) == found.rank
    assert_allclose(found.values @ found.values.T, K, atol=1e-12)


@pytest.mark.parametrize("name", ["smooth", "narrow", "duplicates", "rank deficient"])
def test_columns_of_single_precision_leave_its_rounding(name):
    K, kept = MATRICES[name], Kept()
    found = factorised(K, 150, kept=kept, dtype="float32")
    assert kept[0].columns.dtype == "float32"
    assert found.rank <= factorised(K, 150).rank
    scale = np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
    assert (np.abs(found.values @ found.values.T - K) <= 2e-6 * scale).all()
