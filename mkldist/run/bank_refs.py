"""Names of a plan's banks for the workers, with snapshots of the data that they are made from."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from mkldist.data.snapshot import save_snapshot
from mkldist.durable import writing
from mkldist.identity import content_id
from mkldist.planning.model import Plan, RunPlan
from mkldist.resolve.resolved import Resolved
from mkldist.worker.bank_refs import BankRef


class BankKey(NamedTuple):
    """Key of a bank among those of a sweep.

    The id alone is not enough: banks that differ in normalisation alone have one id and share one
    store, and so have those of data sets that differ in their splits alone.

    Parameters
    ----------
    id : str
        Id of the bank.
    label : str
        Label of the bank in the sweep file.
    dataset : str
        Name of the data set.
    """

    id: str
    label: str
    dataset: str

    @classmethod
    def of(cls, run: RunPlan) -> BankKey:
        """Return the key of a run's bank."""
        return cls(run.bank, run.bank_label, run.dataset)


def bank_refs(
    plan: Plan, resolved: Resolved, wanted: Collection[str], root: str, snapshots: Path
) -> dict[BankKey, BankRef]:
    """Write the data sets that workers are to read, and return the banks made from them.

    Raises
    ------
    mkldist.errors.OutputError
        When a snapshot cannot be written.
    """
    banks: dict[BankKey, BankRef] = {}
    for bank in plan.banks:
        if bank.id not in wanted:
            continue
        dataset, splits = resolved.datasets[bank.dataset]
        name = content_id(data=dataset.fingerprint, splits=[s.fingerprint for s in splits])
        path = (snapshots / name).absolute()
        with writing(path):
            save_snapshot(path, dataset, splits)
        key = BankKey(bank.id, bank.spec.label, bank.dataset)
        code = resolved.code
        kernels = resolved.kernels[bank.dataset, bank.spec.label].fingerprint if code else ""
        banks[key] = BankRef(bank, root, str(path), dataset.fingerprint, code, kernels)
    return banks
