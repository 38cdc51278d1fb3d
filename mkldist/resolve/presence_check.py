"""Check that a bank can be normalised where points lack views."""

from __future__ import annotations

import numpy as np

from mkldist.data.dataset import Dataset
from mkldist.gram.bank_kernels import BankKernels
from mkldist.gram.normalisation import check_uncentred
from mkldist.spec.banks import BankSpec


def check_presence(bank: BankSpec, dataset: Dataset, kernels: BankKernels) -> None:
    """Refuse to centre kernels that some points of a data set lack.

    Parameters
    ----------
    bank : BankSpec
        The bank.
    dataset : Dataset
        The data set.
    kernels : BankKernels
        The bank's kernels.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the bank.
    """
    if _some_lacking(dataset, kernels):
        check_uncentred(bank.normalisations, f"banks.{bank.label}.normalisation")


def _some_lacking(dataset: Dataset, kernels: BankKernels) -> bool:
    """Return True if a point lacks one of the kernels."""
    given = {kernel.view for kernel in kernels.given}
    if any(not dataset.given[view].present.all() for view in given):
        return True
    if dataset.absent is None or kernels.of_features is None:
        return False
    columns = np.asarray(dataset.absent.any(axis=0))
    return bool(np.any(columns[kernels.of_features.subset_indices]))
