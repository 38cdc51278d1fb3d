"""Kernel functions of differences of points: Gaussian, Laplacian, Matérn, periodic, additive.

Matérn kernel of smoothness ν and width s: ``k = 2^(1-ν) / Γ(ν) t^ν K_ν(t)`` with
``t = sqrt(2ν) |x - z| / s`` and K_ν the modified Bessel function of the second kind: Rasmussen and
Williams, Gaussian Processes for Machine Learning, 2006, equation 4.14.  For ν = 1/2, 3/2 and 5/2 it
is a polynomial times an exponential, equation 4.17.

Periodic kernel: on one feature it is scikit-learn's ``ExpSineSquared``: MacKay, Introduction to
Gaussian Processes, 1998, equation 47.  On several it is the product over features, which is
positive definite; the function of the Euclidean distance is not.

Additive kernel: the mean over features of Cauchy kernels.  Its functions are sums of functions of
one feature each: Duvenaud, Nickisch and Rasmussen, Additive Gaussian Processes, 2011, of order 1.
A Cauchy kernel is positive definite, for its Fourier transform is an exponential, and takes no
exponential itself, of which there would be one a feature.
"""

from __future__ import annotations

import math

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled
from mkldist.kernel_functions.bases import (
    CITY_BLOCK,
    SQUARED_DISTANCE,
    Base,
    Tile,
    accumulate,
    exponential,
)
from mkldist.kernel_functions.definition import WIDTH, KernelFunction, Parameter


def _gaussian(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write ``exp(-|x - z|² / (2 width²))`` to `out`."""
    np.multiply(tile.base(SQUARED_DISTANCE), -0.5 / width**2, out=out)
    exponential(out)


GAUSSIAN = KernelFunction(
    "gaussian",
    code=0,
    formula="exp(-|x-z|^2 / (2 s^2))",
    values=_gaussian,
    parameters=(WIDTH,),
    base=SQUARED_DISTANCE,
)


def _laplacian(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write ``exp(-|x - z|₁ / width)`` to `out`."""
    np.multiply(tile.base(CITY_BLOCK), -1.0 / width, out=out)
    exponential(out)


LAPLACIAN = KernelFunction(
    "laplacian-rbf",
    code=3,
    formula="exp(-|x-z|_1 / s)",
    values=_laplacian,
    parameters=(WIDTH,),
    base=CITY_BLOCK,
)


NU = Parameter(
    "nu",
    "Smoothness; 0.5, 1.5 and 2.5 are fastest.",
    "positive",
    default=1.5,
    largest=20.0,  # with more, the Bessel function overflows at distances that are not small
    example="[0.5, 1.5, 2.5]",
)
FAR = 2000.0  # a kernel is 0 beyond it, and its factors stay in the range of float64


def _matern(tile: Tile, width: float, nu: float, out: Floats) -> None:
    """Write the values of a width and a smoothness to `out`."""
    np.sqrt(tile.base(SQUARED_DISTANCE), out=out)
    out *= math.sqrt(2.0 * nu) / width
    np.minimum(out, FAR, out=out)
    if nu == 0.5:
        exponential(np.negative(out, out=out))
    elif nu == 1.5:
        polynomial = 1.0 + out
        exponential(np.negative(out, out=out))
        out *= polynomial
    elif nu == 2.5:
        polynomial = 1.0 + out + out * out / 3.0
        exponential(np.negative(out, out=out))
        out *= polynomial
    else:
        _bessel(nu, out)


def _bessel(nu: float, out: Floats) -> None:
    """Turn ``t = sqrt(2ν) |x - z| / s`` into ``2^(1-ν) / Γ(ν) t^ν K_ν(t)``, in place.

    The factors are multiplied as logarithms, since each of them leaves the range of float64 where
    their product does not.  Where even K_ν does, t is so small that the kernel is 1 to rounding.
    """
    import scipy

    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.log(scipy.special.kve(nu, out)) - out
        logarithms += nu * np.log(out)
    logarithms += (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
    at_zero = ~np.isfinite(logarithms) & (out < 1.0)
    exponential(np.minimum(logarithms, 0.0, out=out))
    out[at_zero] = 1.0


MATERN = KernelFunction(
    "matern",
    code=4,
    formula="2^(1-nu) / Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) |x-z| / s",
    values=_matern,
    parameters=(WIDTH, NU),
    base=SQUARED_DISTANCE,
    note="Between the exponential of the distance, nu = 0.5, and the Gaussian, large nu.",
)


PERIOD = Parameter("period", "Periods p, in units of the features.", "positive", example="1")


def _squared_sines(left: Floats, right: Floats, period: float, out: Floats) -> None:
    """Write ``sum_j sin²(π (x_j - z_j) / period)`` of every pair to `out`."""

    def write(x: Floats, z: Floats, term: Floats) -> None:
        np.subtract(x, z, out=term)
        term *= np.pi / period
        np.sin(term, out=term)
        np.square(term, out=term)

    accumulate(left, right, out, write)


SQUARED_SINES = Base("sum_j sin^2(pi (x_j-z_j) / p)", _squared_sines, is_distance=True)


def _periodic(tile: Tile, width: float, period: float, out: Floats) -> None:
    """Write ``exp(-2 sum_j sin²(π (x_j - z_j) / period) / width²)`` to `out`."""
    np.multiply(tile.base(SQUARED_SINES, period), -2.0 / width**2, out=out)
    exponential(out)


PERIODIC = KernelFunction(
    "periodic",
    code=5,
    formula="exp(-2 sum_j sin^2(pi (x_j-z_j) / p) / s^2)",
    values=_periodic,
    parameters=(WIDTH, PERIOD),
    base=SQUARED_SINES,
    note="Scaling of the features scales the period: it counts in their units as kernels see them.",
)


def _cauchy_sums(left: Floats, right: Floats, width: float, out: Floats) -> None:
    """Write ``sum_j 1 / (1 + (x_j - z_j)² / width²)`` of every pair to `out`."""
    _add_features(left / width, np.ascontiguousarray(right.T) / width, out)


@compiled(fastmath={"contract"})
def _add_features(left: Floats, columns: Floats, out: Floats) -> None:
    """Write the sums at width 1 for points (r, s) and features (s, c).

    The loop is vectorised, for unlike ``/`` the division of numpy asks for no zeros.
    """
    for i in range(len(left)):
        row = out[i]
        for j in range(len(row)):
            row[j] = 0.0
        for s in range(len(columns)):
            x, z = left[i, s], columns[s]
            for j in range(len(row)):
                row[j] = row[j] + np.divide(1.0, 1.0 + (x - z[j]) * (x - z[j]))


CAUCHY_SUMS = Base("sum_j 1 / (1 + (x_j-z_j)^2 / s^2)", _cauchy_sums, norm=math.inf)


def _additive(tile: Tile, width: float, second: float, out: Floats) -> None:
    """Write the mean over the features of ``1 / (1 + (x_j - z_j)² / width²)`` to `out`."""
    np.multiply(tile.base(CAUCHY_SUMS, width), 1.0 / tile.left.shape[1], out=out)


ADDITIVE = KernelFunction(
    "additive",
    code=12,
    formula="mean_j 1 / (1 + (x_j-z_j)^2 / s^2)",
    values=_additive,
    parameters=(WIDTH,),
    base=CAUCHY_SUMS,
    note="For sums of functions of single features, in one kernel.",
)
