"""Decision values at new points, against kernels written out and centred by hand."""

import numpy as np
import pytest

from mkldist.bank.bank import MemoryBank
from mkldist.bank.view import make_views
from mkldist.errors import GramError
from mkldist.fit.decision import BankFunctions, NewPoints

RNG = np.random.default_rng(0)
M, N, T = 5, 12, 9
ALL = np.einsum("mis,mjs->mij", *[RNG.normal(size=(M, N + T, 4))] * 2)
TRAIN, CROSS = ALL[:, :N, :N], ALL[:, N:, :N]


def source_of(asked):
    """Return a source of the cross kernels that notes what it is asked for."""

    def values(kernels, points, support):
        asked.append((kernels.tolist(), points, np.arange(N)[support].tolist()))
        yield from CROSS[kernels][:, points][..., support]

    return values


def plain_view():
    [view] = make_views(MemoryBank.from_grams(TRAIN), [None], ())
    return view


def by_hand(normalisations, weights, coefficients, bias):
    """Normalise the kernels on the training points and evaluate every function, (T, k)."""
    centre = np.eye(N) - 1.0 / N
    train, cross = TRAIN, CROSS
    if "centre" in normalisations:
        cross = (cross - train.mean(axis=1)[:, None]) @ centre
        train = centre @ train @ centre
    if "trace" in normalisations:
        cross = cross / np.trace(train, axis1=1, axis2=2)[:, None, None]
    return np.einsum("m,mti,mik->tk", weights, cross, coefficients) + bias


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(0, 1), (0, 8 * N * 4), (0, 2**20), (8 * N * T, 2**20)])
@pytest.mark.parametrize("normalisations", [(), ("trace",), ("centre",), ("centre", "trace")])
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("classes", [None, 3])
def test_decision_values(sizes, normalisations, own, classes):
    [view] = make_views(MemoryBank.from_grams(TRAIN), [None], normalisations)
    weights, k = np.array([0.0, 2.0, 0.0, 0.5, 1.0]), classes or 1
    active = np.flatnonzero(weights)
    coefficients, bias = RNG.normal(size=(len(active) if own else 1, N, k)), RNG.normal(size=k)
    every = np.zeros((M, N, k))
    every[active] = coefficients
    given = coefficients if own else coefficients[0]
    asked = []
    points = NewPoints(view, T, source_of(asked), *sizes)
    found = points.decision_values(
        weights, given if classes else given[..., 0], bias if classes else float(bias[0])
    )
    expected = by_hand(normalisations, weights, every, bias)
    np.testing.assert_allclose(found, expected if classes else expected[:, 0], rtol=1e-10)
    assert {kernel for kernels, *_ in asked for kernel in kernels} == set(active.tolist())
    largest = max(8 * len(kernels) * (p.stop - p.start) * N for kernels, p, _ in asked)
    assert largest <= max(sizes[1], 8 * N)


def test_functions_of_another_bank_are_refused():
    points = NewPoints(plain_view(), T, source_of([]))
    assert (len(points), repr(points)) == (T, "<9 new points, 5 kernels>")
    for n_kernels, n in ((M + 1, N), (M, N + 1)):
        with pytest.raises(GramError, match="points for a bank of 5 kernels on 12 points"):
            points.decision_values(np.ones(n_kernels), np.ones(n), 0.0)


@pytest.mark.parametrize("coefficients", [np.ones(N), np.ones((0, N))])
def test_a_function_without_kernels_is_its_bias(coefficients):
    asked = []
    points = NewPoints(plain_view(), T, source_of(asked), 8 * N * T)
    assert points.decision_values(np.zeros(M), coefficients, 1.5).tolist() == [1.5] * T
    assert not asked


def test_multiples_of_the_same_weights_share_one_combination():
    asked = []
    points = NewPoints(plain_view(), T, source_of(asked), 8 * N * T)
    weights, coefficients = np.arange(M, dtype=float), RNG.normal(size=N)
    values = [points.decision_values(f * weights, coefficients, 0.0) for f in (1.0, 8.0)]
    assert [kernels for kernels, *_ in asked] == [[1, 2, 3, 4]]
    np.testing.assert_allclose(values[1], 8.0 * values[0])
    assert points.n_bytes == 8 * N * T
    others = points.decision_values(weights[::-1].copy(), coefficients, 0.0)
    assert [kernels for kernels, *_ in asked] == [[1, 2, 3, 4], [0, 1, 2, 3]]
    np.testing.assert_allclose(
        others, np.einsum("m,mti,i->t", weights[::-1], CROSS, coefficients), rtol=1e-10
    )


def test_a_combination_that_is_too_large_is_not_made():
    coefficients = np.zeros(N)
    coefficients[[2, 3, 7]] = 0.5, -2.0, 1.0
    asked = []
    points = NewPoints(plain_view(), T, source_of(asked), 8 * N * T - 1)
    found = points.decision_values(np.ones(M), coefficients, 0.5)
    np.testing.assert_allclose(found, np.einsum("mti,i->t", CROSS, coefficients) + 0.5, rtol=1e-10)
    assert asked == [(list(range(M)), slice(0, T), [2, 3, 7])]
    assert points.n_bytes == 0


def test_kernels_are_evaluated_where_their_own_coefficients_are_not_zero():
    coefficients = np.zeros((4, N))
    coefficients[0, [1, 5]] = coefficients[1, [1, 5]] = 2.0
    coefficients[3] = np.arange(1, N + 1)
    weights, asked = np.array([1.0, 2.0, 5.0, 0.0, 0.5]), []
    points = NewPoints(plain_view(), T, source_of(asked))
    found = points.decision_values(weights, coefficients, 1.0)
    assert [(kernels, support) for kernels, _, support in asked] == [
        ([0, 1], [1, 5]),
        ([4], list(range(N))),
    ]
    each = np.einsum("m,mti,mi->tm", weights[weights > 0], CROSS[weights > 0], coefficients)
    np.testing.assert_allclose(found, each.sum(axis=1) + 1)
    functions = BankFunctions.of(plain_view(), weights, coefficients, 1.0)
    np.testing.assert_allclose(points.by_kernel(functions)[:, :, 0], each, atol=1e-12)
