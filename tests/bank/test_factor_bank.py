"""Banks of thin factors against the matrices multiplied out, and the factors of sources."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from mkldist.bank.bank import Bank
from mkldist.bank.factor_bank import FactorBank, FactorCache, factorised
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Diagonal, Inner, Quadratic
from mkldist.bank.sources import ArraySource, FeatureSource, JoinedSource, PlainSource
from mkldist.errors import GramError
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.gaps import Presence
from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.optim.pivoted_cholesky import PivotedFactor
from mkldist.spec.banks import BankSpec
from tests.bank.bank_suite import BankSuite
from tests.variants import quick

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 3))
SPEC = BankSpec.model_validate(
    {"kernels": [{"function": "gaussian", "widths": [0.5, 2], "features": ["all", "each"]},
                 {"function": "polynomial", "degrees": [2], "features": ["all"]}]}
)  # fmt: skip
KERNELS = kernel_list(SPEC, 3, ["a", "b", "c"], {}, 0)
GRAMS = evaluate(KERNELS, POINTS, POINTS)


def whole(source, kernel=0):
    return factorised(source, kernel, rank=100, tolerance=0.0, seed=0)


def factors_of(n_kernels: int, n_points: int) -> list[PivotedFactor]:
    """Return factors of small whole numbers, whose products are exact."""
    values = np.random.default_rng(0).integers(-3, 4, (n_kernels, n_points, 5)).astype(float)
    return [PivotedFactor(factor, np.arange(5), 0.0) for factor in values]


@pytest.mark.parametrize(("n_kernels", "n_points"), [(19, 13), (18, 150)])
class TestFactorBank(BankSuite):
    reads = False

    @pytest.fixture
    def bank(self, n_kernels: int, n_points: int) -> FactorBank:
        return FactorBank(factors_of(n_kernels, n_points))

    @pytest.fixture
    def grams(self, n_kernels: int, n_points: int) -> np.ndarray:
        factors = factors_of(n_kernels, n_points)
        return np.array([factor.values @ factor.values.T for factor in factors])

    def test_describes_itself(self, bank: Bank, grams: np.ndarray) -> None:
        assert (bank.n_kernels, bank.n_points) == grams.shape[:2]
        assert bank.n_bytes == 8 * 5 * grams.shape[0] * grams.shape[1]

    def test_one_pass_serves_all_and_changes_no_answer(
        self, bank: Bank, rng: np.random.Generator
    ) -> None:
        n = bank.n_points
        requests = [
            Quadratic(rng.standard_normal((n, 3))),
            Combine(rng.random(bank.n_kernels)),
            Inner(np.eye(n)[None]),
            Diagonal(rng.random((n, 2))),
        ]
        together = answer(bank, requests)
        assert (bank.counter.passes, bank.counter.diagonals) == (2, 0)  # one over the factors
        for request, found in zip(requests, together, strict=True):
            [alone] = answer(bank, [request])
            assert_allclose(found, alone, rtol=1e-14, atol=1e-14 * np.abs(alone).max())

    @pytest.mark.parametrize("named", [True, False])
    def test_a_thin_combination_is_an_operator(
        self, bank: FactorBank, grams: np.ndarray, rng: np.random.Generator, named: bool
    ) -> None:
        kernels = rng.permutation(bank.n_kernels)[:4] if named else np.arange(bank.n_kernels)
        weights = rng.random(len(kernels))
        weights[1] = 0.0
        [found] = answer(bank, [Combine(weights, kernels if named else None, thin=True)])
        assert isinstance(found, FactoredMatrix)
        assert len(found.factors) == len(kernels) - 1
        assert all(G is bank.factors[m].thin
                   for G, m in zip(found.factors, np.delete(kernels, 1), strict=True))  # fmt: skip
        expected = np.einsum("s,sij->ij", weights, grams[kernels])
        assert_allclose(
            found.block(np.arange(bank.n_points)), expected, atol=1e-12 * expected.max()
        )
        assert_allclose(found.diagonal, np.diagonal(expected))

    def test_a_part_shares_the_factors(self, bank: FactorBank, grams: np.ndarray) -> None:
        part = bank.select(np.array([3, 0]))
        vector = np.ones(bank.n_points)
        [found] = answer(part, [Quadratic(vector)])
        assert_allclose(found, grams[[3, 0]].sum(axis=(1, 2)))
        assert part.factors[0] is bank.factors[3]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestFactorsInAFile(TestFactorBank):
    @pytest.fixture
    def bank(self, n_kernels: int, n_points: int, dtype: str) -> FactorBank:
        shelf = FactorCache(2**12, dtype=dtype)
        made = [shelf.put(factor) for factor in factors_of(n_kernels, n_points)]
        return FactorBank(made, shelf=shelf)

    def test_describes_itself(self, bank: Bank, grams: np.ndarray) -> None:
        assert isinstance(bank, FactorBank)
        assert bank.n_bytes == bank.kept_type.itemsize * 5 * grams.shape[0] * grams.shape[1]
        assert bank.shelf is not None
        assert not bank.shelf.holds_all
        assert bank.shelf.n_written > 0


@pytest.mark.parametrize("cosine", quick([True, False]))
def test_factors_of_every_source_are_those_of_its_kernels(cosine):
    few = POINTS.copy()
    few[:7, 0] = np.nan
    rows = np.random.default_rng(1).permutation(60)[:50]
    sparse = KERNELS.select([0, 1, len(KERNELS) - 1])
    lacking = Presence.of(KERNELS, few)
    sources = [
        (FeatureSource(POINTS, KERNELS, cosine), evaluate(KERNELS, POINTS, POINTS, cosine=cosine)),
        (FeatureSource(few, KERNELS, cosine), evaluate(KERNELS, few, few, cosine=cosine)),
        (PlainSource(csr_array(POINTS), sparse, cosine),
         evaluate(sparse, POINTS, POINTS, cosine=cosine)),
        (ArraySource(evaluate(KERNELS, POINTS, POINTS), cosine, rows=rows),
         evaluate(KERNELS, POINTS, POINTS, cosine=cosine)[:, rows][:, :, rows]),
        (ArraySource(GRAMS, presence=lacking),
         GRAMS * (lacking[slice(0, 9)][:, :, None] & lacking[slice(0, 9)][:, None])),
    ]  # fmt: skip
    joined = JoinedSource((sources[0][0], sources[1][0]))
    sources.append((joined, np.concatenate([sources[0][1], sources[1][1]])))
    for source, expected in sources:
        assert source.n_kernels == len(expected)
        for m, K in enumerate(expected):
            factor = whole(source, m)
            assert_allclose(factor.values @ factor.values.T, K, atol=1e-9 * np.abs(K).max())


def test_seeds_differ_from_kernel_to_kernel_and_are_kept():
    source = ArraySource(np.array([GRAMS[0], GRAMS[0]]))
    settings = {"rank": 8, "tolerance": 0.0, "seed": 1}
    one, same = (factorised(source, 0, **settings).pivots for _ in range(2))
    assert_array_equal(one, same)
    assert one.tolist() != factorised(source, 1, **settings).pivots.tolist()


def test_values_that_are_not_finite_are_refused():
    K = GRAMS[0].copy()
    K[5] = K[:, 5] = np.inf
    with pytest.raises(GramError, match="kernel 0"):
        whole(ArraySource(K[None]))


def test_diagonals_are_added_to_all_answers():
    factors = factors_of(3, 70)
    products = np.array([one.values @ one.values.T for one in factors])
    rests, times = RNG.uniform(size=(3, 70)), np.array([1.0, 0.5, 3.0])
    exact = np.einsum("mii->mi", products) + rests
    grams = products + times[:, None, None] * np.array([np.diag(rest) for rest in rests])
    whole = FactorBank(factors, exact, times)
    points, kernels = RNG.permutation(70)[:20], np.array([2, 0])
    v, weights = RNG.normal(size=(70, 2)), np.array([0.5, 0.0, 2.0])
    assert_allclose(whole.forms_of_rests(v), times[:, None] * (rests @ v**2))
    for bank, own, at in (
        (whole, grams, np.arange(70)),
        (whole.select(kernels), grams[kernels], np.arange(70)),
        (whole.on(points), grams[:, points][:, :, points], points),
    ):
        w, d = weights[: len(own)], v[at]
        thin, dense, forms, diagonals, inner = answer(
            bank,
            [Combine(w, thin=True), Combine(w), Quadratic(d), Diagonal(d), Inner(own[:1].copy())],
        )
        combined = np.tensordot(w, own, 1)
        assert isinstance(thin, FactoredMatrix)
        assert_allclose(thin @ d, combined @ d, atol=1e-9)
        assert_allclose(thin.diagonal, np.diagonal(combined), atol=1e-9)
        assert_allclose(dense, combined, atol=1e-9)
        assert_allclose(forms, np.einsum("mij,ir,jr->mr", own, d, d), rtol=1e-9)
        assert_allclose(diagonals, np.einsum("mii,ir->mr", own, d), atol=1e-9)
        assert_allclose(inner[:, 0], (own * own[0]).sum(axis=(1, 2)), rtol=1e-9)
    nothing = whole.own_answer(Combine(np.zeros(3), thin=True))
    assert isinstance(nothing, FactoredMatrix)
    assert not nothing.on(points).diagonal.any()
