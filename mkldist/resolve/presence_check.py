"""Check that a bank can be normalised where points lack views."""

from __future__ import annotations

from mkldist.data.dataset import Dataset
from mkldist.gram.bank_kernels import BankKernels
from mkldist.gram.view import check_uncentred
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
    texts = None if dataset.texts is None else dataset.texts.absent
    return any(
        absent is not None
        and functions is not None
        and bool(absent[:, functions.subset_indices].any())
        for absent, functions in (
            (dataset.absent, kernels.of_features),
            (texts, kernels.of_texts),
        )
    )
