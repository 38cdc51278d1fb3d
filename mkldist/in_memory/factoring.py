"""Banks of thin factors for Python: their settings, and the factors with which they begin."""

from __future__ import annotations

from pathlib import Path

from mkldist.counted import counted
from mkldist.errors import DataError
from mkldist.gram.cache import default_directory
from mkldist.gram.factored_kernels import FactoredKernels, begin_factors, least_bytes, limits_of
from mkldist.gram.sources import BankSource
from mkldist.in_memory.side_by_side import MOST_THREADS
from mkldist.machine_memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory
from mkldist.processors import n_processors
from mkldist.spec.banks import BankSpec


def factored(
    source: BankSource, spec: BankSpec, seed: int, folder: str | Path | None = None
) -> FactoredKernels:
    """Factorise all kernels to few columns, several side by side, in half of the memory.

    Factors that do not fit there lie in a file of a folder, by default of the node cache.

    Raises
    ------
    mkldist.errors.DataError
        If not even one of these factors might fit in memory while it is made.
    mkldist.errors.GramError
        If a kernel has values that are not finite.
    mkldist.errors.OutputError
        If the folder cannot be written.
    """
    most = int(SHARE_OF_MEMORY * physical_memory())
    limits = limits_of(spec, most)
    n, threads = source.n_points, min(n_processors(), MOST_THREADS)
    needed = least_bytes(n, limits)
    if needed > most:
        raise DataError(
            "backend",
            f"'factors' of rank {limits.first(n)} on {counted(n, 'point')}, of which one takes "
            f"up to {needed / GIB:.1f} GiB while it is made",
            at_most_half(most),
            "Lower rank",
        )
    place = default_directory() if folder is None else Path(folder)
    dtype = "float32" if spec.dtype == "float32" else "float64"
    return begin_factors(source, limits, seed, threads, folder=place, dtype=dtype)
