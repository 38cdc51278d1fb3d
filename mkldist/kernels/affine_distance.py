"""Distances between square images after the best affine transformation of one of them.

With x(s) an image between its pixels and c the centre of a pixel,

    d²(x, z) = min_p sum_c (x(R(angle) [[scale_u, shear], [0, scale_v]] c + shift) - z(c))²

over the six parameters p = (shift_u, shift_v, scale_u, scale_v, angle, shear) within bounds.  The
distance of two images is the smaller one of d(x, z) and d(z, x).  The tangent distance
approximates the transformed images by a plane; this distance transforms the image itself.

A cubic spline through the pixels gives the image between them, and the nearest pixel of the border
gives it beyond the border.  A bounded Levenberg-Marquardt method starts at the identity, so that
its minimum, a local one in general, is never above the Euclidean distance.

References
----------
T. Hastie, P. Simard, Metrics and models for handwritten character recognition, Statistical Science
13, 1998 (invariant distance).
A. Argyriou, M. Herbster, M. Pontil, Combining graph Laplacians for semi-supervised learning,
NIPS 18, 2005 (the transformations and bounds, and the smaller one of both distances).
"""

from __future__ import annotations

import numpy as np
import scipy

from mkldist.arrays import Bools, Floats, Ints
from mkldist.compiled import compiled
from mkldist.kernels.tangent_distance import image_side

SHIFT_OF_SIDE = 1 / 8  # largest shift: two pixels of an image of side 16
IDENTITY = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
# Bounds of |p - identity|; those of the shifts follow from the side of the images.
REACH = np.array([0.0, 0.0, 0.1, 0.1, 0.2, 0.1])
MAX_STEPS = 50
# A step that lowers the squared distance by less than this share ends the search.
PROGRESS = 1e-4
MOST_DAMPING = 1e3
# Share of the trace that is added to the diagonal, which is zero for parameters without effect;
# SMALLEST keeps it positive if no parameter has an effect.
LEAST_DAMPING = 1e-12
SMALLEST = 1e-290
PADDING = 2  # pixels beyond the border whose spline coefficients the pixels of the border need


def affine_distances(x: Floats, pairs: Bools | None = None) -> Floats:
    """Return the affine-transformation distances between images.

    Parameters
    ----------
    x : (n, s²) float64
        Square images, row by row of pixels.
    pairs : (n, n) bool, optional
        Pairs of images, in either order, whose affine distance is wanted; default all.

    Returns
    -------
    (n, n) float64
        Symmetric, zero between equal images, not larger than the Euclidean distances.  Other pairs
        than `pairs` have their Euclidean distance.

    Raises
    ------
    mkldist.errors.DataError
        If the images are not square.
    """
    side = image_side(x.shape[1])
    squares: Floats = scipy.spatial.distance.cdist(x, x, "sqeuclidean")
    wanted = np.ones(squares.shape, dtype=np.bool_) if pairs is None else pairs | pairs.T
    reach = REACH.copy()
    reach[:2] = side * SHIFT_OF_SIDE
    for i, image in enumerate(x.reshape(-1, side, side)):
        spline = np.pad(
            scipy.ndimage.spline_filter(image, 3, mode="mirror"), PADDING, mode="reflect"
        )
        others = np.flatnonzero(wanted[i] & (squares[i] > 0.0))
        _best_squares(spline, x, others, IDENTITY - reach, IDENTITY + reach, squares[i])
    np.minimum(squares, squares.T, out=squares)
    return np.asarray(np.sqrt(squares), dtype=np.float64)


@compiled(fastmath=True)
def _best_squares(
    spline: Floats, targets: Floats, others: Ints, low: Floats, high: Floats, squares: Floats
) -> None:
    """Lower the squared distances of one image to others, in place, by transforming the image."""
    r, J = np.empty(targets.shape[1]), np.empty((6, targets.shape[1]))
    for j in others:
        target = targets[j]
        p = IDENTITY.copy()
        best = _linearise(spline, target, p, r, J)
        H, g = np.dot(J, J.T), np.dot(J, r)
        damping = 1e-3
        for _ in range(MAX_STEPS):
            trial = _damped_step(H, g, p, low, high, damping)
            value = _linearise(spline, target, trial, r, J)
            if value < best:
                progress = best - value
                p, best = trial, value
                if progress <= PROGRESS * best:
                    break
                H, g = np.dot(J, J.T), np.dot(J, r)
                damping *= 0.1
            elif damping < MOST_DAMPING:
                damping *= 10.0
            else:
                break
        squares[j] = min(best, squares[j])


@compiled
def _damped_step(
    H: Floats, g: Floats, p: Floats, low: Floats, high: Floats, damping: float
) -> Floats:
    """Return the parameters after a damped Gauss-Newton step, clipped to their bounds.

    A parameter stays fixed if it is at a bound and its gradient points out of the bounds.
    """
    A, b = H.copy(), -g
    least = LEAST_DAMPING * np.trace(H) + SMALLEST
    for a in range(6):
        A[a, a] += damping * H[a, a] + least
        if (p[a] <= low[a] and g[a] > 0.0) or (p[a] >= high[a] and g[a] < 0.0):
            A[a, :], A[:, a], b[a] = 0.0, 0.0, 0.0
            A[a, a] = least
    return np.minimum(np.maximum(p + np.linalg.solve(A, b), low), high)


@compiled(fastmath=True)
def _linearise(spline: Floats, target: Floats, p: Floats, r: Floats, J: Floats) -> float:
    """Return the squared distance at p, and write its residuals and their derivatives.

    The residuals, transformed image less target, go to r, (s²,); their derivatives by p go to J,
    (6, s²).
    """
    side = len(spline) - 2 * PADDING
    centre = (side - 1) / 2.0
    cos, sin = np.cos(p[4]), np.sin(p[4])
    total, pixel = 0.0, 0
    for row in range(side):
        for col in range(side):
            u, v = col - centre, row - centre
            along, across = p[2] * u + p[5] * v, p[3] * v
            at_u, at_v = cos * along - sin * across, sin * along + cos * across
            value, du, dv = _spline_at(spline, at_u + p[0] + centre, at_v + p[1] + centre)
            r[pixel] = value - target[pixel]
            total += r[pixel] * r[pixel]
            forward, sideways = du * cos + dv * sin, dv * cos - du * sin
            J[0, pixel], J[1, pixel] = du, dv
            J[2, pixel], J[3, pixel] = forward * u, sideways * v
            J[4, pixel], J[5, pixel] = dv * at_u - du * at_v, forward * v
            pixel += 1
    return total


@compiled(fastmath=True)
def _spline_at(spline: Floats, u: float, v: float) -> tuple[float, float, float]:
    """Return a padded cubic spline and its derivatives at column u and row v.

    Beyond the border the spline is constant, and so its derivative across the border is zero.
    """
    last = len(spline) - 2 * PADDING - 1
    inside_u, inside_v = 0.0 <= u <= last, 0.0 <= v <= last
    u, v = min(max(u, 0.0), last), min(max(v, 0.0), last)
    col, row = int(u), int(v)
    weights_u, slopes_u = _weights(u - col)
    weights_v, slopes_v = _weights(v - row)
    value, du, dv = 0.0, 0.0, 0.0
    for a in range(4):
        line = spline[row + PADDING - 1 + a]
        here, slope = 0.0, 0.0
        for b in range(4):
            coefficient = line[col + PADDING - 1 + b]
            here += weights_u[b] * coefficient
            slope += slopes_u[b] * coefficient
        value += weights_v[a] * here
        du += weights_v[a] * slope
        dv += slopes_v[a] * here
    return value, du if inside_u else 0.0, dv if inside_v else 0.0


@compiled
def _weights(
    t: float,
) -> tuple[tuple[float, float, float, float], tuple[float, float, float, float]]:
    """Return the values and the slopes of the four cubic B-splines at t in [0, 1] past a knot."""
    s = 1.0 - t
    weights = (
        s * s * s / 6.0,
        2.0 / 3.0 - t * t * (1.0 - 0.5 * t),
        2.0 / 3.0 - s * s * (1.0 - 0.5 * s),
        t * t * t / 6.0,
    )
    slopes = (-0.5 * s * s, t * (1.5 * t - 2.0), s * (2.0 - 1.5 * s), 0.5 * t * t)
    return weights, slopes
