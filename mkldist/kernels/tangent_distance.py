"""Two-sided tangent distances between square images, which small deformations hardly change.

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

References
----------
P. Simard, Y. LeCun, J. Denker, Efficient pattern recognition using a new transformation distance,
NIPS 5, 1993 (the distance and its deformations).
P. Simard, Y. LeCun, J. Denker, B. Victorri, Transformation invariance in pattern recognition:
tangent distance and tangent propagation, in Neural Networks: Tricks of the Trade, 1998 (tangents
of a smoothed image, elasticity).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import scipy

from mkldist.core.arrays import Floats
from mkldist.errors import DataError

AFFINE = ("shift-u", "shift-v", "scale", "rotation", "stretch", "shear")
DEFORMATIONS = (*AFFINE, "thickness")

SMOOTHING = 0.9  # standard deviation of the Gaussian, in pixels
SPRING = 1e-3
# Tangents of length 1 count as linearly dependent where a singular value is below this share of
# the largest one.
DEPENDENT = 1e-6
# Derivatives below this share of the largest pixel are rounding errors of a flat image.
ROUNDING = 1e-13
BLOCK = 128  # images on either side of a block, whose arrays take some tens of MiB


def image_side(n_features: int) -> int:
    """Return the side s of square images of s² pixels.

    Raises
    ------
    DataError
        If `n_features` is not a square.

    Examples
    --------
    >>> image_side(256)
    16
    """
    side = math.isqrt(n_features)
    if side < 1 or side * side != n_features:
        raise DataError(
            "x",
            f"{n_features} features",
            "square images of s² pixels, such as 256 = 16²",
            "Set drop_constant = false for images; set distance = 'euclidean' for other data",
        )
    return side


def tangent_vectors(x: Floats, deformations: Sequence[str] = DEFORMATIONS) -> Floats:
    """Return the derivative of each image by the parameter of each deformation.

    Parameters
    ----------
    x : (n, s²) float64
        Square images, row by row of pixels.
    deformations : sequence of str
        Names of k of the :data:`DEFORMATIONS`.

    Returns
    -------
    (n, k, s²) float64

    Raises
    ------
    DataError
        If the images are not square.
    """
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


def tangent_bases(x: Floats, deformations: Sequence[str] = DEFORMATIONS) -> Floats:
    """Return orthonormal bases of the tangents of each image.

    Parameters
    ----------
    x : (n, s²) float64
        Square images.
    deformations : sequence of str
        Names of k of the :data:`DEFORMATIONS`.

    Returns
    -------
    (n, k, s²) float64
        Orthonormal rows, then rows of zeros in place of linearly dependent tangents; all rows of a
        blank image are zero.
    """
    vectors = tangent_vectors(x, deformations)
    lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    _, sizes, bases = np.linalg.svd(vectors, full_matrices=False)
    kept = sizes > DEPENDENT * np.maximum(sizes[:, :1], 1.0)
    rows: Floats = np.zeros_like(vectors)
    rows[:, : bases.shape[1]] = bases * kept[:, :, None]
    return rows


def two_sided_distances(
    x: Floats, deformations: Sequence[str] = DEFORMATIONS, spring: float = SPRING
) -> Floats:
    """Return the two-sided tangent distances between all images.

    Parameters
    ----------
    x : (n, s²) float64
        Square images.
    deformations : sequence of str
        Names of the deformations of both images.
    spring : float
        Price of a deformation's squared length, positive.

    Returns
    -------
    (n, n) float64
        Symmetric, zero between equal images, not larger than the Euclidean distances.
    """
    bases = tangent_bases(x, deformations)
    out = np.empty((len(x), len(x)))
    for rows in _blocks(len(x)):
        for cols in _blocks(len(x), rows.start):
            squares: Floats = scipy.spatial.distance.cdist(x[rows], x[cols], "sqeuclidean")
            squares -= _explained(x[rows], x[cols], bases[rows], bases[cols], 1.0 + spring)
            if rows == cols:
                squares = np.triu(squares, 1)
                squares += squares.T
            out[rows, cols] = _roots(squares)
            out[cols, rows] = out[rows, cols].T
    return out


def _explained(x: Floats, z: Floats, of_x: Floats, of_z: Floats, mu: float) -> Floats:
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


def _roots(squares: Floats) -> Floats:
    """Return square roots, in place; values that rounding made negative count as zero."""
    np.maximum(squares, 0.0, out=squares)
    return np.sqrt(squares, out=squares)


def _blocks(n: int, start: int = 0) -> Iterator[slice]:
    """Yield slices of :data:`BLOCK` from `start` to `n`."""
    for first in range(start, n, BLOCK):
        yield slice(first, min(first + BLOCK, n))
