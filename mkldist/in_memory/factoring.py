"""Banks of thin factors for Python: their settings, and the factors of all kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.blas_threads import single_threaded
from mkldist.counted import counted
from mkldist.data.raw import GIB, SHARE_OF_MEMORY, physical_memory
from mkldist.errors import DataError, SpecError
from mkldist.gram.factor_bank import FactorBank, factorised
from mkldist.gram.sources import BankSource
from mkldist.in_memory.side_by_side import processors, side_by_side
from mkldist.optim.pivoted_cholesky import PivotedFactor, factor_bytes

FACTORS = "factors"
RANK, TOLERANCE = 500, 1e-3


@dataclass(frozen=True)
class Factoring:
    """Settings of the factors of a bank.

    Parameters
    ----------
    rank : int
        Most columns of a factor.
    tolerance : float
        Share of a kernel's trace that its factor may lack.
    """

    rank: int = RANK
    tolerance: float = TOLERANCE

    @classmethod
    def of(cls, backend: str, rank: Any, tolerance: Any, dtype: str) -> Factoring | None:
        """Return the settings that a user gives, checked; None for other backends.

        Raises
        ------
        mkldist.errors.SpecError
            For values that are no rank and no tolerance, and for those of other backends.
        """
        if backend != FACTORS:
            for name, value in (("rank", rank), ("tolerance", tolerance)):
                if value is not None:
                    found = f"{value!r} with backend={backend!r}"
                    raise SpecError(name, found, f"none, or backend={FACTORS!r}")
            return None
        if dtype == "float32":
            found = f"'float32' with backend={FACTORS!r}"
            raise SpecError("dtype", found, "'float64', in which factors are kept")
        if rank is not None and (not isinstance(rank, int | np.integer) or rank < 1):
            raise SpecError("rank", f"{rank!r:.60}", "a number of columns, at least 1")
        if tolerance is not None and not (
            isinstance(tolerance, int | float) and 0.0 <= tolerance < 1.0
        ):
            raise SpecError("tolerance", f"{tolerance!r:.60}", "a share of the trace in [0, 1)")
        return cls(
            RANK if rank is None else int(rank),
            TOLERANCE if tolerance is None else float(tolerance),
        )


def factored(source: BankSource, factoring: Factoring, seed: int) -> FactorBank:
    """Factorise all kernels, several side by side.

    Raises
    ------
    mkldist.errors.DataError
        If factors of full rank would not fit in memory.
    mkldist.errors.GramError
        If a kernel has values that are not finite.
    """
    n, M = source.n_points, source.n_kernels
    rank = min(factoring.rank, n)
    _require_fit(n, M, rank)
    found: list[PivotedFactor | None] = [None] * M

    def work(kernels: slice) -> None:
        for m in range(kernels.start, kernels.stop):
            found[m] = factorised(source, m, rank=rank, tolerance=factoring.tolerance, seed=seed)

    with single_threaded():
        side_by_side(work, M, n * rank)
    return FactorBank([factor for factor in found if factor is not None])


def _require_fit(n_points: int, n_kernels: int, rank: int) -> None:
    """Raise DataError unless memory holds factors of this rank, and those in the making."""
    needed = (n_kernels + processors()) * factor_bytes(n_points, rank)
    limit = SHARE_OF_MEMORY * physical_memory()
    if needed > limit:
        raise DataError(
            "backend",
            f"'factors' of rank {rank} for {counted(n_kernels, 'kernel')} on {n_points} points, "
            f"which take up to {needed / GIB:.1f} GiB",
            f"at most {limit / GIB:.1f} GiB, half of this machine's memory",
            "Lower rank",
        )
