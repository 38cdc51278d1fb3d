"""Work on many kernels at once, some of them side by side in threads of this process."""

from __future__ import annotations

from collections.abc import Callable

from mkldist.blas_threads import single_threaded
from mkldist.processors import n_processors

FEW_ENTRIES = 2**20  # entries of matrices that one thread has done before others have started
PART_ENTRIES = 2**19
MOST_THREADS = 8


def side_by_side(work: Callable[[slice], None], n_kernels: int, entries: int) -> None:
    """Call ``work(kernels)`` for parts of all kernels, in a few threads.

    Beside other threads, each has one thread of linear algebra.

    Parameters
    ----------
    work : callable
        Work on a slice of kernels, which releases the interpreter's lock.
    n_kernels : int
        Number M of kernels.
    entries : int
        Entries of one kernel's matrix.

    Raises
    ------
    Exception
        The first exception in the order of the kernels; parts that have not begun are dropped.
    """
    step = max(1, PART_ENTRIES // entries)
    parts = [slice(at, min(at + step, n_kernels)) for at in range(0, n_kernels, step)]
    threads = min(n_processors(), MOST_THREADS, len(parts))
    if threads == 1 or n_kernels * entries < FEW_ENTRIES:
        for part in parts:
            work(part)
        return
    from concurrent.futures import ThreadPoolExecutor

    with single_threaded(), ThreadPoolExecutor(threads, "mkldist-grams") as pool:
        futures = [pool.submit(work, part) for part in parts]
        try:
            for future in futures:
                future.result()
        finally:
            pool.shutdown(cancel_futures=True)
