"""Check of all files in a sweep's output folder against their checksums, and their repair."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mkldist.bank.byte_store import LAPLACIANS, open_bytes
from mkldist.bank.store import BankStore, DamagedDescriptionError
from mkldist.core.durable import move_away, writing
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
    claimed,
    drop_damaged_note,
    is_note_damaged,
    no_folder,
    note_banks,
    noted_banks,
    read_manifest,
    restored_manifest,
    whole_note,
)
from mkldist.results.journal import Journal
from mkldist.results.layout import LAYOUT, is_sound, lay_out, read_layout
from mkldist.results.record import environment
from mkldist.run.bank_refs import checked_laplacians, remove_damaged_laplacians
from mkldist.run.cluster import ConnectOptions
from mkldist.run.paths import banks_root
from mkldist.run.saved_inputs import fits_checksum_header
from mkldist.run.sweep_setup import bank_refs, sweep_rounds, tree_facts
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec

MODELS = "*.model"
CHANGED = "damaged or changed by hand: without its first line it is not checked"


@dataclass(frozen=True)
class Checked:
    """Files of one kind."""

    # ``"manifest"``, ``"records"``, ``"layout"``, ``"snapshots"``, ``"data"``, ``"words"``,
    # ``"banks"``, ``"laplacians"`` or ``"models"``
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

    yield _words(folder)
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


def _words(folder: OutputFolder) -> Checked:
    """Check the sweep file of a sweep that was given in Python."""
    file = folder.sweep_file
    if not os.path.lexists(file):
        return Checked("words", 0, ())
    try:
        is_whole = fits_checksum_header(file.read_bytes())
    except OSError:
        return Checked("words", 1, (str(file),))
    note = {None: "without a checksum", False: CHANGED, True: ""}[is_whole]
    return Checked("words", 1, (str(file),) if is_whole is False else (), note)


def damaged_banks(path: Path) -> Iterator[tuple[BankStore | None, str, str]]:
    """Yield the damaged banks of a sweep: the store, None if its description is; root; and id."""
    for root, bank in _noted(path):
        try:
            store = BankStore.open(root, bank)
        except DamagedDescriptionError:
            yield None, root, bank
            continue
        if store.verify():
            yield store, root, bank


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


def repair(
    path: Path,
    damaged: Collection[str],
    data_dirs: Sequence[Path] = (),
    *,
    allow_code: bool = False,
) -> list[str]:
    """Make the damaged files of an output folder anew, or remove those that a sweep makes again."""
    name, folder, lines = restored_manifest(path).sweep, OutputFolder(path), list[str]()
    banks = list(damaged_banks(path)) if "banks" in damaged else []
    with claimed(path, name), writing(path):  # which makes a damaged manifest anew
        if "manifest" in damaged:
            lines.append(f"manifest: made anew for sweep {name!r}")
        if "records" in damaged:
            done = _without_damaged(Journal(folder.records))
            lines.append(f"records: {done}; repeat the sweep's command to do their runs again")
        undescribed = [(root, bank) for store, root, bank in banks if store is None]
        for root, bank in undescribed:
            open_bytes(root, bank).clear()
        if undescribed:
            removed = pluralize(len(undescribed), "bank", "banks")
            lines.append(
                f"banks: {removed} removed whose description was damaged; a sweep that needs them "
                "builds them"
            )
        if n_blocks := sum(len(store.drop_damaged()) for store, _, _ in banks if store):
            blocks = pluralize(n_blocks, "block")
            lines.append(f"banks: {blocks} removed; a sweep that needs them builds them")
        if "laplacians" in damaged:
            n_removed = sum(map(remove_damaged_laplacians, noted_banks(path)))
            lines.append(f"laplacians: {n_removed} removed; a sweep that needs them computes them")
    anew = {*damaged} & {"layout", "snapshots"}
    if "banks" in damaged and whole_note(path) is None:
        anew.add("note")
    if anew:
        lines += _made_anew(folder, anew, data_dirs, allow_code=allow_code)
    return lines


def _without_damaged(store: Journal) -> str:
    """Write the records anew without damaged ones, or move away what stands in their place."""
    if store.is_blocked:
        return f"moved to {move_away(store.path)}"
    n_damaged = len(store.damaged())
    store.compact()
    return f"{n_damaged} removed"


def _made_anew(
    folder: OutputFolder,
    kinds: Collection[str],
    data_dirs: Sequence[Path],
    *,
    allow_code: bool,
) -> Iterator[str]:
    """Make what is damaged anew from the sweep, its data and its records; yield lines on it."""
    spec, origin, whole = _sweep_of(folder)
    if not whole:
        yield f"sweep: as {origin} is now; if options such as --set changed it, repeat that command"
    rounds = sweep_rounds(spec, origin, data_dirs, ConnectOptions(), allow_code=allow_code)
    root = banks_root(spec, folder.path)
    with claimed(folder.path, spec.name), writing(folder.path):
        rounds.replay(Journal(folder.records))
        plan = rounds.plan
        if "layout" in kinds:
            lay_out(folder.path, plan, tree_facts(rounds), environment)
            yield "layout: made anew from the sweep"
        if "snapshots" in kinds:
            bank_refs(
                plan, rounds.resolved, {bank.id for bank in plan.banks}, root, folder.snapshots
            )
            yield "snapshots: made anew from the data"
        if "note" in kinds:
            drop_damaged_note(folder.path)
            stored = [bank.id for bank in plan.banks if bank.stored]
            there = [i for i in stored if open_bytes(root, i).has("zarr.json")]
            note_banks(folder.path, root, there)
            yield "banks: their note made anew"


def _sweep_of(folder: OutputFolder) -> tuple[SweepSpec, Path, bool]:
    """Return the specification of a sweep, its file, and True if overrides are included."""
    manifest = restored_manifest(folder.path)
    if manifest.file is None:
        raise StoreError(
            str(folder.manifest),
            "no sweep file",
            "the file that the sweep was made from",
            "Repeat the sweep's command with its file: it makes the results anew",
        )
    spec = manifest.spec
    with suppress(StoreError):  # neither may have one
        spec = spec or read_layout(folder.path).attributes["spec"]
    if spec:
        return SweepSpec.model_validate_json(spec), manifest.file, True
    return load_sweep(manifest.file), manifest.file, False
