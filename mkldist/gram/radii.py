"""Smallest balls that enclose the points of a kernel's feature space.

The squared radius of Gram matrix K is (Do, Kalousis, Woznica & Hilario 2009, (6) and (18))

    R^2 = max_beta { sum_i beta_i K_ii - beta' K beta : beta >= 0, 1'beta = 1 }.

It is homogeneous, ``R^2(s K) = s R^2(K)``, and does not change when K is centred in feature space,
because ``sum_i beta_i K_ii - beta' K beta`` depends on distances only.

Radii depend on the kernels and the set of points alone, not on C.  A bank therefore keeps those
that were computed, and all runs on the same points share them.  They are not kept on disk: all runs
of a split share one open bank, and on 403 kernels and 284 points the radii of a split take no more
time than a third of one run of R-MKL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.bank import Bank
from mkldist.gram.requests import Radii
from mkldist.identity import array_id
from mkldist.optim.box_qp import newton_steps, pair_updates

TOLERANCE = 5e-11
ROUNDS = 300
FIRST_VIOLATION = 1e-6


def squared_radius(K: Floats) -> float:
    """Return the squared radius of the smallest ball around the points of a Gram matrix.

    Parameters
    ----------
    K : (n, n) float64
        Symmetric positive semi-definite.

    Returns
    -------
    float
        A lower bound within a relative 1e-10 of the squared radius; within 1e-6 where entries
        rounded to float32 make K indefinite; 0 if the points coincide up to rounding.
    """
    n, trace = len(K), float(np.trace(K))
    means = K.mean(axis=0)
    centred = K - means - means[:, None] + means.mean()
    spread = float(np.trace(centred)) / n
    if not spread > np.finfo(np.float64).eps * abs(trace):
        return 0.0
    beta = _centre(centred / spread)
    dual = float(beta @ (np.diagonal(centred) - centred @ beta))
    return max(dual, 0.0)


def _centre(centred: Floats) -> Floats:
    """Return the convex combination of the points that is the centre of their ball.

    Pair updates find the points on the sphere approximately.  Newton steps then find the centre for
    these points and drop those whose coefficients reach zero, and one pair update at a time admits
    another point: several would admit neighbours that must then be dropped one by one.

    The matrix is centred and has mean diagonal 1, the scale that the pair updates expect.  As the
    coefficients sum to one, a constant may be added to it: with it the Newton steps' system stays
    regular when all points are on the sphere.
    """
    n = len(centred)
    linear, K = 0.5 * np.diagonal(centred), centred + 1.0
    diagonal = np.ascontiguousarray(np.diagonal(K))
    beta, lower, upper = np.full(n, 1.0 / n), np.zeros(n), np.full(n, np.inf)
    slack = linear - K @ beta
    pair_updates(K, diagonal, beta, slack, lower, upper, FIRST_VIOLATION, 50 * n)
    for _ in range(ROUNDS):
        beta /= beta.sum()
        slack = linear - K @ beta
        if _gap(slack, beta) <= TOLERANCE:
            break
        steps = newton_steps(K, beta, slack, lower, upper, n)
        if _gap(slack, beta) > TOLERANCE:
            pair_updates(K, diagonal, beta, slack, lower, upper, 0.0, 1 if steps else n)
    return beta


def _gap(slack: Floats, beta: Floats) -> float:
    """Return the squared distance of the farthest point from the centre, less the dual value."""
    return 2.0 * float(slack.max() - slack @ beta)


def points_id(index: Ints | None, n_points: int) -> str:
    """Return the name of a set of points, the same whatever their order.

    Examples
    --------
    >>> points_id(np.array([1, 0]), 2) == points_id(None, 2)
    True
    """
    points = np.arange(n_points) if index is None else np.sort(index)
    return array_id(points.astype("<i8"))


def answer_radii(bank: Bank, requests: Sequence[Radii]) -> list[Floats]:
    """Answer requests for radii by one traversal for all sets of points that are not known yet.

    Parameters
    ----------
    bank : Bank
        The bank; its counter is advanced, and it keeps the answers.
    requests : sequence of Radii
        Requests on any sets of points.

    Returns
    -------
    list of (M,) float64
    """
    wanted = {points_id(r.index, bank.n_points): r.index for r in requests}
    unknown = {name: i for name, i in wanted.items() if name not in bank.known_radii}
    if unknown:
        computed = _computed(bank, list(unknown.values()))
        bank.known_radii.update(zip(unknown, computed, strict=True))
    return [bank.known_radii[points_id(r.index, bank.n_points)].copy() for r in requests]


def _computed(bank: Bank, indices: Sequence[Ints | None]) -> Floats:
    """Return the (sets, M) squared radii of all kernels on some sets of points."""
    squared_radii = np.empty((len(indices), bank.n_kernels))
    matrix = np.empty((bank.n_points, bank.n_points))
    for rows in bank.rows(np.arange(bank.n_kernels)):
        for kernel, line in zip(rows.positions, rows.lines, strict=True):
            bank.layout.unpack(rows.values[line], out=matrix)
            for found, index in zip(squared_radii, indices, strict=True):
                part = matrix if index is None else matrix[index[:, None], index]
                found[kernel] = squared_radius(part)
    bank.counter.passes += 1
    bank.counter.radii += len(indices)
    return squared_radii
