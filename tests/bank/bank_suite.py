"""Requirements of every bank, against plain numpy on the unpacked matrices.

Through the banks they test the modules of a pass: requests, layout, passes, operands, diagonals,
few_kernels, tile_products and dots.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Request
from mkldist.bank.view import BankView, answer_views

RTOL = 1e-12


def answers(view: BankView, requests: Sequence[Request]) -> list[np.ndarray]:
    """Answer the requests of one view alone."""
    return answer_views([(view, request) for request in requests])


def random_grams(n_kernels: int, n_points: int, seed: int = 0) -> np.ndarray:
    """Gram matrices whose entries are float32 numbers, so that both dtypes store them exactly."""
    factors = np.random.default_rng(seed).standard_normal((n_kernels, n_points, 5))
    return (factors @ factors.transpose(0, 2, 1)).astype(np.float32).astype(np.float64)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == np.float64
    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=RTOL, atol=RTOL * np.abs(expected).max(initial=1.0))


class BankSuite:
    """Subclass it with fixtures `bank` and `grams` (the same matrices, (M, n, n) float64)."""

    reads = True  # what is stored, rather than computed
    traversals = 1  # of the entries, in a pass that answers requests of all kinds

    @pytest.fixture
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(1)

    @pytest.mark.parametrize("vectors_shape", [(), (1,), (3,)], ids=str)
    def test_forms_of_named_kernels(self, bank, grams, rng, vectors_shape):
        vectors, last = rng.standard_normal((bank.n_points, *vectors_shape)), bank.n_kernels - 1
        kernels = np.array([last, 0, min(1, last), 0])
        [found] = answer(bank, [Quadratic(vectors, kernels)])
        close(found, np.einsum("i...,sij,j...->s...", vectors, grams[kernels], vectors))

    def test_a_sum_of_named_kernels_is_the_same_beside_others(self, bank, rng):
        few = rng.permutation(bank.n_kernels)[:4]
        weights = rng.random((2, len(few)))
        [both] = answer(bank, [Combine(weights, few)])
        for row, matrix in zip(weights, both, strict=True):
            [alone] = answer(bank, [Combine(row, few)])
            assert_array_equal(alone, matrix)

    def test_describes_itself(self, bank, grams):
        assert (bank.n_kernels, bank.n_points) == grams.shape[:2]
        assert bank.n_bytes == len(grams) * bank.layout.n_entries * bank.dtype.itemsize

    def test_chunks_cover_everything_once_slice_by_slice(self, bank, grams):
        packed = np.full((bank.n_kernels, bank.layout.n_entries), np.nan)
        previous, last_kernel = slice(0, 0), 0
        for chunk in bank.chunks():
            if chunk.entries != previous:
                assert chunk.entries.start == previous.stop
                assert chunk.kernels.start == 0
            else:
                assert chunk.kernels.start == last_kernel
            assert chunk.entries.start % bank.layout.tile_entries == 0
            target = packed[chunk.kernels, chunk.entries]
            assert np.isnan(target).all()
            target[:] = chunk.values
            previous, last_kernel = chunk.entries, chunk.kernels.stop
        assert_array_equal(packed, bank.layout.pack(grams))

    def test_rows_are_the_kernels_asked_for(self, bank, grams):
        kernels = np.array([bank.n_kernels - 1, 0, 3, 3])
        found = np.full((4, bank.layout.n_entries), np.nan)
        for rows in bank.rows(kernels):
            assert np.isnan(found[rows.positions]).all()
            found[rows.positions] = rows.values[rows.lines]
        assert_array_equal(found, bank.layout.pack(grams[kernels]))
        assert not list(bank.rows(np.array([], dtype=np.intp)))

    @pytest.mark.parametrize("n_vectors", [None, 1, 8, 11])
    def test_quadratic(self, bank, grams, rng, n_vectors):
        vectors = rng.standard_normal(
            bank.n_points if n_vectors is None else (bank.n_points, n_vectors)
        )
        [found] = answer(bank, [Quadratic(vectors)])
        close(found, np.einsum("i...,mij,j...->m...", vectors, grams, vectors))

    def test_inner(self, bank, grams, rng):
        matrices = rng.standard_normal((3, bank.n_points, bank.n_points))
        matrices += matrices.transpose(0, 2, 1)
        [found] = answer(bank, [Inner(matrices)])
        close(found, np.einsum("mij,rij->mr", grams, matrices))

    def test_diagonal(self, bank, grams, rng):
        weights = rng.standard_normal((bank.n_points, 2))
        [found] = answer(bank, [Diagonal(weights)])
        close(found, np.einsum("mii,ir->mr", grams, weights))
        assert (bank.counter.passes, bank.counter.diagonals) == (0, 1)

    def test_diagonals_cover_every_point_once(self, bank, grams):
        found = np.full((bank.n_kernels, bank.n_points), np.nan)
        for part in bank.diagonals():
            target = found[part.kernels, part.points]
            assert np.isnan(target).all()
            target[:] = part.values
        assert_array_equal(found, np.einsum("mii->mi", grams))
        assert (bank.counter.bytes_read > 0) is self.reads
        assert bank.counter.bytes_read <= bank.n_bytes

    @pytest.mark.parametrize("active", ["all", "few", "none"])
    @pytest.mark.parametrize("n_weights", [None, 1, 9])
    def test_combine(self, bank, grams, rng, active, n_weights):
        weights = rng.random(bank.n_kernels if n_weights is None else (n_weights, bank.n_kernels))
        kept = {"all": bank.n_kernels, "few": bank.sparse_limit, "none": 0}[active]
        weights[..., rng.permutation(bank.n_kernels)[kept:]] = 0
        [found] = answer(bank, [Combine(weights)])
        close(found, np.einsum("...m,mij->...ij", weights, grams))
        assert bank.counter.passes == (1 if active == "all" else 0)
        assert bank.counter.combines == (0 if active == "all" else n_weights or 1)

    @pytest.mark.parametrize("n_weights", [None, 3])
    def test_combine_of_named_kernels_is_no_pass(self, bank, grams, rng, n_weights):
        kernels = rng.permutation(bank.n_kernels)[: bank.n_kernels // 2 + 1]
        weights = rng.random(len(kernels) if n_weights is None else (n_weights, len(kernels)))
        weights[..., 0] = 0.0
        [found] = answer(bank, [Combine(weights, kernels)])
        close(found, np.einsum("...s,sij->...ij", weights, grams[kernels]))
        assert (bank.counter.passes, bank.counter.combines) == (0, n_weights or 1)

    @pytest.mark.parametrize("few", [True, False])
    def test_a_combination_takes_the_memory_that_is_offered(self, bank, grams, rng, few):
        weights = rng.random(bank.n_kernels)
        weights[bank.sparse_limit if few else bank.n_kernels :] = 0.0
        memory = np.full((bank.n_points, bank.n_points), np.nan)
        [found] = answer(bank, [Combine(weights, memory=memory)])
        assert np.shares_memory(found, memory)
        close(found, np.einsum("m,mij->ij", weights, grams))
        for other, shape in [(weights, (2, 2)), (np.stack([weights] * 2), memory.shape)]:
            unfit = np.zeros(shape)
            [found] = answer(bank, [Combine(other, memory=unfit)])
            close(found, np.einsum("...m,mij->...ij", other, grams))
            assert not unfit.any()

    def test_combined_matrix_is_symmetric(self, bank, rng):
        [found] = answer(bank, [Combine(rng.random(bank.n_kernels))])
        assert_allclose(found, found.T, rtol=1e-13)

    @pytest.mark.parametrize("n_vectors", [None, 4])
    def test_matvec(self, bank, grams, rng, n_vectors):
        kernels = np.array([4, 0, bank.n_kernels - 1, 0])
        vectors = rng.standard_normal(
            bank.n_points if n_vectors is None else (bank.n_points, n_vectors)
        )
        [found] = answer(bank, [Matvec(kernels, vectors)])
        close(found, np.einsum("sij,j...->si...", grams[kernels], vectors))
        assert (bank.counter.passes, bank.counter.matvecs) == (0, 4)

    def test_one_pass_serves_all_and_changes_no_answer(self, bank, rng):
        n = bank.n_points
        symmetric = rng.standard_normal((2, n, n))
        requests = [
            Quadratic(rng.standard_normal(n)),
            Combine(rng.random(bank.n_kernels)),
            Inner(symmetric + symmetric.transpose(0, 2, 1)),
            Quadratic(rng.standard_normal((n, 13))),
            Combine(rng.random((9, bank.n_kernels))),
            Diagonal(rng.random((n, 2))),
            Quadratic(rng.standard_normal((n, 3))),
        ]
        together = answer(bank, requests)
        assert (bank.counter.passes, bank.counter.diagonals) == (1, 0)
        assert bank.counter.bytes_read == (self.traversals * bank.n_bytes if self.reads else 0)
        for request, found in zip(requests, together, strict=True):
            [alone] = answer(bank, [request])
            assert_allclose(found, alone, rtol=1e-14, atol=1e-14 * np.abs(alone).max())
        assert (bank.counter.passes, bank.counter.diagonals) == (len(requests), 1)

    def test_reading_few_kernels_is_no_pass(self, bank):
        weights = np.zeros(bank.n_kernels)
        weights[2] = 1.0
        answer(bank, [Combine(weights), Matvec(np.array([1]), np.ones(bank.n_points))])
        assert bank.counter.passes == 0
        assert (bank.counter.bytes_read > 0) is self.reads

    def test_answers_belong_to_whoever_asked(self, bank, grams):
        weights = np.ones((2, bank.n_kernels))
        requests = [Combine(weights), Quadratic(np.ones((bank.n_points, 2)))]
        for found in answer(bank, requests):
            found[...] = np.nan
        [combined, quadratic] = answer(bank, requests)
        close(combined[1], grams.sum(axis=0))
        close(quadratic[:, 1], grams.sum(axis=(1, 2)))

    def test_nothing_asked_nothing_read(self, bank):
        assert answer(bank, []) == []
        assert (bank.counter.passes, bank.counter.bytes_read) == (0, 0)
