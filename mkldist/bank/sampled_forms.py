"""What factors lack of their kernels at some vectors, estimated from samples of the points.

The diagonal of ``R = K - G G'``, where a narrow kernel has all of it, is taken exactly.  For two
points i, j drawn with probabilities ``p_i`` in proportion to |v_i|, and counted where they differ,

    v_i R_ij v_j / (p_i p_j)    estimates    sum_{i != j} v_i R_ij v_j    without bias.

So does its mean over all pairs of different draws of a group, whose kernel values are those of the
group's points alone.  Several groups tell the error of the mean over them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.bank.factored_kernels import FactoredKernels
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.requests import Diagonal, Quadratic
from mkldist.bank.view import BankView, answer_views
from mkldist.core.arrays import Floats, Ints

DRAWN = 2000  # points of a group
GROUPS = 8


@dataclass(frozen=True, eq=False)
class SampledForms:
    """Estimates of ``v'(K_m - G_m G_m')v`` with their standard errors.

    Parameters
    ----------
    lacking : (S, R) float64
        The estimates, not negative where the factors lie below their kernels.
    errors : (S, R) float64
        Standard errors.
    """

    lacking: Floats
    errors: Floats


def sampled_values(n_drawn: int) -> float:
    """Return the values of a kernel that an estimate computes."""
    return GROUPS * n_drawn**2 / 2


def sampled_forms(
    kernels: FactoredKernels, chosen: Ints, vectors: Floats, n_drawn: int, seed: int
) -> SampledForms:
    """Estimate what the factors of some kernels lack.

    Parameters
    ----------
    kernels : FactoredKernels
        The kernels and their factors.
    chosen : (S,) intp
        The kernels to look at.
    vectors : (n, R) float64
        The vectors v.
    n_drawn : int
        Points of a group, drawn with replacement; at least 2.
    seed : int
        Seed of the draws.

    Raises
    ------
    mkldist.errors.GramError
        If a kernel has values that are not finite.
    """
    sizes = np.abs(vectors).sum(axis=1)
    if not sizes.any():
        none = np.zeros((len(chosen), vectors.shape[1]))
        return SampledForms(none, none.copy())
    rng, part = np.random.default_rng(seed), kernels.select(chosen)
    energy = Diagonal(vectors**2)
    [thin] = answer_views([(part.view, energy)])
    own = part.exactly(energy) - thin
    found = np.empty((GROUPS, len(chosen), vectors.shape[1]))
    for of_group in found:
        drawn = rng.choice(len(sizes), size=n_drawn, p=sizes / sizes.sum())
        points, times = np.unique(drawn, return_counts=True)
        weighted = vectors[points] * (times * sizes.sum() / (n_drawn * sizes[points]))[:, None]
        of_group[...] = _pairs(part, points, weighted) * (n_drawn / (n_drawn - 1.0))
    errors = found.std(axis=0, ddof=1) / np.sqrt(GROUPS)
    lacking = own + found.mean(axis=0)
    below = kernels.factors.lies_below
    return SampledForms(np.maximum(lacking, 0.0) if below else lacking, errors)


def _pairs(kernels: FactoredKernels, points: Ints, vectors: Floats) -> Floats:
    """Return ``v'R v`` between some points without its diagonal, (S, R)."""
    bank = RecomputedBank(kernels.source.at(points), 0, kernels.threads)
    thin = kernels.factors.on(points)
    with_both = Quadratic(vectors), Diagonal(vectors**2)
    views = [BankView(one, None, kernels.scale, centred=False) for one in (bank, thin)]
    exact, of_exact = answer_views([(views[0], request) for request in with_both])
    found, of_found = answer_views([(views[1], request) for request in with_both])
    kernels.counter.bytes_computed += bank.counter.bytes_computed
    kernels.counter.threads_cpu_seconds += bank.counter.threads_cpu_seconds
    pairs: Floats = (exact - of_exact) - (found - of_found)
    return pairs
