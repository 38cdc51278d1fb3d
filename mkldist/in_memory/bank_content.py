"""Parts of a bank in memory, which banks of some of its kernels share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mkldist.arrays import Bools
from mkldist.gram.bank import Bank
from mkldist.gram.view import BankView, make_views
from mkldist.in_memory.gram_stack import Inspection
from mkldist.in_memory.keeping import Keeping
from mkldist.in_memory.origins import Origin
from mkldist.kernels.gaps import Presence

if TYPE_CHECKING:
    from mkldist.gram.factored_kernels import FactoredKernels
    from mkldist.in_memory.opened_bank import TemporaryFolder


@dataclass(frozen=True, eq=False)
class BankContent:
    """Parts of a bank, which banks of some of its kernels share.

    Parameters
    ----------
    view : BankView
        The bank with the normalisation of its kernels.
    origin : Origin
        Source of the kernels.
    backend, normalisation : str
        Words for the user.
    temporary : TemporaryFolder or None
        Folder that is deleted when the last bank in it is gone.
    inspection : Inspection or None
        Checks of given matrices that follow a solution; None if there are none to come.
    passed : (M,) bool
        True for kernels that passed these checks.
    factored : FactoredKernels or None
        The kernels themselves beside their factors, where `view` is of factors.
    """

    view: BankView
    origin: Origin
    backend: str
    normalisation: str
    temporary: TemporaryFolder | None = None
    inspection: Inspection | None = None
    passed: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    factored: FactoredKernels | None = None


def normalised(bank: Bank, keeping: Keeping, presence: Presence | None = None) -> BankView:
    """Return a bank with its kernels normalised on all points; their source has made cosines."""
    [view] = make_views(bank, [None], keeping.of_views, presence=presence)
    return view
