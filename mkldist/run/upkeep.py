"""Upkeep of what a sweep stores: removal of what can be made again, and the check of all files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from mkldist.bank.byte_store import LAPLACIANS, open_bytes
from mkldist.bank.cache import NodeCache, remove_bank, removing_banks
from mkldist.bank.store import BankStore, DamagedDescriptionError, list_banks
from mkldist.core.wording import pluralize
from mkldist.data.inputs import SUFFIX
from mkldist.data.inputs import is_sound as is_sound_data
from mkldist.data.snapshot import HEADER, damaged_files
from mkldist.errors import MkldistError, OutputError, StoreError
from mkldist.results.folder import (
    BANK_NOTE,
    BANKS,
    MANIFEST,
    OutputFolder,
    checked_note,
    is_note_damaged,
    no_folder,
    noted_banks,
    read_manifest,
)
from mkldist.results.journal import Journal
from mkldist.results.layout import LAYOUT, read_layout
from mkldist.run.bank_refs import checked_laplacians


@dataclass(frozen=True)
class StoredBank:
    """A stored bank and its copy in the cache of this machine."""

    store: BankStore
    root: Path  # folder of the banks
    words: str  # data set and kernels
    copy: Path | None  # its copy in the node cache; None if there is none

    @property
    def id(self) -> str:
        """Its id."""
        return Path(self.store.location).name

    @property
    def n_bytes(self) -> int:
        """Bytes of its files."""
        folder = Path(self.store.location)
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

    @property
    def copy_bytes(self) -> int:
        """Bytes of the copy."""
        return self.copy.stat().st_size if self.copy is not None and self.copy.exists() else 0


def stored_banks(path: Path) -> tuple[StoredBank, ...]:
    """Return the banks of a sweep that are stored on a file system, or all banks of a folder."""
    if os.path.lexists(OutputFolder(path).manifest):
        places = {root: ids for root, ids in checked_note(path).items() if "://" not in root}
    else:
        found = [one for one in (path / BANKS, *sorted(path.glob(f"*/{BANKS}"))) if one.is_dir()]
        places = {str(one): list_banks(one) for one in found or [path] if one.is_dir()}
    cache = NodeCache()
    return tuple(
        bank for root, ids in places.items() for i in ids if (bank := _stored(Path(root), i, cache))
    )


def roots_elsewhere(path: Path, banks: Iterable[StoredBank]) -> tuple[Path, ...]:
    """Return the folders of banks that neither lie in a folder nor beside it as ``banks``.

    The note of a sweep has whole paths, so that of results that were copied names the banks of the
    original.  Whether a folder elsewhere belongs to these results or to others cannot be told.
    """
    folders = (path.absolute(), path.resolve())
    beside = {(folder.parent / BANKS).resolve() for folder in folders}

    def is_here(root: Path) -> bool:
        within = (root.absolute().is_relative_to(folder) for folder in folders)
        return root.resolve() in beside or any(within)

    roots = dict.fromkeys(bank.root for bank in banks)
    return tuple(root for root in roots if not is_here(root))


def check_roots(path: Path, banks: Iterable[StoredBank], named: Iterable[Path]) -> None:
    """Refuse to remove banks that lie elsewhere from folders that nobody has named."""
    known = {root.resolve() for root in named}
    unnamed = [root for root in roots_elsewhere(path, banks) if root.resolve() not in known]
    if unnamed:
        folders = ", ".join(map(str, unnamed))
        raise OutputError(
            str(path),
            f"banks in {folders}, which may belong to other results, such as those that these "
            "were copied from",
            f"banks in {path} or in {path.absolute().parent / BANKS}",
            "Nothing was removed. If they may go, add "
            + " ".join(f"--banks {quote(str(root))}" for root in unnamed),
        )


def remove(banks: Iterable[StoredBank]) -> int:
    """Remove banks and their copies; return the bytes that they took."""
    by_root: dict[Path, list[StoredBank]] = {}
    for bank in banks:
        by_root.setdefault(bank.root, []).append(bank)
    removed = 0
    for root, those in by_root.items():
        with removing_banks(root):
            removed += total_bytes(those)
            for bank in those:
                remove_bank(bank.store)
    return removed


def total_bytes(banks: Sequence[StoredBank]) -> int:
    """Return the bytes of banks and their copies."""
    return sum(bank.n_bytes + bank.copy_bytes for bank in banks)


def _stored(root: Path, bank: str, cache: NodeCache) -> StoredBank | None:
    """Return a bank, None if there is none of this id."""
    try:
        store = BankStore.open(root, bank)
    except StoreError:
        return None
    copy = cache.path_of(store)
    words = ", ".join(str(store.attrs[key]) for key in ("dataset", "label") if key in store.attrs)
    return StoredBank(store, root, words, copy if copy.exists() else None)


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

    store, runs = Journal(folder.records), set[str]()
    damaged = [str(store.path)]
    if not store.is_blocked:
        damaged, runs = [f"{store.path}, {one}" for one in store.damaged()], {*store.states()}
    yield Checked("records", len(runs) + len(damaged), tuple(damaged))

    is_there = (folder.path / LAYOUT).exists()
    if is_there or runs:  # a sweep writes its layout before it does any run
        yield Checked("layout", is_there, tuple(_layout_faults(folder.path, runs)))

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

    from mkldist.fit.model import read_model  # with the formats of new rows

    files = sorted(folder.path.glob(MODELS))
    damaged = [str(file) for file in files if not _reads(read_model, file)]
    yield Checked("models", len(files), tuple(damaged))


def _layout_faults(path: Path, recorded: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the layout in a folder that has these recorded runs."""
    file = path / LAYOUT
    runs = pluralize(len(recorded), "run is", "runs are")
    try:
        listed = {run for node in read_layout(path).nodes for _, run in node.places()}
    except StoreError:
        yield str(file) if file.exists() else f"{file}: not there, though {runs} recorded"
        return
    if recorded and listed.isdisjoint(recorded):
        yield f"{file}: that of another sweep, though {runs} recorded"


def _reads(read: Callable[[Path], object], file: Path) -> bool:
    """Return True if a file can be read."""
    try:
        read(file)
    except (OutputError, StoreError):
        return False
    return True


def _banks(folder: OutputFolder) -> Checked:
    """Check the banks that the sweep has noted."""
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
