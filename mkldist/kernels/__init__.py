"""Kernel functions and families.  For Python: Gaussian, Laplacian, Polynomial and Linear.

These names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkldist.kernels.words import Gaussian, Laplacian, Linear, Polynomial

__all__ = ["Gaussian", "Laplacian", "Linear", "Polynomial"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import mkldist.kernels.words as words

    return getattr(words, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
