"""A sweep run again from its results alone, to see whether they come out the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mkldist.analysis.comparison import Agreement, agreement
from mkldist.core.wording import truncate
from mkldist.data.catalogue import located
from mkldist.data.opening import exists
from mkldist.errors import DataError, OutputError, StoreError
from mkldist.results.folder import OutputFolder, restored_manifest
from mkldist.results.journal import Journal, environment
from mkldist.results.layout import read_layout
from mkldist.results.rows import to_frame
from mkldist.results.schema import RUN_ID, SPLIT, STATE, RunState
from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from mkldist.run.saved_inputs import SavedInputs, data_files
from mkldist.run.sweep import SweepOutcome, run_sweep
from mkldist.run.sweep_setup import planned
from mkldist.spec.kinds import toml_text
from mkldist.spec.load import load_sweep, naming
from mkldist.spec.model import SweepSpec

ENDING = "-rerun"
SHOWN = 5
COMMIT_DIGITS = 12


@dataclass(frozen=True)
class Rerun:
    """A sweep that is to be run again, as its results tell it."""

    results: Path
    output: Path  # folder of the new results
    data_dirs: tuple[Path, ...] = ()  # folders that are searched for data sets by name
    connect_options: ConnectOptions = field(default_factory=ConnectOptions)  # choice of the workers
    # True if kernel functions that are not mkldist's may be imported and called
    allow_code: bool = False

    def __post_init__(self) -> None:
        if self.output.absolute() == self.results.absolute():
            raise OutputError(str(self.output), "the results to compare with", "another folder")

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """What the results tell of their sweep."""
        return read_layout(self.results).attributes

    @cached_property
    def document(self) -> dict[str, Any]:
        """The content of a sweep file that says the same, for the new folder.

        Gram matrices are computed anew, in the new folder, and removed at the end.
        """
        document: dict[str, Any] = json.loads(self.attributes["spec"])
        for table, key in data_files(document):  # paths start at the root
            if "://" not in table[key]:
                file = located(table[key], self.data_dirs, _base(self.results))
                moved = (folder / file.name for folder in self.data_dirs)
                found = file if exists(file) else next(filter(exists, moved), file)
                table[key] = str(found.absolute())
        outputs = document.setdefault("outputs", {})
        outputs.pop("banks", None)
        outputs |= {"path": str(self.output.absolute()), "keep_banks": False}
        return document

    @cached_property
    def spec(self) -> SweepSpec:
        """The sweep."""
        return load_sweep(self.document)

    def check_data(self) -> None:
        """Compare the data and the splits of the sweep with those of its runs."""
        with naming(self.document):
            _, resolved = planned(
                self.spec,
                OutputFolder(self.output).sweep_file,
                self.data_dirs,
                self.connect_options,
                allow_code=self.allow_code,
            )
        changed = []
        for dataset, split, provenance in _origins(self.results):
            facts = resolved.facts[dataset]
            if provenance.get("data_fingerprint") != facts.fingerprint:
                changed.append(f"data set {dataset!r}")
            elif (provenance.get("split_fingerprint"),) != facts.split_fingerprints[split:][:1]:
                changed.append(f"split {split} of data set {dataset!r}")
        if changed:
            raise DataError(
                str(self.results),
                f"runs on data that differ now: {truncate([*dict.fromkeys(changed)], SHOWN)}; "
                f"{self.versions}",
                "the data of its runs",
                "Name their folder by --data-dir; 'mkldist sweep' runs the sweep on other data",
            )

    @property
    def versions(self) -> str:
        """The versions, commit included, that differ from those of the results, in words."""
        before, now = json.loads(self.attributes["provenance"]), environment()
        changed = list(_changes(before, now))
        return f"changed: {', '.join(changed)}" if changed else "the same versions"

    def run(self, **options: Any) -> SweepOutcome:
        """Do the runs that the new folder lacks."""
        with naming(self.document):
            return run_sweep(
                self.spec,
                origin=OutputFolder(self.output).sweep_file,
                data_dirs=self.data_dirs,
                output=self.output,
                connect_options=self.connect_options,
                saved=SavedInputs(toml_text(self.document)),
                allow_code=self.allow_code,
                **options,
            )

    def agreement(self) -> Agreement:
        """Return how far the new results agree with the former."""
        return agreement(open_results(self.results), open_results(self.output))


def rerun_folder(results: Path) -> Path:
    """Return the folder beside some results that holds those of a rerun by default."""
    path = results.absolute() if not results.name else results
    return path.with_name(path.name + ENDING)


def _base(results: Path) -> Path:
    """Return the folder where the paths of a sweep's data begin."""
    kept = OutputFolder(results).sweep_file
    if kept.is_file():
        return kept.parent.absolute()
    return (restored_manifest(results).file or kept).parent


def _origins(results: Path) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield data set, split and provenance of a complete run of each split of each data set."""
    rows = to_frame(open_results(results), (STATE.name, RUN_ID.name))
    store = Journal(OutputFolder(results).records)
    for dataset, own in rows.groupby("dataset", sort=False):
        if (own[STATE.name] == RunState.WAITING.value).all():
            raise StoreError(
                str(store.path),
                f"no record of a run on {dataset!r}, which tells its data",
                "the records of the results",
                "Repeat the sweep's command, which runs what is missing",
            )
        done = own[own[STATE.name] == RunState.COMPLETE.value]
        for run_id in done.drop_duplicates(SPLIT)[RUN_ID.name]:
            record = store.read(run_id)
            if record is not None:
                yield record.dataset, record.split, record.provenance


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two environments, in words."""
    old, new = _named(before), _named(now)
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield f"{name} {old.get(name, 'none')} → {new.get(name, 'none')}"


def _named(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what of an environment may change results, by name."""
    commit, *changed = environment.get("commit", "").split("-")
    return {
        "commit": "-".join([commit[:COMMIT_DIGITS], *changed]) or "none",
        "python": environment.get("python", "unknown"),
        **environment.get("versions", {}),
        "blas": " ".join(environment.get("blas", ())),
        "machine": environment.get("machine", "unknown"),
    }
