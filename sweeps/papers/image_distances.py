"""Distances between square images that deformations hardly change: tangent and affine distances.

    python sweeps/papers/image_distances.py IMAGES.npz tangent -o DISTANCES.npy

IMAGES.npz holds x, (n, s²), an image a row.  `distances` of a graph takes DISTANCES.npy, (n, n).
A table with a column `label` has --classes and --per-class, as the data set of a sweep.

A deformation that depends smoothly on a parameter moves an image x along a curve.  The tangents of
these curves at x, one for each kind of deformation, span the plane ``x + T_x a``.  The two-sided
distance of x and z is the one between their planes, with a price on the deformations:

    d²(x, z) = min_{a,b} ‖x + T_x a - z - T_z b‖² + spring (‖T_x a‖² + ‖T_z b‖²)

Coordinates u (along rows of pixels) and v (down the columns) are in pixels from the centre of the
image, and I_u, I_v are the derivatives of the image smoothed by a Gaussian:

    ==============  ====================
    shift-u         I_u
    shift-v         I_v
    scale           u I_u + v I_v
    rotation        v I_u - u I_v
    stretch         u I_u - v I_v
    shear           v I_u + u I_v
    thickness       I_u² + I_v²
    ==============  ====================

The first six span the affine transformations of the plane.  Pixels beyond the border of an image
equal the nearest pixel of the border.

The tangents of two images that look alike are nearly parallel.  Without the spring, large
deformations a and b could use the small differences of these tangents to explain any difference of
the images.  The spring is Simard's elasticity on orthonormal tangents; it keeps the distance
meaningful.

The affine distance is that after the best affine transformation of one of the images.  With x(s) an
image between its pixels and c the centre of a pixel,

    d²(x, z) = min_p sum_c (x(R(angle) [[scale_u, shear], [0, scale_v]] c + shift) - z(c))²

over the six parameters p = (shift_u, shift_v, scale_u, scale_v, angle, shear) within bounds.  The
distance of two images is the smaller one of d(x, z) and d(z, x).  The tangent distance
approximates the transformed images by a plane; this distance transforms the image itself.

A cubic spline through the pixels gives the image between them, and the nearest pixel of the border
gives it beyond the border.  A bounded Levenberg-Marquardt method starts at the identity, so that
its minimum, a local one in general, is never above the Euclidean distance.  It is sought for each
image and its 100 nearest in the tangent distance of affine deformations; other pairs, which are no
neighbours, have their Euclidean distance.  Argyriou et al. take the 20 nearest Euclidean ones.

References
----------
P. Simard, Y. LeCun, J. Denker, Efficient pattern recognition using a new transformation distance,
NIPS 5, 1993 (the distance and its deformations).
P. Simard, Y. LeCun, J. Denker, B. Victorri, Transformation invariance in pattern recognition:
tangent distance and tangent propagation, in Neural Networks: Tricks of the Trade, 1998 (tangents
of a smoothed image, elasticity).
T. Hastie, P. Simard, Metrics and models for handwritten character recognition, Statistical Science
13, 1998 (invariant distance).
A. Argyriou, M. Herbster, M. Pontil, Combining graph Laplacians for semi-supervised learning,
NIPS 18, 2005 (the transformations and bounds, and the smaller one of both distances).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import scipy
from numba import njit

AFFINE = ("shift-u", "shift-v", "scale", "rotation", "stretch", "shear")
DEFORMATIONS = (*AFFINE, "thickness")

SMOOTHING = 0.9  # standard deviation of the Gaussian, in pixels
SPRING = 1e-3
# Tangents of length 1 count as linearly dependent where a singular value is below this share of
# the largest one.
DEPENDENT = 1e-6
# Derivatives below this share of the largest pixel are rounding errors of a flat image.
ROUNDING = 1e-13
CANDIDATES = 100  # nearest in tangent distance, which may be neighbours in affine distance
BLOCK = 128  # images on either side of a block, whose arrays take some tens of MiB


def image_side(n_features: int) -> int:
    """Return the side s of square images of s² pixels."""
    side = math.isqrt(n_features)
    if side < 1 or side * side != n_features:
        raise ValueError(f"{n_features} pixels are no square image, such as 256 = 16²")
    return side


def tangent_vectors(x: np.ndarray, deformations: Sequence[str] = DEFORMATIONS) -> np.ndarray:
    """Return the tangents of each image (n, k, s²), of square images (n, s²) and k deformations."""
    side = image_side(x.shape[1])
    images = x.reshape(-1, side, side)
    along_u, along_v = (
        scipy.ndimage.gaussian_filter(images, (0, SMOOTHING, SMOOTHING), order, mode="nearest")
        for order in ((0, 0, 1), (0, 1, 0))
    )
    rounding = ROUNDING * np.abs(images).max(axis=(1, 2), keepdims=True, initial=0.0)
    for derivative in (along_u, along_v):
        derivative[np.abs(derivative) <= rounding] = 0.0
    place = np.arange(side) - (side - 1) / 2
    u, v = place[None, :], place[:, None]
    fields = {
        "shift-u": lambda: along_u,
        "shift-v": lambda: along_v,
        "scale": lambda: u * along_u + v * along_v,
        "rotation": lambda: v * along_u - u * along_v,
        "stretch": lambda: u * along_u - v * along_v,
        "shear": lambda: v * along_u + u * along_v,
        "thickness": lambda: along_u**2 + along_v**2,
    }
    vectors = np.stack([fields[name]() for name in deformations], axis=1)
    return vectors.reshape(len(x), len(deformations), -1)


def tangent_bases(x: np.ndarray, deformations: Sequence[str] = DEFORMATIONS) -> np.ndarray:
    """Return orthonormal bases of the tangents of each image, (n, k, s²).

    Rows of zeros stand in place of linearly dependent tangents; all rows of a blank image are zero.
    """
    vectors = tangent_vectors(x, deformations)
    lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    _, sizes, bases = np.linalg.svd(vectors, full_matrices=False)
    kept = sizes > DEPENDENT * np.maximum(sizes[:, :1], 1.0)
    rows: np.ndarray = np.zeros_like(vectors)
    rows[:, : bases.shape[1]] = bases * kept[:, :, None]
    return rows


def two_sided_distances(
    x: np.ndarray, deformations: Sequence[str] = DEFORMATIONS, spring: float = SPRING
) -> np.ndarray:
    """Return the two-sided tangent distances (n, n) between all square images (n, s²).

    They are zero between equal images, and not larger than the Euclidean distances.  `spring` > 0
    is the price of a deformation's squared length.
    """
    bases = tangent_bases(x, deformations)
    out = np.empty((len(x), len(x)))
    for rows in _blocks(len(x)):
        for cols in _blocks(len(x), rows.start):
            squares: np.ndarray = scipy.spatial.distance.cdist(x[rows], x[cols], "sqeuclidean")
            squares -= _explained(x[rows], x[cols], bases[rows], bases[cols], 1.0 + spring)
            if rows == cols:
                squares = np.triu(squares, 1)
                squares += squares.T
            out[rows, cols] = _roots(squares)
            out[cols, rows] = out[rows, cols].T
    return out


def _explained(
    x: np.ndarray, z: np.ndarray, of_x: np.ndarray, of_z: np.ndarray, mu: float
) -> np.ndarray:
    """Return the reduction of the squared distances of x and z by deformations, (r, c).

    With Q_x and Q_z the bases as columns, C = Q_x'Q_z, p = Q_x'(x - z) and q = Q_z'(x - z), the
    reduction is ``(p, -q)' M⁻¹ (p, -q)`` for ``M = [[mu I, -C], [-C', mu I]]`` and mu = 1 + spring.
    Elimination of the first block leaves one system with the matrix S.
    """
    k, n_pixels = of_x.shape[1:]
    flat_x, flat_z = of_x.reshape(-1, n_pixels), of_z.reshape(-1, n_pixels)
    C = (flat_x @ flat_z.T).reshape(len(x), k, len(z), k).transpose(0, 2, 1, 3)
    p = np.einsum("iks,is->ik", of_x, x)[:, None, :] - (of_x @ z.T).transpose(0, 2, 1)
    q = (of_z @ x.T).transpose(2, 0, 1) - np.einsum("jks,js->jk", of_z, z)[None]
    S = mu * np.eye(k) - C.swapaxes(2, 3) @ C / mu
    rest = q - np.einsum("ijkl,ijk->ijl", C, p) / mu
    solved = np.linalg.solve(S, rest[..., None])[..., 0]
    reduction = np.einsum("ijk,ijk->ij", p, p) / mu + np.einsum("ijk,ijk->ij", rest, solved)
    return np.asarray(reduction, dtype=np.float64)


def _roots(squares: np.ndarray) -> np.ndarray:
    """Return square roots, in place; values that rounding made negative count as zero."""
    np.maximum(squares, 0.0, out=squares)
    return np.sqrt(squares, out=squares)


def _blocks(n: int, start: int = 0) -> Iterator[slice]:
    """Yield slices of :data:`BLOCK` from `start` to `n`."""
    for first in range(start, n, BLOCK):
        yield slice(first, min(first + BLOCK, n))


SHIFT_OF_SIDE = 1 / 8  # largest shift: two pixels of an image of side 16
IDENTITY = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
# Bounds of |p - identity|; those of the shifts follow from the side of the images.
REACH = np.array([0.0, 0.0, 0.1, 0.1, 0.2, 0.1])
MAX_STEPS = 50
# A step that lowers the squared distance by less than this share ends the search.
PROGRESS = 1e-4
FIRST_DAMPING, MOST_DAMPING = 1e-2, 1e3
ABOVE_ALL = 1e300  # a squared distance above all; the compiler assumes that none is infinite
# Share of the trace that is added to the diagonal, which is zero for parameters without effect;
# SMALLEST keeps it positive if no parameter has an effect.
LEAST_DAMPING = 1e-12
SMALLEST = 1e-290
# Rows of the scratch: the residuals and their derivatives; the normal equations and a factor of the
# damped ones; the parameters, those after the next step, and 1 for those that are not held.
RESIDUAL, DERIVATIVES, HESSIAN, FACTOR = 0, 1, 7, 13
GRADIENT, PARAMETERS, TRIAL, FREE = 19, 20, 21, 22
PADDING = 2  # pixels beyond the border whose spline coefficients the pixels of the border need


def candidates(x: np.ndarray) -> np.ndarray | None:
    """Return which pairs may be neighbours in affine distance, (n, n); None for all."""
    if len(x) <= CANDIDATES:
        return None
    tangent = two_sided_distances(x, AFFINE)
    nearest = np.argpartition(tangent, CANDIDATES, axis=1)[:, : CANDIDATES + 1]
    pairs = np.zeros(tangent.shape, dtype=np.bool_)
    np.put_along_axis(pairs, nearest, True, axis=1)
    return pairs


def affine_distances(x: np.ndarray, pairs: np.ndarray | None = None) -> np.ndarray:
    """Return the affine-transformation distances (n, n) between square images (n, s²).

    They are zero between equal images, and not larger than the Euclidean distances, which other
    pairs than `pairs`, in either order, have.
    """
    side = image_side(x.shape[1])
    squares: np.ndarray = scipy.spatial.distance.cdist(x, x, "sqeuclidean")
    wanted = np.ones(squares.shape, dtype=np.bool_) if pairs is None else pairs | pairs.T
    reach = REACH.copy()
    reach[:2] = side * SHIFT_OF_SIDE
    low, high = IDENTITY - reach, IDENTITY + reach
    scratch = np.empty((FREE + 1, max(x.shape[1], 6)))
    for i, image in enumerate(x.reshape(-1, side, side)):
        spline = np.pad(
            scipy.ndimage.spline_filter(image, 3, mode="mirror"), PADDING, mode="reflect"
        )
        others = np.flatnonzero(wanted[i] & (squares[i] > 0.0))
        _best_squares(spline, x, others, low, high, squares[i], scratch)
    np.minimum(squares, squares.T, out=squares)
    return np.asarray(np.sqrt(squares), dtype=np.float64)


@njit(fastmath=True)
def _best_squares(
    spline: np.ndarray,
    targets: np.ndarray,
    others: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    squares: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Lower the squared distances of one image to others, in place, by transforming the image."""
    p, trial = scratch[PARAMETERS], scratch[TRIAL]
    for j in others:
        for a in range(6):
            trial[a] = 0.5 * (low[a] + high[a])  # the identity
        best, damping = ABOVE_ALL, FIRST_DAMPING
        for _ in range(MAX_STEPS + 1):
            value = _linearise(spline, targets[j], trial, scratch)
            if value < best:
                progress = best - value
                best = value
                for a in range(6):
                    p[a] = trial[a]
                if progress <= PROGRESS * best:
                    break
                _form_equations(targets.shape[1], scratch)
                damping *= 0.1
            elif damping < MOST_DAMPING:
                damping *= 10.0
            else:
                break
            _damped_step(low, high, damping, scratch)
        squares[j] = min(best, squares[j])


@njit(fastmath=True)
def _form_equations(n_pixels: int, scratch: np.ndarray) -> None:
    """Write the lower half of ``J J'`` and ``J r``."""
    r = scratch[RESIDUAL]
    for a in range(6):
        row, total = scratch[DERIVATIVES + a], 0.0
        for pixel in range(n_pixels):
            total += row[pixel] * r[pixel]
        scratch[GRADIENT, a] = total
        for b in range(a + 1):
            other, total = scratch[DERIVATIVES + b], 0.0
            for pixel in range(n_pixels):
                total += row[pixel] * other[pixel]
            scratch[HESSIAN + a, b] = total


@njit
def _damped_step(low: np.ndarray, high: np.ndarray, damping: float, scratch: np.ndarray) -> None:
    """Write the parameters after a damped Gauss-Newton step, clipped to their bounds.

    A parameter stays fixed if it is at a bound and its gradient points out of the bounds.  The
    equations are solved by Cholesky's factorisation.
    """
    H, L = scratch[HESSIAN:FACTOR], scratch[FACTOR:GRADIENT]
    g, p, step, free = scratch[GRADIENT], scratch[PARAMETERS], scratch[TRIAL], scratch[FREE]
    least = SMALLEST
    for a in range(6):
        least += LEAST_DAMPING * H[a, a]
    for a in range(6):  # L L' is the damped matrix, and L step = -g
        leaves = (p[a] <= low[a] and g[a] > 0.0) or (p[a] >= high[a] and g[a] < 0.0)
        free[a] = 0.0 if leaves else 1.0
        for b in range(a + 1):
            entry = free[a] * free[b] * H[a, b]
            if a == b:
                entry += damping * entry + least
            for c in range(b):
                entry -= L[a, c] * L[b, c]
            L[a, b] = entry / L[b, b] if a > b else math.sqrt(max(entry, least))
        rest = -free[a] * g[a]
        for b in range(a):
            rest -= L[a, b] * step[b]
        step[a] = rest / L[a, a]
    for a in range(5, -1, -1):  # L' step
        rest = step[a]
        for b in range(a + 1, 6):
            rest -= L[b, a] * step[b]
        step[a] = rest / L[a, a]
    for a in range(6):
        step[a] = min(max(p[a] + step[a], low[a]), high[a])


@njit(fastmath=True)
def _linearise(spline: np.ndarray, target: np.ndarray, p: np.ndarray, scratch: np.ndarray) -> float:
    """Return the squared distance at p, and write its residuals and their derivatives by p.

    A residual is a pixel of the transformed image less that of the target.
    """
    side = len(spline) - 2 * PADDING
    centre = (side - 1) / 2.0
    cos, sin = math.cos(p[4]), math.sin(p[4])
    total, pixel = 0.0, 0
    for row in range(side):
        for col in range(side):
            u, v = col - centre, row - centre
            along, across = p[2] * u + p[5] * v, p[3] * v
            at_u, at_v = cos * along - sin * across, sin * along + cos * across
            value, du, dv = _spline_at(spline, at_u + p[0] + centre, at_v + p[1] + centre)
            residual = value - target[pixel]
            total += residual * residual
            forward, sideways = du * cos + dv * sin, dv * cos - du * sin
            scratch[RESIDUAL, pixel] = residual
            scratch[DERIVATIVES, pixel] = du
            scratch[DERIVATIVES + 1, pixel] = dv
            scratch[DERIVATIVES + 2, pixel] = forward * u
            scratch[DERIVATIVES + 3, pixel] = sideways * v
            scratch[DERIVATIVES + 4, pixel] = dv * at_u - du * at_v
            scratch[DERIVATIVES + 5, pixel] = forward * v
            pixel += 1
    return total


@njit(fastmath=True)
def _spline_at(spline: np.ndarray, u: float, v: float) -> tuple[float, float, float]:
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


@njit
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


def images_of(path: str, classes: Sequence[str], per_class: int | None) -> np.ndarray:
    """Return images of an archive, or those of a table that a sweep with the seed 0 takes."""
    if path.endswith(".npz"):
        with np.load(path) as archive:
            return np.asarray(archive["x"], dtype=np.float64)
    table = pd.read_csv(path)
    labels = table.pop("label").astype(str).to_numpy()
    rows = [np.flatnonzero(labels == name) for name in classes or np.unique(labels)]
    if per_class is not None:
        rng = np.random.default_rng([0, per_class])
        rows = [rng.choice(of_class, per_class, replace=False) for of_class in rows]
    return table.to_numpy(dtype=np.float64)[np.sort(np.concatenate(rows))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the distances of the images of a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images", help=".npz file of x, (n, s²); or a table with a column label")
    parser.add_argument("distance", choices=("tangent", "affine"))
    parser.add_argument("-o", "--output", required=True, help=".npy file to write, (n, n)")
    parser.add_argument("--classes", nargs="+", default=(), help="of a table, in ascending order")
    parser.add_argument("--per-class", type=int, help="images to draw of each class of a table")
    given = parser.parse_args(arguments)
    try:
        x = images_of(given.images, given.classes, given.per_class)
        image_side(x.shape[1])
    except (OSError, KeyError, ValueError, IndexError) as error:
        parser.error(f"{given.images}: {error}")
    if given.distance == "tangent":
        np.save(given.output, two_sided_distances(x))
    else:
        np.save(given.output, affine_distances(x, candidates(x)))


if __name__ == "__main__":
    main()
