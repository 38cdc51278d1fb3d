"""Check that the devices of banks are there, and compute the banks' kernels."""

from __future__ import annotations

from mkldist.data.dataset import Dataset
from mkldist.devices import CPU
from mkldist.gram.bank_kernels import BankKernels
from mkldist.gram.device_source import device_for
from mkldist.spec.banks import BankSpec


def check_device(bank: BankSpec, kernels: BankKernels, dataset: Dataset) -> None:
    """Refuse a device that is not there, or that does not compute the kernels of a bank.

    Parameters
    ----------
    bank : BankSpec
        The bank.
    kernels : BankKernels
        Its kernels.
    dataset : Dataset
        The data set.

    Raises
    ------
    mkldist.errors.SpecError
        With what is there, or which kernels devices compute.
    """
    if bank.device == CPU:
        return
    own = kernels.of_features
    alone = own is not None and dataset.x is not None and len(own) == len(kernels)
    device_for(own if alone else None, bank.device, f"banks.{bank.label}.device")
