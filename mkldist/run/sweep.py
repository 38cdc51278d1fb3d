"""A sweep from its specification to its results: :func:`run_sweep`.

The coordinator plans the sweep, leaves out the runs whose records are in the output folder, and
does the others on a cluster.  A recorded run is never done again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.bank.byte_store import LAPLACIANS, open_bytes
from mkldist.bank.cache import BankUse, remove_stored, removing_banks, using_banks
from mkldist.bank.store import list_banks
from mkldist.core.durable import writing
from mkldist.core.terminal import command_line
from mkldist.core.wording import pluralize
from mkldist.data.snapshot import damaged_files
from mkldist.errors import OutOfTimeError, OutputError
from mkldist.planning.model import BatchPlan, Plan
from mkldist.planning.planner import without
from mkldist.results.folder import (
    OutputFolder,
    banks_root,
    claimed,
    drop_damaged_note,
    is_note_damaged,
    note_banks,
    noted_banks,
    output_path,
    remove_work_note,
)
from mkldist.results.journal import Journal, environment
from mkldist.results.layout import lay_out
from mkldist.results.schema import RunState
from mkldist.results.status import lacking_runs
from mkldist.run.cluster import ConnectOptions
from mkldist.run.local_workers import remove_abandoned
from mkldist.run.progress import Counts, Progress, make_progress
from mkldist.run.rounds import Rounds
from mkldist.run.saved_inputs import FROM_FILES, FilesBefore, SavedInputs, noted_changes
from mkldist.run.sweep_setup import (
    WallTime,
    Work,
    bank_refs,
    batch_settings,
    is_small,
    sweep_rounds,
    tree_facts,
    with_recorded,
)
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    from rich.console import Console

    from mkldist.run.worker_pool import WorkerPool


@dataclass(frozen=True)
class SweepOutcome:
    """State of a sweep after a call of :func:`run_sweep`."""

    plan: Plan  # plan of the whole sweep; with a search, of the runs that it has decided on
    path: Path  # its output folder
    counts: Mapping[RunState, int]  # runs of the plan by state
    computed: int  # runs that this call recorded
    skipped: int  # runs that were recorded before
    others: int = 0  # recorded runs in the output folder that are not in the plan; they are kept
    # Lines that say what was damaged in the folder, and what became of it
    mended: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """Number of failed runs."""
        return self.counts.get(RunState.FAILED, 0)

    @property
    def waiting(self) -> int:
        """Number of runs without a record; 0 unless records have been lost meanwhile."""
        return self.counts.get(RunState.WAITING, 0)


OF_CALL = ("name", "outputs", "memory", "wall_time", "worker_wait")
"""Keys of a sweep on which no result depends."""


def opening_note(rounds: Rounds, n_left: int, output: Path) -> str:
    """Return the first line of a call: what is to do, what is recorded, and where it goes."""
    before = len(rounds.most.runs) - n_left
    are = "is" if before == 1 else "are"
    recorded = f", {before} {are} recorded already" if before else ""
    runs = f"{_at_most(rounds)}{pluralize(n_left, 'run')} to do"
    return f"{rounds.spec.name}: {runs}{recorded}; output in {output}"


def _at_most(rounds: Rounds) -> str:
    """Return words before the number of all runs, if there may be fewer in the end."""
    return "at most " * rounds.are_several


def left_out_note(rounds: Rounds) -> str:
    """Return a line about the runs that are left out because others give them no C."""
    missing = rounds.without_C
    keys = ", ".join(dict.fromkeys(run.key for run in missing))
    return (
        f"{pluralize(len(missing), 'run')} of {keys} failed or found no kernel, and so gave no C: "
        "the runs that take it are left out"
    )


def run_sweep(
    spec: SweepSpec,
    *,
    origin: Path,
    data_dirs: Sequence[Path] = (),
    output: Path | None = None,
    connect_options: ConnectOptions | None = None,
    retry_failed: bool = False,
    console: Callable[[], Console] | None = None,
    resume_command: str = "",
    saved: SavedInputs = FROM_FILES,
    allow_code: bool = False,
    of_file: SweepSpec | None = None,
) -> SweepOutcome:
    """Do the runs of a sweep that have no record yet.

    `origin` is the sweep file, at whose folder relative paths of data begin; `data_dirs` are
    searched for data sets by name.  `console` returns the console for the progress, if there is
    any; `resume_command` stands in the message after an interruption; `saved` is what the output
    folder saves of a sweep that was given in Python.  `of_file` is the sweep without the changes of
    this call: where the call asks for a part of its runs, the results hold those of them that are
    recorded, too.

    Ctrl-C and the end of the time are raised after the cluster is closed; they say how many runs
    are recorded and how to resume.
    """
    remove_abandoned()
    wanted, path = connect_options or ConnectOptions(), output_path(spec, output)
    patient = wanted.cluster_file is not None
    wall_time = WallTime.from_now(spec.wall_time, spec.worker_wait, patient=patient)
    options = wanted.of_execution(spec.execution)
    files = FilesBefore.of(spec, data_dirs, origin.parent, saved.data)
    rounds = sweep_rounds(spec, origin, data_dirs, options, saved.data, allow_code=allow_code)
    if of_file is not None and path.exists():
        own = {name: getattr(spec, name) for name in OF_CALL}
        whole = of_file.model_copy(update=own)
        recorded = Journal(OutputFolder(path).records).states()
        read = partial(sweep_rounds, whole, origin, data_dirs, options, saved.data)
        rounds = with_recorded(rounds, partial(read, allow_code=allow_code), recorded)
        spec = rounds.spec
    data = files.read(spec, rounds.resolved)
    words = spec.model_dump_json(exclude_defaults=True)
    with claimed(path, spec.name, origin, words) as folder:
        changed = saved.write(folder)
        sweep = _Sweep(rounds, folder, wall_time)
        before = sweep.open(retry_failed=retry_failed)
        changed += noted_changes(folder.path, data) or sweep.set_aside(before)
        changed += [*sweep.done_again(), *sweep.mended]
        after = before
        if len(before) < len(sweep.plan.runs):
            shown = make_progress(console() if console else None)
            with using_banks(sweep.noted_root()) as sweep.bank_use, shown as progress:
                if (
                    not wanted.are_default
                    and options.expected_threads() < wanted.expected_threads()
                ):
                    progress.note("isolated runs go one at a time, with one worker")
                for line in changed:
                    progress.note(line)
                again = resume_command or command_line("sweep", origin)
                sweep.work(before, options, progress, again)
            after = sweep.recorded()
        else:
            sweep.mend_snapshots()
        sweep.remove_banks(after)
        plan, others = sweep.plan, sweep.others()
    counts = Counter(after.values())
    counts[RunState.WAITING] = len(plan.runs) - len(after)
    computed = len(after.keys() - sweep.known)
    skipped = len(after) - computed
    mended = tuple(sweep.mended)
    return SweepOutcome(plan, folder.path, dict(counts), computed, skipped, others, mended)


class _Sweep:
    """A sweep in an output folder that this process owns."""

    def __init__(self, rounds: Rounds, folder: OutputFolder, wall_time: WallTime) -> None:
        self.rounds, self.spec, self.resolved = rounds, rounds.spec, rounds.resolved
        self.folder, self.store = folder, Journal(folder.records)
        self._wall_time = wall_time
        self.known: frozenset[str] = frozenset()
        self.n_incomplete = 0
        self.mended: list[str] = []
        self._built: set[str] = set()
        self.bank_use = BankUse()

    @property
    def plan(self) -> Plan:
        """The runs that are decided so far."""
        return self.rounds.plan

    def recorded(self) -> dict[str, RunState]:
        """Return the recorded runs of the plan, and their states."""
        return self._planned(self.store.states())

    def _planned(self, recorded: Mapping[str, RunState]) -> dict[str, RunState]:
        """Return those of some recorded runs that are of the plan."""
        ids = {run.id for run in self.plan.runs}
        return {i: state for i, state in recorded.items() if i in ids}

    def others(self) -> int:
        """Return the number of recorded runs that are not in the plan; this call adds none."""
        return len(self.known - {run.id for run in self.plan.runs})

    def set_aside(self, recorded: Collection[str]) -> list[str]:
        """Return a line if the folder holds runs of another sweep of this name alone."""
        others = 0 if recorded else self.others()
        if not others:
            return []
        runs = pluralize(others, "run is", "runs are")
        return [
            f"{self.folder.path} holds another sweep of the name {self.spec.name!r}, or this one "
            f"before its file changed: its {runs} set aside, not removed. To keep both, rename one"
        ]

    def done_again(self) -> list[str]:
        """Return a line if runs are done again because their records lack what is asked for now."""
        if not self.n_incomplete:
            return []
        runs = pluralize(self.n_incomplete, "run is", "runs are")
        return [f"{runs} done again: their records lack predictions or coefficients, now asked for"]

    def open(self, *, retry_failed: bool) -> dict[str, RunState]:
        """Write the layout of the results; return the recorded runs.

        Records are removed, so that their runs are done again, if they are damaged, if they lack
        predictions or coefficients that the sweep or a figure needs, or, with `retry_failed`, if
        the run failed.
        """
        with writing(self.folder.path):
            self._drop_damaged()
            self.rounds.replay(self.store)
            if retry_failed:
                states = self.recorded().items()
                self.store.remove(i for i, state in states if state is RunState.FAILED)
            missing = lacking_runs(self.plan, self.store, self.folder.path)
            self.store.remove(missing)
            self.n_incomplete = len(missing)
            remove_work_note(self.folder.path)  # of a process that was killed
            self.rounds.replay(self.store)
        recorded = self._prepare()
        self.known = frozenset(recorded)
        return self._planned(recorded)

    def _drop_damaged(self) -> None:
        """Write the records anew if some are damaged, without these: their runs are done again."""
        n_lost = sum(not damage.is_torn for damage in self.store.damaged())
        if n_lost:
            self.store.compact()
            were = pluralize(n_lost, "record was", "records were")
            self.mended.append(f"{were} damaged, whose runs are done again")

    def _prepare(self) -> dict[str, RunState]:
        """Write the layout of the plan; return the recorded runs."""
        with writing(self.folder.path):
            facts = tree_facts(self.rounds)
            was_damaged = lay_out(self.folder.path, self.plan, facts, environment)
        if was_damaged:
            self.mended.append("the layout of the results was damaged, and is made anew")
        if is_note_damaged(self.folder.path):  # though no run may be left that needs one
            self.noted_root()
            with writing(self.folder.path):
                drop_damaged_note(self.folder.path)  # where nothing is stored
            self.mended.append("the note of stored Gram matrices was damaged, and is made anew")
        return self.store.states()

    def mend_snapshots(self) -> None:
        """Write damaged copies of the data anew, though no run is left that reads them."""
        damaged = [path for path in self.folder.snapshots.glob("*/") if damaged_files(path)]
        if damaged:
            with writing(self.folder.snapshots):
                for path in damaged:  # perhaps of data that the sweep no longer has
                    shutil.rmtree(path)
            root = banks_root(self.spec, self.folder.path)
            wanted = {bank.id for bank in self.plan.banks}
            bank_refs(self.plan, self.resolved, wanted, root, self.folder.snapshots)
            self.mended.append("a copy of the data was damaged, and is made anew")

    def noted_root(self) -> str | None:
        """Note which banks are stored; return their folder or URL, None if nothing is."""
        stored = {bank.id for bank in self.plan.banks if bank.stored}
        if not stored and all(run.graph is None for run in self.plan.runs):
            return None
        root = banks_root(self.spec, self.folder.path)
        with writing(self.folder.path):
            note_banks(self.folder.path, root, stored)
        return root

    def work(
        self,
        before: Collection[str],
        options: ConnectOptions,
        progress: Progress,
        resume_command: str,
    ) -> None:
        """Do the runs that had no record on a cluster."""
        n_runs = len(self.rounds.most.runs) - len(before)
        left = without(self.rounds.most.batches, before)
        alone = options.are_default and is_small(self.rounds, left)
        small = options.in_this_process or alone
        options = replace(options.limited_to(n_runs), in_this_process=small)
        try:
            opening = opening_note(self.rounds, n_runs, self.folder.path)
            for line in (*self.resolved.summary_lines(self.spec), opening):
                progress.note(line)
            progress.show(replace(self._counts(before), doing="starting workers"))
            with options.connect() as client:
                if client.dashboard_link and (options.scheduler or find_spec("bokeh")):
                    progress.note(f"dashboard: {client.dashboard_link}")
                with self._pool(client, options, progress) as pool:
                    self._do_rounds(client, before, options, progress, pool)
        except (KeyboardInterrupt, OutOfTimeError) as error:
            recorded = self.recorded()
            runs = f"{_at_most(self.rounds)}{len(self.rounds.most.runs)} runs"
            how = f"{len(recorded)} of {runs} are recorded; resume with: {resume_command}"
            if isinstance(error, OutOfTimeError):
                if len(recorded) <= len(before):
                    how += "; no run has ended in this time, so give it more"
                raise OutOfTimeError(error.where, error.found, hint=how) from None
            raise KeyboardInterrupt(how) from error

    def _pool(
        self, client: Any, options: ConnectOptions, progress: Progress
    ) -> AbstractContextManager[WorkerPool | None]:
        """Return a context of the workers on other machines; of None without any."""
        if options.are_local:
            return nullcontext()
        from mkldist.run.worker_pool import needs_of, worker_pool

        stored = any(bank.stored for bank in self.plan.banks)
        root = banks_root(self.spec, self.folder.path) if stored else ""
        needs = needs_of(self.spec, self.folder.path, root, self.resolved.code)
        return worker_pool(client, needs, progress.note, self._wall_time)

    def _do_rounds(
        self,
        client: Any,
        before: Collection[str],
        options: ConnectOptions,
        progress: Progress,
        pool: WorkerPool | None,
    ) -> None:
        """Do round after round until no run is left; a sweep without a search has one."""
        from mkldist.run.sweep_loop import SweepLoop

        at_first, counts = before, self._counts(before)
        while True:
            work = self._work(without(self.plan.batches, before), options, pool)
            loop = SweepLoop(client, work, self.store, progress, counts, pool)
            loop.work()
            more = self.rounds.advance(self.store)
            if not more:
                if self.rounds.without_C:
                    progress.note(left_out_note(self.rounds))
                return
            before = self._planned(self._prepare())
            counts = replace(loop.counts, runs=self._counts(at_first).runs)
            progress.show(counts)

    def _counts(self, before: Collection[str]) -> Counts:
        """Return the counts of a call that finds some runs recorded."""
        n_runs = len(self.rounds.expected.runs) - len(before)
        return Counts(runs=n_runs, may_be_fewer=self.spec.search is not None)

    def _work(
        self, batches: tuple[BatchPlan, ...], options: ConnectOptions, pool: WorkerPool | None
    ) -> Work:
        """Return the work of the runs that are not recorded."""
        root = banks_root(self.spec, self.folder.path)
        wanted = {batch.bank for batch in batches}
        banks = bank_refs(self.plan, self.resolved, wanted, root, self.folder.snapshots)
        settings = batch_settings(self.spec, predictions=self.rounds.keeps_predictions)
        if pool is not None:
            banks = pool.reached(banks)
        return Work(
            banks,
            batches,
            replace(settings, own_workers=options.scheduler is None),
            self.plan.runs,
            keep_banks=self.spec.outputs.keep_banks,
            own_banks=self.spec.outputs.banks is None,
            later_banks=self.rounds.later_banks,
            built=self._built,
            use=self.bank_use,
            expected_threads=options.expected_threads(),
            wall_time=self._wall_time,
        )

    def remove_banks(self, recorded: Collection[str]) -> None:
        """Remove what is left of banks, unless they are kept, in use, or needed by some run.

        It is that of a call that was killed after it recorded their last run, and graph Laplacians.
        """
        outputs = self.spec.outputs
        root = banks_root(self.spec, self.folder.path)
        if outputs.keep_banks or len(recorded) < len(self.plan.runs) or "://" in root:
            return
        own = outputs.banks is None
        noted = noted_banks(self.folder.path).get(root, ()) if own else ()
        left = ({*noted} | self._built).intersection(list_banks(root))
        laplacians = open_bytes(root, LAPLACIANS)
        if left or (own and Path(laplacians.location).is_dir()):
            with suppress(OutputError, OSError), removing_banks(Path(root)):
                for bank_id in left:
                    remove_stored(Path(root), bank_id)
                if own:
                    laplacians.clear()
