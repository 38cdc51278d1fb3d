"""Settings by which a bank keeps its kernels: normalisation, backend and precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

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
    def stored_type(self) -> np.dtype[np.floating]:
        """Type in which the bank is stored."""
        return np.dtype("float64" if self.dtype == "auto" else self.dtype)

    def __str__(self) -> str:
        """Return the normalisations as the user reads them."""
        return ", ".join(self.normalisations) or "none"


USUAL = ("none", "auto", "auto")
