"""The Cholesky factorisation of LAPACK, in place and beside other threads.

The wrappers of numpy copy a matrix twice, those of scipy hold the interpreter's lock.  Both cost as
much as the factorisation of a matrix of some hundred rows.  Small
matrices are left to numpy, because the import of scipy's LAPACK takes a fifth of a second.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.blas_threads import limit_new_libraries

FEW_ROWS = 100  # up to so many, numpy is as fast


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
    if len(factor) > FEW_ROWS:
        return factorise(factor)
    try:
        np.linalg.cholesky(factor)
    except np.linalg.LinAlgError:
        return False
    return True


def load_for(n_rows: int) -> None:
    """Load what factorises matrices of so many rows, before threads work side by side."""
    if n_rows > FEW_ROWS:
        _dpotrf()


def factorise(matrix: Floats) -> bool:
    """Overwrite the upper triangle of a matrix by its Cholesky factor; return False without one.

    Parameters
    ----------
    matrix : (n, n) float64
        Contiguous.  Its upper triangle counts.
    """
    order, info = ctypes.c_int(len(matrix)), ctypes.c_int(0)
    _dpotrf()(b"L", order, matrix.ctypes.data, order, info)  # LAPACK's lower is the rows' upper
    return info.value == 0


@functools.cache
def _dpotrf() -> Any:
    """Return LAPACK's function, as ctypes calls it: without the interpreter's lock."""
    import scipy.linalg.cython_lapack
    from numba.extending import get_cython_function_address

    limit_new_libraries()  # the import has loaded one
    integer = ctypes.POINTER(ctypes.c_int)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, integer, ctypes.c_void_p, integer, integer)
    return kind(get_cython_function_address(scipy.linalg.cython_lapack.__name__, "dpotrf"))
