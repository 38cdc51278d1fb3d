"""Functions expanded in kernels on the points of a source, some rows of values at a time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.blas_threads import single_threaded
from mkldist.gram.bank import PassCounter
from mkldist.gram.point_products import point_products
from mkldist.gram.sources import BankSource, check_finite

VALUES = 2**22  # kernel values that a thread has at once


def expansion(
    source: BankSource,
    weights: Floats,
    vectors: Floats,
    counter: PassCounter,
    threads: int,
    rows: Ints | None = None,
) -> Floats:
    """Return some rows of ``sum_m w_m K_m V``, (r, R).

    Parameters
    ----------
    source : BankSource
        Source of the values.
    weights : (M,) float64
        Weights of the kernels; those of weight zero are not computed.
    vectors : (n, R) float64
        V; no values are computed for its rows of zeros.
    counter : PassCounter
        Work done, to which that of this function is added.
    threads : int
        Parts that are computed at the same time.
    rows : (r,) intp, optional
        The rows; None for all.

    Raises
    ------
    mkldist.errors.GramError
        If a kernel has values that are not finite.
    """
    used, kernels = np.flatnonzero(vectors.any(axis=1)), np.flatnonzero(weights)
    asked = np.arange(len(vectors)) if rows is None else rows
    whole = point_products(source, counter, threads)
    if whole is not None:
        return whole.expansion(kernels, weights[kernels], vectors, asked)
    n, of_used = len(asked), vectors[used]
    found = np.zeros((n, vectors.shape[1]))
    step = max(1, VALUES // max(len(used), 1))

    def work(start: int) -> float:
        begun = time.thread_time()
        part = slice(start, start + step)
        for kernel in kernels.tolist():
            values = source.between(kernel, asked[part], used)
            check_finite(values.reshape(1, -1), kernel, source)
            found[part] += weights[kernel] * (values @ of_used)
        return time.thread_time() - begun

    with single_threaded(), ThreadPoolExecutor(threads, "mkldist-expansions") as pool:
        seconds = sum(pool.map(work, range(0, n if len(used) else 0, step)))
    counter.bytes_computed += 8 * len(kernels) * len(used) * n
    counter.threads_cpu_seconds += seconds
    return found
