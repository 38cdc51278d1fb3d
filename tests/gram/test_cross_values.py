"""Decision values at new points, against kernels written out and centred by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.errors import GramError
from mkldist.fit import decision as cross_values
from mkldist.fit.decision import NewPoints, RawPredictor, combined, sum_of_expansions
from mkldist.gram.bank import MemoryBank
from mkldist.gram.view import make_views

RNG = np.random.default_rng(0)
M, N, T = 5, 12, 9
ALL = np.einsum("mis,mjs->mij", *[RNG.normal(size=(M, N + T, 4))] * 2)
TRAIN, CROSS = ALL[:, :N, :N], ALL[:, N:, :N]


def rows_of(asked):
    """Return a source of the cross kernels that notes what it is asked for."""

    def values(kernels, points, support):
        asked.append((kernels.tolist(), points))
        yield from CROSS[kernels][:, points][..., support]

    return values


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


@pytest.mark.parametrize("group_bytes", [1, 8 * N * 4, 2**20])
@pytest.mark.parametrize("normalisations", [(), ("trace",), ("centre",), ("centre", "trace")])
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("classes", [None, 3])
def test_decision_values(monkeypatch, group_bytes, normalisations, own, classes):
    monkeypatch.setattr(cross_values, "GROUP_BYTES", group_bytes)
    [view] = make_views(MemoryBank.from_grams(TRAIN), [None], normalisations)
    weights, k = np.array([0.0, 2.0, 0.0, 0.5, 1.0]), classes or 1
    active = np.flatnonzero(weights)
    coefficients, bias = RNG.normal(size=(len(active) if own else 1, N, k)), RNG.normal(size=k)
    every = np.zeros((M, N, k))
    every[active] = coefficients
    given = coefficients if own else coefficients[0]
    asked = []
    points = NewPoints(view, T, rows_of(asked))
    found = points.decision_values(
        weights, given if classes else given[..., 0], bias if classes else float(bias[0])
    )
    expected = by_hand(normalisations, weights, every, bias)
    np.testing.assert_allclose(found, expected if classes else expected[:, 0], rtol=1e-10)
    assert {kernel for kernels, _ in asked for kernel in kernels} == set(active.tolist())
    largest = max(8 * len(kernels) * (p.stop - p.start) * N for kernels, p in asked)
    assert largest <= max(group_bytes, 8 * N)


def test_functions_of_another_bank_are_refused():
    [view] = make_views(MemoryBank.from_grams(TRAIN), [None], ())
    points = NewPoints(view, T, rows_of([]))
    assert (len(points), repr(points)) == (T, "<9 new points, 5 kernels>")
    for n_kernels, n in ((M + 1, N), (M, N + 1)):
        with pytest.raises(GramError, match="points for a bank of 5 kernels on 12 points"):
            points.decision_values(np.ones(n_kernels), np.ones(n), 0.0)


def test_sums_of_no_kernels_are_zero():
    none = np.zeros(0, dtype=np.intp)
    source = lambda kernels: iter(())  # noqa: E731
    assert not combined(source, none, np.zeros(0), (2, 3)).any()
    predictor = RawPredictor(none, np.zeros(0), np.zeros((0, 3)), 1.5)
    assert sum_of_expansions(source, predictor, (2, 3)).tolist() == [1.5, 1.5]


def test_kernels_are_evaluated_where_their_own_coefficients_are_not_zero():
    coefficients = np.zeros((4, N))
    coefficients[0, [1, 5]] = coefficients[1, [1, 5]] = 2.0
    coefficients[3] = np.arange(1, N + 1)
    predictor = RawPredictor(
        np.array([0, 1, 2, 4]), np.array([1.0, 2.0, 5.0, 0.5]), coefficients, 1.0
    )
    seen = []

    def values(kernels, support):
        seen.append((kernels.tolist(), np.arange(N)[support].tolist()))
        yield from CROSS[kernels][..., support]

    found = sum_of_expansions(values, predictor, (T, N))
    assert seen == [([0, 1], [1, 5]), ([4], list(range(N)))]
    expected = np.einsum("m,mti,mi->t", predictor.weights, CROSS[[0, 1, 2, 4]], coefficients) + 1
    np.testing.assert_allclose(found, expected)
