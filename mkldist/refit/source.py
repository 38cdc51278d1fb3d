"""The data and settings of a chosen run, from the output folder of its sweep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import HEADER, load_snapshot, snapshot_header
from mkldist.errors import DataError, StoreError
from mkldist.refit.choice import Choice
from mkldist.resolve.search_check import n_asked
from mkldist.results.output import OutputFolder
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.schema import ON_FACTORS
from mkldist.results.tree import current
from mkldist.results.zarr_documents import read_root
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.model import SweepSpec


@dataclass(frozen=True)
class FittedFrom:
    """Data and settings of a chosen run, from the output folder of its sweep.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    entry : DatasetSpec
        Its entry of the data set.
    dataset : Dataset
        The data set as the runs saw it.
    splits : tuple of Split
        Its splits, without those that repeat them with fewer training rows for a search.
    record : RunRecord
        A run of the setting.
    """

    spec: SweepSpec
    entry: DatasetSpec
    dataset: Dataset
    splits: tuple[Split, ...]
    record: RunRecord

    @property
    def preprocessing(self) -> PreprocessingSpec:
        """Preprocessing of the data set."""
        return self.spec.preprocessing_of(self.entry)

    @property
    def bank(self) -> BankSpec:
        """Bank of the setting."""
        found = next(bank for bank in self.spec.sized_banks if bank.label == self.record.bank)
        thin = any(one.name in self.record.extra for one in ON_FACTORS)
        return found.on_factors if thin else found


def source_of(results: Path, choice: Choice) -> FittedFrom:
    """Read the sweep, a run of the setting, and the data that the run was made on.

    Raises
    ------
    mkldist.errors.StoreError
        If the folder lacks the record or the data.
    mkldist.errors.DataError
        For a data set of Gram matrices alone, which knows nothing of new rows.
    """
    folder = OutputFolder(results)
    spec = SweepSpec.model_validate_json(read_root(current(results))["attributes"]["spec"])
    record = RecordStore(folder.records).read(choice.run_ids[0])
    if record is None:
        raise StoreError(
            str(folder.records),
            f"no record of run {choice.run_ids[0]}",
            "the records of the sweep",
            "Repeat the sweep's command, which runs what is missing",
        )
    entry = next(entry for entry in spec.sized_datasets if entry.name == choice.dataset)
    dataset, splits = _snapshot(folder.snapshots, record)
    if dataset.grams is not None:
        raise DataError(
            f"data set {dataset.name!r}",
            "precomputed Gram matrices",
            "features, of which kernels between new rows and support vectors are computed",
            "In Python, mkldist.solve on KernelBank.from_grams(K) predicts from cross blocks "
            "(M, n_new, n): solution.decision_function(bank.on(cross))",
        )
    return FittedFrom(spec, entry, dataset, splits[: n_asked(len(splits), spec.search)], record)


def _snapshot(folder: Path, record: RunRecord) -> tuple[Dataset, tuple[Split, ...]]:
    """Return the data set and the splits that a run was made on."""
    wanted = record.provenance.get("data_fingerprint")
    damaged = None
    for path in sorted(folder.glob(f"*/{HEADER}")):
        try:
            header = snapshot_header(path.parent)
        except StoreError as error:
            damaged = error  # another one may be that of the run
            continue
        if header.get("name") != record.dataset:
            continue
        if (header.get("views") or header.get("given")) and "view_columns" not in header:
            raise StoreError(
                str(path.parent),
                "a copy of the data without the columns of its views, of an earlier version",
                "a copy with them",
                "Repeat the sweep in another folder",
            )
        dataset, splits = load_snapshot(path.parent)
        own = splits[record.split].fingerprint if record.split < len(splits) else ""
        if dataset.fingerprint == wanted and own == record.provenance.get("split_fingerprint"):
            return dataset, splits
    raise damaged or StoreError(
        str(folder),
        f"no copy of the data of {record.dataset!r}",
        "the snapshot that the sweep wrote",
        "Run 'mkldist verify RESULTS --repair', or repeat the sweep in another folder",
    )
