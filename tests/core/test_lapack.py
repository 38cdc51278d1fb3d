"""Factorisations of LAPACK, against eigenvalues."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from mkldist.core.lapack import has_cholesky_factor


@pytest.mark.parametrize("n", [1, 2, 7, 64, 200])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_factor_exists_where_the_smallest_eigenvalue_is_positive(n, order):
    rng = np.random.default_rng(n)
    rotation = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.append(-0.25, rng.random(n - 1))
    matrix = np.array((rotation * values) @ rotation.T, order=order)
    given = matrix.copy()
    assert not has_cholesky_factor(matrix, 0.0)
    assert not has_cholesky_factor(matrix, 0.25 - 1e-9)
    assert has_cholesky_factor(matrix, 0.25 + 1e-9)
    np.testing.assert_array_equal(matrix, given)


def test_other_threads_run_meanwhile():
    """A thread that waits for its turn would find the factorisation done."""
    matrix = np.eye(1500) + 1.0
    done = threading.Event()

    def factorise():
        has_cholesky_factor(matrix, 0.0)
        done.set()

    thread = threading.Thread(target=factorise)
    turns = 0
    thread.start()
    while not done.is_set():
        turns += 1
    thread.join()
    assert turns > 100


FIRST = """
import numpy
from mkldist.core.blas_threads import single_threaded
from mkldist.core.lapack import has_cholesky_factor
from threadpoolctl import threadpool_info
with single_threaded():
    assert has_cholesky_factor(numpy.eye(200), 0.0)
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
print(*(pool["num_threads"] for pool in pools))
"""


def test_the_library_that_the_first_factorisation_loads_has_the_limit_of_the_others():
    """On one processor it has one thread in any case."""
    run = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) == {"1"}
