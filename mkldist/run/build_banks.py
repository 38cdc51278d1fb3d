"""Build the banks of a sweep without doing its runs: :func:`build_banks`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.bank.cache import using_banks
from mkldist.core.durable import writing
from mkldist.errors import MkldistError, StoreError, UnfitClusterError
from mkldist.results.journal import Journal
from mkldist.results.notes import note_banks
from mkldist.results.output import OutputFolder, claimed
from mkldist.run.cluster import ConnectOptions
from mkldist.run.paths import banks_root, output_path
from mkldist.run.progress import Counts, make_progress
from mkldist.run.sweep_setup import batch_settings, planned
from mkldist.run.work import bank_refs
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    from rich.console import Console

    from mkldist.run.work import Work
    from mkldist.run.worker_pool import Needs


@dataclass(frozen=True)
class BuiltBanks:
    """Banks of a sweep after a call of :func:`build_banks`.

    Parameters
    ----------
    root : str
        Folder or URL of the banks.
    banks : tuple of str
        Ids of all banks of the sweep.
    blocks, bytes : int
        Blocks that this call computed, and their bytes; blocks that existed are not counted.
    """

    root: str
    banks: tuple[str, ...]
    blocks: int
    bytes: int


def build_banks(
    spec: SweepSpec,
    *,
    origin: Path,
    data_dirs: Sequence[Path] = (),
    output: Path | None = None,
    connect_options: ConnectOptions | None = None,
    console: Console | None = None,
    allow_code: bool = False,
) -> BuiltBanks:
    """Compute the blocks of a sweep's banks that are missing.

    A bank that cannot be built does not stop the others; the error of the first such bank is raised
    at the end.

    Parameters
    ----------
    spec, origin, data_dirs, output, connect_options, console, allow_code
        As for :func:`mkldist.run.sweep.run_sweep`.

    Raises
    ------
    mkldist.errors.InputError
        For input that cannot be used, or banks that cannot be built or written.
    mkldist.errors.ClusterError
        When workers cannot be started or the scheduler is lost.
    """
    from mkldist.run.work import Work
    from mkldist.run.worker_pool import needs_of

    options = (connect_options or ConnectOptions()).of_execution(spec.execution)
    plan, resolved = planned(spec, origin, data_dirs, options, allow_code=allow_code)
    path = output_path(spec, output)
    root = banks_root(spec, path)
    with claimed(path, spec.name, origin) as folder, using_banks(root):
        wanted = {bank.id for bank in plan.banks}
        refs = bank_refs(plan, resolved, wanted, root, folder.snapshots)
        settings = batch_settings(spec)
        work = Work(refs, (), settings, expected_threads=options.expected_threads())
        stored = [ref for ref in work.banks_by_id.values() if ref.plan.stored]
        if stored:
            with writing(path):
                note_banks(path, root, {ref.plan.id for ref in stored})
        n_missing = sum(len(ref.store().missing()) for ref in stored)
        counts = Counts()
        if n_missing:
            needs = needs_of(spec, folder.path, root, resolved.code)
            counts = _build(work, folder, options.limited_to(n_missing), console, needs)
    return BuiltBanks(root, tuple(sorted(wanted)), counts.blocks_done, counts.bytes_done)


def _build(
    work: Work,
    folder: OutputFolder,
    options: ConnectOptions,
    console: Console | None,
    needs: Needs,
) -> Counts:
    """Build the missing blocks on a cluster; return their counts."""
    from mkldist.run.pending_tasks import error_line
    from mkldist.run.sweep_loop import SweepLoop
    from mkldist.run.worker_pool import worker_pool

    store = Journal(folder.records)
    with ExitStack() as stack:
        progress = stack.enter_context(make_progress(console))
        client, pool = stack.enter_context(options.connect()), None
        if not options.are_local:
            found = worker_pool(client, needs, progress.note, work.wall_time)
            pool = stack.enter_context(found)
            if not pool.sharing.banks:
                raise UnfitClusterError(
                    "workers",
                    f"machines that do not share {needs.banks}",
                    "a folder that all see under one path, or a URL",
                    "Name one by outputs.banks; a sweep needs none, as each machine then builds "
                    "banks for itself",
                )
            work = replace(work, banks=pool.reached(work.banks))
        loop = SweepLoop(client, work, store, progress, pool=pool)
        loop.work()
    for bank, error in loop.abandoned_banks.items():
        if isinstance(error, MkldistError):
            raise error
        where = f"bank {bank}"
        raise StoreError(
            where, f"a bank that cannot be built: {error_line(error)}", "a bank"
        ) from error
    return loop.counts
