"""Lists of kernels and families.  For Python: kernels such as Gaussian, and spectrum_gram.

These names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkldist.kernel_functions.spectrum import spectrum_gram
    from mkldist.kernels.precomputed import Precomputed
    from mkldist.kernels.words import (
        Additive,
        Categorical,
        ChiSquared,
        Custom,
        Gaussian,
        Intersection,
        Jaccard,
        Laplacian,
        Linear,
        Matern,
        Periodic,
        Polynomial,
        Spectrum,
        Tanimoto,
    )

__all__ = [
    "Additive",
    "Categorical",
    "ChiSquared",
    "Custom",
    "Gaussian",
    "Intersection",
    "Jaccard",
    "Laplacian",
    "Linear",
    "Matern",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "Spectrum",
    "Tanimoto",
    "spectrum_gram",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "spectrum_gram":
        import mkldist.kernel_functions.spectrum as spectrum

        return spectrum.spectrum_gram
    if name == "Precomputed":
        import mkldist.kernels.precomputed as precomputed

        return precomputed.Precomputed
    import mkldist.kernels.words as words

    return getattr(words, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
