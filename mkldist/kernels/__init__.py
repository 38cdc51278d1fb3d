"""Kernel functions and families.  For Python: Gaussian, Laplacian, Polynomial, Linear, Precomputed.

These names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkldist.kernels.precomputed import Precomputed
    from mkldist.kernels.words import Gaussian, Laplacian, Linear, Polynomial

__all__ = ["Gaussian", "Laplacian", "Linear", "Polynomial", "Precomputed"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "Precomputed":
        import mkldist.kernels.precomputed as precomputed

        return precomputed.Precomputed
    import mkldist.kernels.words as words

    return getattr(words, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
