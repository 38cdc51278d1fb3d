"""Building the banks of a sweep without doing its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.plan import make_plan
from mkldist.run.bank_refs import bank_refs
from mkldist.run.cluster import ConnectOptions, default_workers
from mkldist.run.coordinator import banks_root, output_path, parse_memory
from mkldist.run.output import as_output_error, claimed
from mkldist.run.progress import Counts, make_progress
from mkldist.run.resolve import resolve
from mkldist.run.tasks import BuildTask, build
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    from rich.console import Console

BLOCKS_PER_TASK = 8


@dataclass(frozen=True)
class BuiltBanks:
    """What was built.

    Parameters
    ----------
    root : str
        Folder or URL of the banks.
    banks : tuple of str
        Ids of all banks of the sweep.
    blocks, bytes : int
        Blocks that were computed, and their bytes; those that were there are not counted.
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
) -> BuiltBanks:
    """Compute the blocks of a sweep's banks that are missing.

    Parameters
    ----------
    spec, origin, data_dirs, output, connect_options, console
        As for :func:`mkldist.run.coordinator.run_sweep`.

    Raises
    ------
    mkldist.errors.InputError
        For input that cannot be used, or banks that cannot be written.
    """
    options = connect_options or ConnectOptions()
    resolved = resolve(spec, data_dirs, origin.parent)
    n_workers = options.n_workers or default_workers(options.threads_per_worker)
    plan = make_plan(
        spec, resolved.facts, resolved.banks, resolved.grids, n_workers, parse_memory(spec.memory)
    )
    path = output_path(spec, output)
    root = banks_root(spec, path)
    with claimed(path, spec.name) as folder:
        wanted = {bank.id for bank in plan.banks}
        refs = bank_refs(plan, resolved, wanted, root, folder.snapshots)
        tasks: list[BuildTask] = []
        counts = Counts()
        for ref in refs.values():
            missing = [block.index for block in ref.store().missing()]
            tasks += [
                BuildTask(ref, tuple(missing[start : start + BLOCKS_PER_TASK]))
                for start in range(0, len(missing), BLOCKS_PER_TASK)
            ]
            share = len(missing) / len(ref.store().blocks)
            counts.bytes += round(ref.plan.n_bytes * share)
        blocks = _build(tasks, counts, options, root, console) if tasks else 0
    return BuiltBanks(root, tuple(sorted(wanted)), blocks, counts.bytes_done)


def _build(
    tasks: Sequence[BuildTask],
    counts: Counts,
    options: ConnectOptions,
    root: str,
    console: Console | None,
) -> int:
    """Do the tasks on a cluster and return the number of blocks computed."""
    from distributed import as_completed

    blocks = 0
    with make_progress(console) as progress, options.limited_to(len(tasks)).connect() as client:
        waiting = iter(tasks)
        first = [next(waiting, None) for _ in range(2 * max(1, sum(client.nthreads().values())))]
        futures = [client.submit(build, task, pure=False) for task in first if task]
        running = as_completed(futures, loop=client.loop)
        for future in running:
            try:
                receipt = future.result()
            except Exception as error:
                refused = as_output_error(error, root)
                if refused is None:
                    raise
                raise refused from error
            blocks += receipt.blocks
            counts.bytes_done += receipt.bytes
            progress.show(counts)
            future.release()
            task = next(waiting, None)
            if task is not None:
                running.add(client.submit(build, task, pure=False))
    return blocks
