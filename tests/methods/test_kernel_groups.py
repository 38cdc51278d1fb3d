"""Groups of kernels: every answer for groups is that of the sums, which nobody makes."""

import numpy as np
import pytest

from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii
from mkldist.methods.group_mkl import KernelGroups, on_groups
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import StopReason
from tests.methods import plain_bank

LABELS = np.array([3, 1, 3, 7, 1, 3])
M, N, G = 6, 5, 3
rng = np.random.default_rng(0)
V, W = rng.normal(size=(N, 2)), rng.normal(size=(2, N, N))
REQUESTS = {
    "combine": Combine(np.array([0.2, 0.0, 0.8])),
    "combinations": Combine(rng.random((2, G))),
    "combine some": Combine(np.array([0.3, 0.7]), np.array([2, 0])),
    "combinations of some": Combine(rng.random((3, 2)), np.array([1, 2])),
    "quadratic": Quadratic(V),
    "quadratic of one vector": Quadratic(V[:, 0]),
    "quadratic of some": Quadratic(V, np.array([2, 1])),
    "quadratic of one vector of some": Quadratic(V[:, 0], np.array([2, 1])),
    "matvec": Matvec(np.array([1, 0]), V),
    "matvec of one vector": Matvec(np.array([0]), V[:, 0]),
    "inner": Inner(W + W.transpose(0, 2, 1)),
    "diagonal": Diagonal(V),
}


@pytest.fixture(scope="module")
def grams():
    factors = np.random.default_rng(1).normal(size=(M, N, 3))
    return factors @ factors.transpose(0, 2, 1)


def solution(weights, answers):
    empty = np.zeros(N)
    return Solution(weights, empty, 0.0, empty, 1.0, 1.0, StopReason.CONVERGED, state=answers)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_answers_are_those_of_the_sums_of_the_kernels(grams, request_, mean):
    groups = KernelGroups(LABELS, mean=mean)
    members = [grams[label == LABELS] for label in (1, 3, 7)]
    sums = np.array([part.mean(axis=0) if mean else part.sum(axis=0) for part in members])

    def steps():
        answer = yield request_
        return solution(np.arange(G, dtype=float), answer)

    found = plain_bank.run(on_groups(steps(), groups), grams)
    np.testing.assert_allclose(found.state, plain_bank.reply(sums, request_), rtol=1e-12)


def test_weights_of_groups_become_weights_of_their_kernels():
    for mean, expected in ((False, [3, 2, 3, 5, 2, 3]), (True, [1, 1, 1, 5, 1, 1])):
        groups = KernelGroups(LABELS, mean=mean)
        assert len(groups) == G
        np.testing.assert_allclose(groups.spread(np.array([2.0, 3.0, 5.0])), expected)


def test_radii_are_refused_since_those_of_a_sum_are_no_sums(grams):
    def steps():
        yield Radii()

    with pytest.raises(TypeError, match="Radii of a sum is no sum"):
        plain_bank.run(on_groups(steps(), KernelGroups(LABELS, mean=True)), grams)
