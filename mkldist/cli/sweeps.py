"""``mkldist plan``: print the work of a sweep without doing it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.options import (
    PATH,
    SweepInputs,
    cluster_options,
    complete_results,
    json_option,
    output_option,
    print_json,
    sweep_options,
    threads_option,
)
from mkldist.core.memory import readable_bytes
from mkldist.core.terminal import command_line, plain_table, standard_error, standard_output
from mkldist.core.wording import pluralize
from mkldist.errors import EXIT_FAILED_RUNS, InputError
from mkldist.results.folder import OutputFolder, output_path, results_of, rewritten_files
from mkldist.results.journal import Journal
from mkldist.results.layout import LAYOUT
from mkldist.results.schema import RunState
from mkldist.results.status import SweepStatus, others_words, sweep_status, traceback_of
from mkldist.spec.kinds import MOST_WORKERS

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from mkldist.run.sweep import SweepOutcome


_PLANNED = (
    "n_runs", "n_recorded", "n_failed", "n_batches", "n_banks", "n_kernels", "n_solvers",
    "disk_bytes", "memory_per_worker", "passes",
)  # fmt: skip
"""Numbers of a plan that ``--json`` prints."""


@click.command("plan")
@sweep_options
@output_option()
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    help="Workers to plan for, here or on a cluster; foretells time, bytes, memory and limits.",
)
@threads_option("Tasks that each of these workers does at the same time; by default 1.")
@click.option(
    "--storage",
    metavar="BYTES",
    help="Bytes a second of the storage that these workers share; by default no limit.",
)
@json_option("name", "output", *_PLANNED, "workers", "banks", "sizes", "data", "forecast")
def plan_command(
    sweep: SweepInputs,
    output: Path | None,
    workers: int | None,
    threads_per_worker: int | None,
    storage: str | None,
    as_json: bool,
) -> None:
    """Print the data, runs, kernels, bytes, memory and passes of FILE; write nothing.

    With --workers, also estimate what these and other numbers of workers take, as recorded runs
    did, or by typical rates.
    """
    from mkldist.from_python.plans import SweepPlan
    from mkldist.planning.planner import parse_memory

    if storage is not None and not (workers or threads_per_worker):
        expected = "--workers or --threads-per-worker beside it"
        raise InputError("--storage", f"{storage} without --workers", expected)
    spec = sweep.load()
    with sweep.naming():
        output = output or sweep.results or output_path(spec)
        plan = SweepPlan.make(
            spec,
            sweep.file,
            sweep.data_dirs,
            output,
            workers=workers,
            threads=threads_per_worker,
            storage=parse_memory(storage, "--storage"),
            allow_code=sweep.allow_code,
        )
    if as_json:
        print_json(
            {
                "name": spec.name,
                "output": output,
                **{name: getattr(plan, name) for name in _PLANNED},
                "workers": plan.n_workers,
                "banks": plan.banks.to_dict("records"),
                "sizes": plan.sizes.to_dict("records"),
                "data": plan.data,
                "forecast": plan.forecasts,
            }
        )
        return

    standard_output().print(plan, crop=False)


@click.command("sweep")
@sweep_options
@cluster_options()
@click.option("--retry-failed", is_flag=True, help="Repeat runs that are recorded as failed.")
@click.option("--quiet", is_flag=True, help="Print no progress, only messages and the table.")
@json_option("name", "path", "computed", "skipped", "counts", "others", "failed", "summary")
def sweep_command(
    sweep: SweepInputs, output: Path | None, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Run all of FILE that is not recorded yet.

    A run that is recorded in the output folder is never repeated: after any interruption, the
    same command resumes.  Exit codes: 0 all runs complete, 2 bad input, 3 some runs failed,
    4 wall_time over, 130 interrupted, 1 anything else, such as a scheduler that does not answer.
    """
    from mkldist.run.sweep import run_sweep

    output = output or sweep.results
    with _telling_what_is_recorded(sweep, output):
        spec = sweep.load()
        with sweep.naming():
            outcome = run_sweep(
                spec,
                origin=sweep.file,
                data_dirs=sweep.data_dirs,
                output=output,
                console=None if quiet else standard_error,
                resume_command=_this_command(),
                allow_code=sweep.allow_code,
                of_file=sweep.of_file,
                **options,
            )
    if as_json:
        print_json(_outcome_document(outcome))
    else:
        _show_outcome(outcome)
    if outcome.failed:
        _show_failures(outcome, standard_error())
    if outcome.waiting:
        standard_error().print(
            f"\n{pluralize(outcome.waiting, 'run has', 'runs have')} no record that can be read. "
            "Repeat the command.",
            style="red",
            highlight=False,
        )
    if outcome.failed or outcome.waiting:
        sys.exit(EXIT_FAILED_RUNS)


def _this_command() -> str:
    return command_line(*sys.argv[1:])


@contextmanager
def _telling_what_is_recorded(sweep: SweepInputs, output: Path | None) -> Iterator[None]:
    """Let an interrupt before or after the runs say how many runs are recorded and how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        if error.args:
            raise
        kept = "what is recorded stays"
        with suppress(Exception):
            kept = f"{_n_recorded(sweep, output)} recorded"
        raise KeyboardInterrupt(f"{kept}; resume with: {_this_command()}") from error


def _n_recorded(sweep: SweepInputs, output: Path | None) -> str:
    """Return how many runs the output folder has records of, with a verb."""
    path = output_path(sweep.load(), output)
    n_runs = len(Journal(OutputFolder(path).records).states()) if path.is_dir() else 0
    return pluralize(n_runs, "run is", "runs are")


def _outcome_document(outcome: SweepOutcome) -> dict[str, Any]:
    """Return the outcome for ``--json``."""
    from mkldist.analysis.summary import recorded_table

    complete = outcome.counts.get(RunState.COMPLETE, 0)
    return {
        "name": outcome.plan.spec.name,
        "path": outcome.path,
        "computed": outcome.computed,
        "skipped": outcome.skipped,
        "counts": {state: outcome.counts.get(state, 0) for state in RunState},
        "others": outcome.others,
        "failed": sweep_status(outcome.path).failed if outcome.failed else [],
        "summary": recorded_table(outcome.path).summary if complete else [],
    }


def _show_outcome(outcome: SweepOutcome) -> None:
    """Print the table and the path of the results."""
    if not outcome.computed:
        for line in outcome.mended:
            click.echo(f"note: {line}")
        click.echo(
            f"Nothing to do: all {outcome.skipped} runs of {outcome.plan.spec.name} are recorded. "
            f"{command_line('status', outcome.path)} shows them."
        )
    else:
        from mkldist.analysis.summary import recorded_table

        console = standard_output()
        console.print()
        console.print(recorded_table(outcome.path))
    if outcome.others:
        click.echo(f"\n{others_words(outcome.others)}")
    click.echo(f"\nresults: {outcome.path}")
    for line in _bank_line(outcome):
        click.echo(line)
    click.echo(f'open:    mkldist.open_results("{outcome.path}")')


def _bank_line(outcome: SweepOutcome) -> Iterator[str]:
    """Yield a line on the banks: how much stays, or that this call has removed them."""
    from mkldist.run.upkeep import stored_banks

    banks, spec = stored_banks(outcome.path), outcome.plan.spec
    if banks:
        n_bytes = sum(bank.store.n_bytes + bank.copy_bytes for bank in banks)
        why = " for further runs" * spec.outputs.keep_banks
        clean = command_line("clean", outcome.path)
        yield f"banks:   {readable_bytes(n_bytes)} stay{why}; {clean} removes them"
    elif (
        outcome.computed
        and not spec.outputs.keep_banks
        and any(bank.stored for bank in outcome.plan.banks)
    ):
        yield "banks:   removed; outputs.keep_banks = true keeps them for further runs"


def _show_failures(outcome: SweepOutcome, console: Console) -> None:
    """Print how many runs failed, the errors of the first, and how to repeat them."""
    failures = sweep_status(outcome.path).failed
    console.print(f"\n{pluralize(outcome.failed, 'run')} failed:", style="red", highlight=False)
    for failure in failures[:3]:
        console.print(f"  {failure.node}: {failure.error}", highlight=False)
    console.print(
        f"{command_line('status', outcome.path)} lists them; --retry-failed repeats them",
        soft_wrap=True,
        highlight=False,
    )


MOST_LINES = 12  # on what is being done


@click.command("status")
@click.argument("path", type=PATH, shell_complete=complete_results)
@click.option("--watch", is_flag=True, help="Show the progress anew until the sweep ends.")
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="Seconds between two looks of --watch.",
)
@json_option(
    "name", "path", "activity", "n_runs", "most_runs", "counts", "nodes", "at_work", "failed",
    "others", "damaged_records", "summary",
)  # fmt: skip
def status_command(path: Path, watch: bool, every: float, as_json: bool) -> None:
    """Print the progress, summary so far and errors of the sweep PATH.

    PATH is the folder of its results, its file or its name.
    While the sweep is at work, it names the runs that are being done.  A run counts as waiting
    until its outcome is recorded.  With --watch a terminal shows all this anew until the sweep
    ends; a pipe gets a line for each change.  Ctrl-C ends the look, and not the sweep.
    """
    if watch and as_json:
        raise InputError("--watch", "--json beside it", "one of the two")
    status = _watched(results_of(path), every) if watch else sweep_status(results_of(path))
    if as_json:
        print_json(_status_document(status))
    else:
        console = standard_output()
        for part in _parts(status):
            console.print(part, highlight=False, soft_wrap=isinstance(part, str), markup=False)


def _watched(path: Path, every: float) -> SweepStatus:
    """Show the progress until the sweep ends or the user has seen enough; return the last."""
    from rich.console import Group

    status, console, line = sweep_status(path), standard_output(), ""
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        screen = stack.enter_context(console.screen()) if console.is_terminal else None
        while _is_at_work(status):
            if screen is not None:
                screen.update(Group(*_parts(status)))
            elif (now := _progress_line(status)) != line:
                line = now
                click.echo(f"{time.strftime('%H:%M:%S')} {line}")
            time.sleep(every)
            status = sweep_status(path)
    return status


def _is_at_work(status: SweepStatus) -> bool:
    """Return True unless the sweep has ended; of another machine's, unless all runs are done."""
    claim = status.claim
    if claim is None or claim.is_live is False:
        return False
    return bool(claim.is_live or status.counts.get(RunState.WAITING, 0) or status.held is None)


def _progress_line(status: SweepStatus) -> str:
    """Return the progress in a line."""
    done, failed = (status.counts.get(one, 0) for one in (RunState.COMPLETE, RunState.FAILED))
    parts = [f"{status.name}: {done} of {pluralize(status.n_runs, 'run')} complete"]
    parts += [f", {failed} failed"] * bool(failed)
    for doing in dict.fromkeys(one.doing for one in status.at_work):
        parts.append(f"; {doing} {', '.join(o.place for o in status.at_work if o.doing == doing)}")
    return "".join(parts)


def _status_document(status: SweepStatus) -> dict[str, Any]:
    """Return the status for ``--json``."""
    from mkldist.analysis.summary import recorded_table

    some = status.counts.get(RunState.COMPLETE, 0)
    return {
        "name": status.name,
        "path": status.path,
        "activity": _activity(status),
        "n_runs": status.n_runs,
        "most_runs": status.most_runs,
        "counts": {state: status.counts.get(state, 0) for state in RunState},
        "nodes": {
            node: {state: counts.get(state, 0) for state in RunState}
            for node, counts in status.by_node.items()
        },
        "at_work": status.at_work,
        "failed": [vars(run) | {"traceback": traceback_of(status, run)} for run in status.failed],
        "others": status.others,
        "damaged_records": status.n_damaged,
        "summary": recorded_table(status.path, status.held).summary if some else [],
    }


def _parts(status: SweepStatus) -> Iterator[RenderableType]:
    """Yield the tables and the lines."""
    table = plain_table(["data set and method", *map(str, RunState)])
    for node, counts in status.by_node.items():
        table.add_row(node, *(str(counts.get(state, 0)) for state in RunState))
    table.add_section()
    table.add_row("all", *(str(status.counts.get(state, 0)) for state in RunState))
    yield from (f"{status.name} in {status.path}", _activity(status), *_at_work(status))
    for words in rewritten_files(status.path):
        yield (
            f"{words}: if its content changed, these runs do not count, and the same sweep command "
            "does new ones; 'mkldist plan' tells"
        )
    yield from ("", table)
    if status.counts.get(RunState.COMPLETE, 0):
        from mkldist.analysis.summary import recorded_table

        yield from ("", recorded_table(status.path, status.held))
    if status.n_damaged:
        records = pluralize(status.n_damaged, "damaged record is", "damaged records are")
        yield (
            f"\n{records} in {status.path}: {command_line('verify', status.path)} tells which; the "
            "same mkldist sweep command does these runs again"
        )
    if status.others:
        yield f"\n{others_words(status.others)}"
    for failure in status.failed:
        settings = "".join(f", {name} = {value}" for name, value in failure.params.items())
        yield f"failed {failure.node}, split {failure.split}{settings}: {failure.error}"


def _activity(status: SweepStatus) -> str:
    """Return a phrase that says if a process is at work on the sweep."""
    claim, lacking = status.claim, _lacking_layout(status)
    if claim is None or claim.is_live is False:
        if lacking:
            return f"stopped; {lacking}; the same mkldist sweep command makes it and resumes"
        waiting = status.counts.get(RunState.WAITING, 0)
        further = max(0, status.most_runs - status.n_runs)
        if not waiting + further:
            return "not at work; every run has an outcome"
        runs = f"{waiting} of {status.n_runs} runs to do"
        if status.most_runs:
            runs = f"at most {waiting + further} of {status.most_runs} runs to do"
        return f"stopped with {runs}; the same mkldist sweep command resumes"
    if claim.is_live:
        return f"at work: {claim}" + f"; {lacking}" * bool(lacking)
    return f"claimed by {claim}; only that machine can tell whether it is still at work"


def _lacking_layout(status: SweepStatus) -> str:
    """Return words on a folder that has no layout of results; nothing of one that has."""
    if status.without_layout is None:
        return ""
    if not status.without_layout:
        return f"there is no {LAYOUT} yet"
    recorded = pluralize(status.without_layout, "run is", "runs are")
    return f"there is no {LAYOUT}, though {recorded} recorded"


def _at_work(status: SweepStatus) -> Iterator[str]:
    """Yield lines on the runs that are being done and the banks that are being built."""
    for one in status.at_work[:MOST_LINES]:
        since = time.strftime("%H:%M:%S", time.localtime(one.since))
        runs = f"{pluralize(one.n_runs, 'run')} " if one.n_runs else ""
        yield f"  {one.place}: {runs}{one.doing}, since {since}"
    more = len(status.at_work) - MOST_LINES
    if more > 0:
        yield f"  and {more} more methods and banks"
