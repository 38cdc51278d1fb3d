"""Check of all files in a sweep's output folder against their checksums: :func:`verify`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mkldist.bank.byte_store import LAPLACIANS, open_bytes
from mkldist.bank.store import BankStore, DamagedDescriptionError, open_store
from mkldist.core.wording import pluralize
from mkldist.data.snapshot import HEADER, damaged_files
from mkldist.errors import MkldistError, OutputError, StoreError
from mkldist.fit.model_file import read_model
from mkldist.results.journal import Journal
from mkldist.results.layout_file import LAYOUT, is_sound
from mkldist.results.manifest import MANIFEST, read_manifest
from mkldist.results.notes import BANK_NOTE, is_note_damaged, noted_banks
from mkldist.results.output import OutputFolder, no_folder
from mkldist.run.kept_sweep import fits_checksum_header
from mkldist.run.laplacian_cache import checked_laplacians

MODELS = "*.model"
CHANGED = "damaged or changed by hand: without its first line it is not checked"


@dataclass(frozen=True)
class Checked:
    """Files of one kind.

    Parameters
    ----------
    kind : str
        ``"manifest"``, ``"records"``, ``"layout"``, ``"snapshots"``, ``"data"``, ``"words"``,
        ``"banks"``, ``"laplacians"`` or ``"models"``.
    files : int
        Number of files that were checked; blocks and descriptions for banks.
    damaged : tuple of str
        Paths of the damaged ones, or what is wrong with them.
    note : str
        What else is to be said.
    """

    kind: str
    files: int
    damaged: tuple[str, ...]
    note: str = ""


def verify(path: Path) -> tuple[Checked, ...]:
    """Read all files in the output folder of a sweep, and check them; change nothing.

    Parameters
    ----------
    path : Path
        The folder.

    Raises
    ------
    mkldist.errors.StoreError
        If no sweep wrote there.
    """
    folder = OutputFolder(path)
    if not folder.manifest.is_file() and not folder.records.is_file():
        raise StoreError(
            str(path),
            f"no {MANIFEST} here" if path.is_dir() else no_folder(path),
            "the output folder of a sweep",
        )
    checked = (
        _manifest(folder),
        _records(folder),
        _layout(folder),
        _snapshots(folder),
        _data(folder),
        _words(folder),
        _banks(folder),
        _laplacians(folder),
        _models(folder),
    )
    return tuple(one for one in checked if one.files or one.damaged or one.note)


def damaged_banks(path: Path) -> Iterator[tuple[BankStore | None, str, str]]:
    """Yield the damaged banks of a sweep: the store, None if its description is; root; and id."""
    for root, bank in _noted(path):
        try:
            store = open_store(root, bank)
        except DamagedDescriptionError:
            yield None, root, bank
            continue
        if store.verify():
            yield store, root, bank


def _manifest(folder: OutputFolder) -> Checked:
    try:
        read_manifest(folder.path)
    except OutputError:
        return Checked("manifest", 1, (str(folder.manifest),))
    return Checked("manifest", 1, ())


def _records(folder: OutputFolder) -> Checked:
    store = Journal(folder.records)
    if store.is_blocked:
        return Checked("records", 1, (str(store.path),))
    damaged = tuple(f"{store.path}, {one}" for one in store.damaged())
    return Checked("records", len(store.states()) + len(damaged), damaged)


def _layout(folder: OutputFolder) -> Checked:
    path = folder.path / LAYOUT
    if path.exists():
        return Checked("layout", 1, () if is_sound(folder.path) else (str(path),))
    store = Journal(folder.records)  # a sweep writes its layout before it does any run
    n_runs = 0 if store.is_blocked else len(store.states())
    runs = pluralize(n_runs, "run is", "runs are")
    return Checked("layout", 0, (f"{path}: not there, though {runs} recorded",) if n_runs else ())


def _snapshots(folder: OutputFolder) -> Checked:
    n_files, damaged = 0, []
    for path in sorted(folder.snapshots.glob("*")):
        if path.is_dir():
            n_files += sum(file.suffix == ".npy" or file.name == HEADER for file in path.iterdir())
            damaged += damaged_files(path)
    return Checked("snapshots", n_files, tuple(map(str, damaged)))


def _data(folder: OutputFolder) -> Checked:
    from mkldist.data import given

    files = sorted(folder.data.glob(f"*{given.SUFFIX}"))
    damaged = tuple(str(file) for file in files if not given.is_sound(file))
    note = "the call in Python that gave them writes them anew" if damaged else ""
    return Checked("data", len(files), damaged, note)


def _words(folder: OutputFolder) -> Checked:
    try:
        content = folder.sweep_file.read_bytes()
    except FileNotFoundError:
        return Checked("words", 0, ())
    except OSError:
        return Checked("words", 1, (str(folder.sweep_file),))
    sealed = fits_checksum_header(content)
    if sealed is None:
        return Checked("words", 1, (), "without a checksum")
    if sealed:
        return Checked("words", 1, ())
    return Checked("words", 1, (str(folder.sweep_file),), CHANGED)


def _banks(folder: OutputFolder) -> Checked:
    note = folder.path / BANK_NOTE
    if not os.path.lexists(note):
        return Checked("banks", 0, ())
    n_files, damaged = 1, [str(note)] if is_note_damaged(folder.path) else []
    for root, bank in _noted(folder.path):
        n_files += 1
        try:
            store = open_store(root, bank)
        except DamagedDescriptionError as error:
            damaged.append(error.where)
            continue
        n_files += len(store.blocks) - len(store.missing())
        damaged += [f"{store.location}, block {block.index}" for block in store.verify()]
    return Checked("banks", n_files, tuple(damaged), _places(folder.path))


def _places(path: Path) -> str:
    """Return words on the folders of banks that a sweep noted.

    The note has whole paths: that of results that were copied names the banks of the original.
    """
    there = Counter(root for root, _ in _noted(path))
    words = [
        f"in {root}" if there[root] or not banks else f"none of {len(banks)} left in {root}"
        for root, banks in noted_banks(path).items()
    ]
    return "; ".join(words)


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


def _models(folder: OutputFolder) -> Checked:
    files = sorted(folder.path.glob(MODELS))
    damaged = []
    for file in files:
        try:
            read_model(file)
        except StoreError:
            damaged.append(str(file))
    return Checked("models", len(files), tuple(damaged))
