"""Banks of thin factors for Python: their settings, and the factors with which they begin."""

from __future__ import annotations

from mkldist.counted import counted
from mkldist.errors import DataError
from mkldist.gram.factored_kernels import (
    FactoredKernels,
    begin_factors,
    first_bytes,
    limits_of,
)
from mkldist.gram.sources import BankSource
from mkldist.in_memory.side_by_side import MOST_THREADS
from mkldist.machine_memory import GIB, SHARE_OF_MEMORY, physical_memory
from mkldist.processors import n_processors
from mkldist.spec.banks import BankSpec


def factored(source: BankSource, spec: BankSpec, seed: int) -> FactoredKernels:
    """Factorise all kernels to few columns, several side by side, in half of the memory.

    Raises
    ------
    mkldist.errors.DataError
        If these factors might not fit in memory.
    mkldist.errors.GramError
        If a kernel has values that are not finite.
    """
    most = int(SHARE_OF_MEMORY * physical_memory())
    limits = limits_of(spec, most)
    n, M, threads = source.n_points, source.n_kernels, min(n_processors(), MOST_THREADS)
    needed = first_bytes(M, n, limits, threads)
    if needed > most:
        raise DataError(
            "backend",
            f"'factors' of rank {limits.first(n)} for {counted(M, 'kernel')} on {n} points, "
            f"which take up to {needed / GIB:.1f} GiB",
            f"at most {most / GIB:.1f} GiB, half of this machine's memory",
            "Lower rank",
        )
    return begin_factors(source, limits, seed, threads)
