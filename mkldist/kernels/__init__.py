"""Lists of kernels and families.  For Python: kernels such as Gaussian, and spectrum_gram."""

from __future__ import annotations

from typing import Any

from mkldist.kernel_functions.text import spectrum_gram
from mkldist.kernels.objects import CLASSES, Custom, Precomputed

__all__ = ["Custom", "Precomputed", "spectrum_gram"]


def __getattr__(name: str) -> Any:
    """Return the class of a kernel function, such as Gaussian."""
    if name not in CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return CLASSES[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *CLASSES})
