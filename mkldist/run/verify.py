"""Check of all files in a sweep's output folder against their checksums."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mkldist.bank.byte_store import LAPLACIANS, open_bytes
from mkldist.bank.store import BankStore, DamagedDescriptionError
from mkldist.core.wording import pluralize
from mkldist.data.inputs import SUFFIX
from mkldist.data.inputs import is_sound as is_sound_data
from mkldist.data.snapshot import HEADER, damaged_files
from mkldist.errors import MkldistError, OutputError, StoreError
from mkldist.fit.model import read_model
from mkldist.results.folder import (
    BANK_NOTE,
    MANIFEST,
    OutputFolder,
    is_note_damaged,
    no_folder,
    noted_banks,
    read_manifest,
)
from mkldist.results.journal import Journal
from mkldist.results.layout import LAYOUT, is_sound
from mkldist.run.bank_refs import checked_laplacians

MODELS = "*.model"


@dataclass(frozen=True)
class Checked:
    """Files of one kind."""

    # ``"manifest"``, ``"records"``, ``"layout"``, ``"snapshots"``, ``"data"``, ``"banks"``,
    # ``"laplacians"`` or ``"models"``
    kind: str
    files: int  # number of files that were checked; blocks and descriptions for banks
    damaged: tuple[str, ...]  # paths of the damaged ones, or what is wrong with them
    note: str = ""  # further words


def verify(path: Path) -> tuple[Checked, ...]:
    """Read all files in the output folder of a sweep, and check them; change nothing."""
    folder = OutputFolder(path)
    if not folder.manifest.is_file() and not folder.records.is_file():
        raise StoreError(
            str(path),
            f"no {MANIFEST} here" if path.is_dir() else no_folder(path),
            "the output folder of a sweep",
        )
    return tuple(one for one in _checked(folder) if one.files or one.damaged or one.note)


def _checked(folder: OutputFolder) -> Iterator[Checked]:
    """Yield what is found of the files of each kind."""
    n_damaged = not _reads(lambda _: read_manifest(folder.path), folder.manifest)
    yield Checked("manifest", 1, (str(folder.manifest),) * n_damaged)

    store, n_runs = Journal(folder.records), 0
    damaged = [str(store.path)]
    if not store.is_blocked:
        damaged, n_runs = [f"{store.path}, {one}" for one in store.damaged()], len(store.states())
    yield Checked("records", n_runs + len(damaged), tuple(damaged))

    layout = folder.path / LAYOUT
    if layout.exists():
        yield Checked("layout", 1, () if is_sound(folder.path) else (str(layout),))
    elif n_runs:  # a sweep writes its layout before it does any run
        runs = pluralize(n_runs, "run is", "runs are")
        yield Checked("layout", 0, (f"{layout}: not there, though {runs} recorded",))

    snapshots = [path for path in sorted(folder.snapshots.glob("*")) if path.is_dir()]
    files = [file for path in snapshots for file in path.iterdir()]
    n_files = sum(file.suffix == ".npy" or file.name == HEADER for file in files)
    damaged = [str(file) for path in snapshots for file in damaged_files(path)]
    yield Checked("snapshots", n_files, tuple(damaged))

    files = sorted(folder.data.glob(f"*{SUFFIX}"))
    damaged = [str(file) for file in files if not is_sound_data(file)]
    note = "the call in Python that gave them writes them anew" if damaged else ""
    yield Checked("data", len(files), tuple(damaged), note)

    yield _banks(folder)
    yield _laplacians(folder)

    files = sorted(folder.path.glob(MODELS))
    damaged = [str(file) for file in files if not _reads(read_model, file)]
    yield Checked("models", len(files), tuple(damaged))


def _reads(read: Callable[[Path], object], file: Path) -> bool:
    """Return True if a file can be read."""
    try:
        read(file)
    except (OutputError, StoreError):
        return False
    return True


def _banks(folder: OutputFolder) -> Checked:
    """Check the banks that the sweep has noted.

    The note has whole paths: that of results that were copied names the banks of the original.
    """
    note = folder.path / BANK_NOTE
    if not os.path.lexists(note):
        return Checked("banks", 0, ())
    n_files, damaged = 1, [str(note)] if is_note_damaged(folder.path) else []
    there = [*_noted(folder.path)]
    for root, bank in there:
        n_files += 1
        try:
            store = BankStore.open(root, bank)
        except DamagedDescriptionError as error:
            damaged.append(error.where)
            continue
        n_files += len(store.stored())
        damaged += [f"{store.location}, block {index}" for index in store.verify()]
    roots = {root for root, _ in there}
    words = [
        f"in {root}" if root in roots or not banks else f"none of {len(banks)} left in {root}"
        for root, banks in noted_banks(folder.path).items()
    ]
    return Checked("banks", n_files, tuple(damaged), "; ".join(words))


def _noted(path: Path) -> Iterator[tuple[str, str]]:
    """Yield folder or URL and id of the banks of a sweep that have files."""
    for root, banks in noted_banks(path).items():
        for bank in banks:
            with suppress(MkldistError):
                if open_bytes(root, bank).names("") or "://" in root:
                    yield root, bank


def _laplacians(folder: OutputFolder) -> Checked:
    """Check the graph Laplacians beside the banks, those of other sweeps included."""
    n_files, damaged = 0, []
    for root in noted_banks(folder.path):
        with suppress(MkldistError):  # an object store that does not answer
            found = checked_laplacians(root)
            n_files += len(found)
            place = open_bytes(root, LAPLACIANS).location
            damaged += [f"{place}/{name}" for name, sound in found.items() if not sound]
    return Checked("laplacians", n_files, tuple(damaged))
