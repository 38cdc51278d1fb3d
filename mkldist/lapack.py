"""The Cholesky factorisation of LAPACK, in place and beside other threads.

The wrappers of numpy copy a matrix twice, those of scipy hold the interpreter's lock.  Both cost as
much as the factorisation of a matrix of some hundred rows.
"""

from __future__ import annotations

import ctypes

import numpy as np
import scipy.linalg.cython_lapack  # noqa: F401 - the library whose function is called
from numba.extending import get_cython_function_address

from mkldist.arrays import Floats

_INT = ctypes.POINTER(ctypes.c_int)
_dpotrf = ctypes.CFUNCTYPE(None, ctypes.c_char_p, _INT, ctypes.c_void_p, _INT, _INT)(
    get_cython_function_address("scipy.linalg.cython_lapack", "dpotrf")
)


def has_cholesky_factor(matrix: Floats, shift: float) -> bool:
    """Return True if ``matrix + shift I`` has a Cholesky factor, far cheaper than eigenvalues.

    Parameters
    ----------
    matrix : (n, n) float64
        A symmetric matrix; not changed.  One triangle counts.
    shift : float
        Number to add to the diagonal.
    """
    factor = np.array(matrix, dtype=np.float64, order="C")
    factor.flat[:: len(factor) + 1] += shift
    order, info = ctypes.c_int(len(factor)), ctypes.c_int(0)
    _dpotrf(b"L", order, factor.ctypes.data, order, info)
    return info.value == 0
