"""The banks of a plan as workers see them: with the snapshots of data that they are made from."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from mkldist.data.snapshot import save_snapshot
from mkldist.durable import writing
from mkldist.identity import content_id
from mkldist.plan.model import Plan
from mkldist.resolve.resolved import Resolved
from mkldist.worker.bank_inputs import BankRef

BankKey = tuple[str, str, str]


def bank_refs(
    plan: Plan, resolved: Resolved, wanted: Collection[str], root: str, snapshots: Path
) -> dict[BankKey, BankRef]:
    """Write the data sets that workers are to read; return the banks by id, label and data set.

    Parameters
    ----------
    plan : Plan
        The plan.
    resolved : Resolved
        Its data.
    wanted : collection of str
        Ids of the banks.
    root : str
        Folder or URL of all banks.
    snapshots : Path
        Folder of the snapshots.

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
        key = bank.id, bank.spec.label, bank.dataset
        banks[key] = BankRef(bank, root, str(path), dataset.fingerprint)
    return banks
