"""Settings by which a bank keeps its kernels: normalisation, backend and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.errors import SpecError

if TYPE_CHECKING:
    from mkldist.spec.banks import BankSpec


@dataclass(frozen=True)
class Keeping:
    """Settings of a bank that do not concern its kernels.

    Parameters
    ----------
    normalisations : tuple of str
        The normalisations in order.
    backend, dtype : str
        As in a sweep file.
    """

    normalisations: tuple[str, ...] = ()
    backend: str = "auto"
    dtype: str = "auto"

    @classmethod
    def of(cls, spec: BankSpec) -> Keeping:
        """Return the settings of a bank of a sweep file."""
        return cls(spec.normalisations, spec.backend, spec.dtype)

    @classmethod
    def of_grams(cls, normalisation: Any, backend: str, dtype: str) -> Keeping:
        """Return the settings of a bank of Gram matrices, checked as those of a sweep file.

        The usual ones need no check, and so none of the classes of sweep files, whose import
        takes as long as the solution of a small problem.

        Raises
        ------
        mkldist.errors.SpecError
            For an unknown word.
        """
        if isinstance(normalisation, str) and (normalisation, backend, dtype) == USUAL:
            return cls()
        from mkldist.in_memory.given_kernels import bank_spec

        settings = {"normalisation": normalisation, "backend": backend, "dtype": dtype}
        return cls.of(bank_spec("precomputed", **settings))

    @property
    def cosine(self) -> bool:
        """True for kernels divided by the roots of k(x, x), as their source does."""
        return "cosine" in self.normalisations

    @property
    def of_views(self) -> list[str]:
        """The normalisations that views make: all but the cosine."""
        return [name for name in self.normalisations if name != "cosine"]

    @property
    def stored_type(self) -> np.dtype[np.floating]:
        """Type in which the bank is stored."""
        return np.dtype("float64" if self.dtype == "auto" else self.dtype)

    def check_one_process(self) -> None:
        """Refuse a bank that only the workers of a sweep divide."""
        if self.backend == "sharded":
            raise SpecError(
                "backend",
                '"sharded" for a bank of one process',
                "another backend",
                "The workers of a sweep divide such a bank",
            )

    def check_given(self) -> None:
        """Refuse cosines of given matrices, whose new points would lack k(x, x)."""
        if self.cosine:
            raise SpecError(
                "normalisation",
                "'cosine' for given Gram matrices",
                "'trace', 'centre', 'variance' or 'none'",
                "Divide k(x, z) by the root of k(x, x) k(z, z) before",
            )

    def __str__(self) -> str:
        """Return the normalisations as the user reads them."""
        return ", ".join(self.normalisations) or "none"


USUAL = ("none", "auto", "auto")
