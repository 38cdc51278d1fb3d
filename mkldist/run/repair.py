"""Repair of damaged files in an output folder: what can be made anew is made anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mkldist.bank.byte_store import open_bytes
from mkldist.core.durable import move_away, writing
from mkldist.core.wording import pluralize
from mkldist.errors import StoreError
from mkldist.results.journal import Journal
from mkldist.results.layout_file import lay_out, read_layout
from mkldist.results.manifest import restored_manifest
from mkldist.results.notes import drop_damaged_note, note_banks, noted_banks, whole_note
from mkldist.results.output import OutputFolder, claimed
from mkldist.results.provenance import environment
from mkldist.run.bank_refs import BankRef
from mkldist.run.cluster import ConnectOptions
from mkldist.run.laplacian_cache import remove_damaged_laplacians
from mkldist.run.paths import banks_root
from mkldist.run.sweep_setup import sweep_rounds
from mkldist.run.tree_facts import tree_facts
from mkldist.run.verify import damaged_banks
from mkldist.run.work import bank_refs
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec


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
        If a process uses the folder, or the sweep or its data are needed and cannot be read.
    """
    name, folder, said = restored_manifest(path).sweep, OutputFolder(path), list[str]()
    banks = list(damaged_banks(path)) if "banks" in damaged else []
    with claimed(path, name), writing(path):  # which makes a damaged manifest anew
        if "manifest" in damaged:
            said.append(f"manifest: made anew for sweep {name!r}")
        if "records" in damaged:
            done = _without_damaged(Journal(folder.records))
            said.append(f"records: {done}; repeat the sweep's command to do their runs again")
        if n_blocks := sum(len(store.drop_damaged()) for store, _, _ in banks if store):
            blocks = pluralize(n_blocks, "block")
            said.append(f"banks: {blocks} marked as missing; a sweep that needs them builds them")
        if "laplacians" in damaged:
            n_removed = sum(map(remove_damaged_laplacians, noted_banks(path)))
            said.append(f"laplacians: {n_removed} removed; a sweep that needs them computes them")
    anew = {*damaged} & {"layout", "snapshots"}
    if "banks" in damaged and whole_note(path) is None:
        anew.add("note")
    undescribed = [(root, bank) for store, root, bank in banks if store is None]
    if anew or undescribed:
        said += _made_anew(folder, anew, undescribed, data_dirs, allow_code=allow_code)
    return said


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
    undescribed: Iterable[tuple[str, str]],
    data_dirs: Sequence[Path],
    *,
    allow_code: bool,
) -> Iterator[str]:
    """Make what is damaged anew from the sweep, its data and its records; yield lines on it.

    Parameters
    ----------
    folder : OutputFolder
        The folder.
    kinds : collection of str
        ``"layout"``, ``"snapshots"`` and ``"note"``, that of banks.
    undescribed : iterable of (str, str)
        Folder or URL, and id, of banks whose description is damaged.
    data_dirs, allow_code
        As for :func:`mkldist.run.sweep.run_sweep`.
    """
    spec, origin, whole = _sweep_of(folder)
    if not whole:
        yield f"sweep: as {origin} is now; if options such as --set changed it, repeat that command"
    rounds = sweep_rounds(spec, origin, data_dirs, ConnectOptions(), allow_code=allow_code)
    root = banks_root(spec, folder.path)
    with claimed(folder.path, spec.name), writing(folder.path):
        rounds.replay(Journal(folder.records))
        plan = rounds.plan
        banks = {bank.id: bank for bank in plan.banks}
        if "layout" in kinds:
            lay_out(folder.path, plan, tree_facts(rounds), environment)
            yield "layout: made anew from the sweep"
        if "snapshots" in kinds:
            bank_refs(plan, rounds.resolved, {*banks}, root, folder.snapshots)
            yield "snapshots: made anew from the data"
        if "note" in kinds:
            drop_damaged_note(folder.path)
            stored = [bank.id for bank in plan.banks if bank.stored]
            there = [i for i in stored if open_bytes(root, i).has("zarr.json")]
            note_banks(folder.path, root, there)
            yield "banks: their note made anew"
        for place, bank_id in undescribed:
            if bank_id in banks:
                BankRef(banks[bank_id], place, snapshot="", data_fingerprint="").store()
                yield f"banks: description of {bank_id} written again"
            else:
                open_bytes(place, bank_id).clear()
                yield f"banks: {bank_id} removed, which the sweep does not have now"


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
