"""Matérn kernel of smoothness ν and width s.

``k = 2^(1-ν) / Γ(ν) t^ν K_ν(t)`` with ``t = sqrt(2ν) |x - z| / s`` and K_ν the modified Bessel
function of the second kind: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006,
equation 4.14.  For ν = 1/2, 3/2 and 5/2 it is a polynomial times an exponential, equation 4.17.
"""

from __future__ import annotations

import math

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import SQUARED_DISTANCE
from mkldist.kernel_functions.definition import WIDTH, KernelFunction, Parameter
from mkldist.kernel_functions.exponential import exponential
from mkldist.kernel_functions.tile import Tile

NU = Parameter(
    "nu",
    "Smoothness; 0.5, 1.5 and 2.5 are fastest.",
    "positive",
    default=1.5,
    largest=20.0,  # with more, the Bessel function overflows at distances that are not small
    example="[0.5, 1.5, 2.5]",
)
FAR = 2000.0  # a kernel is 0 beyond it, and its factors stay in the range of float64


def values(tile: Tile, width: float, nu: float, out: Floats) -> None:
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


FUNCTION = KernelFunction(
    "matern",
    code=4,
    formula="2^(1-nu) / Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) |x-z| / s",
    values=values,
    parameters=(WIDTH, NU),
    base=SQUARED_DISTANCE,
    note="Between the exponential of the distance, nu = 0.5, and the Gaussian, large nu.",
)
