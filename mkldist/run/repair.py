"""Repair of damaged files in an output folder: what can be made anew is made anew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mkldist.counted import counted
from mkldist.durable import move_away, writing
from mkldist.errors import InputError, StoreError
from mkldist.gram.blobs import open_blobs
from mkldist.results.journal import Journal
from mkldist.results.layout_file import lay_out, read_layout
from mkldist.results.manifest import restored_manifest
from mkldist.results.notes import drop_damaged_note, note_banks, noted_banks, whole_note
from mkldist.results.output import OutputFolder, claimed
from mkldist.results.provenance import environment
from mkldist.run.cluster import ConnectOptions
from mkldist.run.paths import banks_root
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.run.tree_facts import tree_facts
from mkldist.run.verify import damaged_banks
from mkldist.run.work import bank_refs
from mkldist.search.rounds import Rounds
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec
from mkldist.worker.bank_refs import BankRef
from mkldist.worker.laplacian_cache import remove_damaged_laplacians

_RENEWED = {
    "layout": "layout: made anew from the sweep",
    "snapshots": "snapshots: made anew from the data",
}


def repair(
    path: Path,
    damaged: Collection[str],
    data_dirs: Sequence[Path] = (),
    *,
    allow_code: bool = False,
) -> list[str]:
    """Make the damaged files of an output folder anew, or remove those that a sweep makes again.

    Parameters
    ----------
    path : Path
        The folder.
    damaged : collection of str
        Kinds that :func:`mkldist.run.verify.verify` found damaged.
    data_dirs, allow_code
        As for :func:`mkldist.run.sweep.run_sweep`.

    Returns
    -------
    list of str
        A line for each thing that was done.

    Raises
    ------
    mkldist.errors.InputError
        If a process uses the folder, or the sweep's data are needed and cannot be read.
    """
    name, folder, said = restored_manifest(path).sweep, OutputFolder(path), []
    with claimed(path, name):  # which makes a damaged manifest anew
        if "manifest" in damaged:
            said.append(f"manifest: made anew for sweep {name!r}")
        if "records" in damaged:
            said.append(_remove_records(folder))
        no_note = "banks" in damaged and whole_note(path) is None
        if "banks" in damaged and not no_note:
            said.append(_mend_banks(folder, data_dirs, allow_code=allow_code))
        if "laplacians" in damaged:
            n_removed = sum(map(remove_damaged_laplacians, noted_banks(path)))
            said.append(f"laplacians: {n_removed} removed; a sweep that needs them computes them")
    if no_note or {"layout", "snapshots"} & {*damaged}:
        said += _renew(folder, damaged, data_dirs, allow_code=allow_code)
    said += [words for kind, words in _RENEWED.items() if kind in damaged]
    said += ["banks: their note made anew"] * no_note
    return said


def _remove_records(folder: OutputFolder) -> str:
    """Write the records anew without damaged ones; move away what stands in their place."""
    store = Journal(folder.records)
    with writing(folder.path):
        if store.is_blocked:
            done = f"moved to {move_away(store.path)}"
        else:
            done = f"{len(store.damaged())} removed"
            store.compact()
    return f"records: {done}; repeat the sweep's command to do their runs again"


def _mend_banks(folder: OutputFolder, data_dirs: Sequence[Path], *, allow_code: bool) -> str:
    """Write damaged descriptions again, and make damaged blocks count as missing."""
    done = [*_described_again(folder, data_dirs, allow_code=allow_code)]
    return f"banks: {'; '.join([*done, *_without_damaged_blocks(folder)])}"


def _described_again(
    folder: OutputFolder, data_dirs: Sequence[Path], *, allow_code: bool
) -> Iterator[str]:
    """Write damaged descriptions of banks again from the sweep; yield words on what was done.

    A bank that the sweep does not have now is removed.
    Where the sweep or its data cannot be read, banks stay as they are.
    """
    lost = [(root, bank) for store, root, bank in damaged_banks(folder.path) if store is None]
    if not lost:
        return
    try:
        rounds = _rounds(folder, data_dirs, allow_code=allow_code)[0]
    except InputError as error:
        left = counted(len(lost), "damaged description")
        yield f"{left} not written again, since the sweep cannot be read ({error})"
        return
    rounds.replay(Journal(folder.records))
    plans = {bank.id: bank for bank in rounds.plan.banks}
    written = 0
    for root, bank in lost:
        if bank in plans:
            BankRef(plans[bank], root, snapshot="", data_fingerprint="").store()
            written += 1
        else:
            open_blobs(root, bank).clear()
    if written:
        yield f"{counted(written, 'description')} written again"
    if written < len(lost):
        yield (
            f"{counted(len(lost) - written, 'bank')} removed, since the sweep has no such bank now;"
            " a sweep that needs it builds it again"
        )


def _without_damaged_blocks(folder: OutputFolder) -> Iterator[str]:
    """Make damaged blocks count as missing; yield words on it."""
    n_blocks = 0
    for store, _, _ in list(damaged_banks(folder.path)):
        if store is not None:
            n_blocks += len(store.drop_damaged())
    if n_blocks:
        yield f"{counted(n_blocks, 'block')} marked as missing; a sweep that needs them builds them"


def _renew(
    folder: OutputFolder,
    damaged: Collection[str],
    data_dirs: Sequence[Path],
    *,
    allow_code: bool,
) -> list[str]:
    """Make the layout, the snapshots and the note of banks anew from the sweep's data and records.

    Returns a line if only the sweep file tells the specification.
    """
    rounds, origin, whole = _rounds(folder, data_dirs, allow_code=allow_code)
    store = Journal(folder.records)
    root = banks_root(rounds.spec, folder.path)
    with claimed(folder.path, rounds.spec.name), writing(folder.path):
        rounds.replay(store)
        plan = rounds.plan
        if "layout" in damaged:
            lay_out(folder.path, plan, tree_facts(rounds), environment)
        if "snapshots" in damaged:
            ids = {bank.id for bank in plan.banks}
            bank_refs(plan, rounds.resolved, ids, root, folder.snapshots)
        if whole_note(folder.path) is None:
            drop_damaged_note(folder.path)
            stored = [bank.id for bank in plan.banks if bank.stored]
            note_banks(
                folder.path, root, [i for i in stored if open_blobs(root, i).has("zarr.json")]
            )
    lost = f"sweep: as {origin} is now; if options such as --set changed it, repeat that command"
    return [] if whole else [lost]


def _rounds(
    folder: OutputFolder, data_dirs: Sequence[Path], *, allow_code: bool
) -> tuple[Rounds, Path, bool]:
    """Return the rounds of a sweep at the first, and what :func:`_sweep_of` returns beside it."""
    spec, origin, whole = _sweep_of(folder)
    options = ConnectOptions()
    return sweep_rounds(spec, origin, data_dirs, options, allow_code=allow_code), origin, whole


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
