"""``mkldist sweep``: run the rest of a sweep and print its results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import SweepInputs, cluster_options, sweep_options
from mkldist.core.consoles import command_line, standard_error, standard_output
from mkldist.core.wording import pluralize
from mkldist.errors import EXIT_FAILED_RUNS

if TYPE_CHECKING:
    from rich.console import Console

    from mkldist.run.cluster import ConnectOptions
    from mkldist.run.sweep import SweepOutcome


@click.command("sweep")
@sweep_options
@cluster_options()
@click.option("--retry-failed", is_flag=True, help="Repeat runs that are recorded as failed.")
@click.option("--quiet", is_flag=True, help="Print no progress, only messages and the table.")
@json_option(
    "name", "path", "computed", "skipped", "counts", "others", "figures", "failed", "summary"
)
def command(
    sweep: SweepInputs,
    output: Path | None,
    connect_options: ConnectOptions,
    retry_failed: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run all of FILE that is not recorded yet.

    A run that is recorded in the output folder is never repeated: after any interruption, the
    same command resumes.  Exit codes: 0 all runs complete, 2 bad input, 3 some runs failed,
    4 wall_time over, 130 interrupted, 1 anything else, such as a scheduler that does not answer.
    """
    with _telling_what_is_kept(sweep, output):
        options = {"retry_failed": retry_failed, "quiet": quiet, "as_json": as_json}
        _run(sweep, output, connect_options, **options)


def _run(
    sweep: SweepInputs,
    output: Path | None,
    connect_options: ConnectOptions,
    *,
    retry_failed: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run a sweep, print its results, and exit if some are not complete."""
    from mkldist.run.sweep import run_sweep

    spec = sweep.load()
    with sweep.naming():
        outcome = run_sweep(
            spec,
            origin=sweep.file,
            data_dirs=sweep.data_dirs,
            output=output or sweep.results,
            connect_options=connect_options,
            retry_failed=retry_failed,
            console=None if quiet else standard_error,
            resume_command=_this_command(),
            allow_code=sweep.allow_code,
            of_file=sweep.of_file,
        )
    if as_json:
        print_json(_document(outcome))
    else:
        _show(outcome)
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
def _telling_what_is_kept(sweep: SweepInputs, output: Path | None) -> Iterator[None]:
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
    from mkldist.results.folder import OutputFolder
    from mkldist.results.journal import Journal
    from mkldist.run.paths import output_path

    path = output_path(sweep.load(), output or sweep.results)
    n_runs = len(Journal(OutputFolder(path).records).states()) if path.is_dir() else 0
    return pluralize(n_runs, "run is", "runs are")


def _document(outcome: SweepOutcome) -> dict[str, Any]:
    """Return the outcome for ``--json``."""
    from mkldist.analysis.summary import recorded_rows
    from mkldist.results.schema import RunState
    from mkldist.results.status import sweep_status

    complete = outcome.counts.get(RunState.COMPLETE, 0)
    return {
        "name": outcome.plan.spec.name,
        "path": outcome.path,
        "computed": outcome.computed,
        "skipped": outcome.skipped,
        "counts": {state: outcome.counts.get(state, 0) for state in RunState},
        "others": outcome.others,
        "figures": outcome.figures,
        "failed": sweep_status(outcome.path).failed if outcome.failed else [],
        "summary": recorded_rows(outcome.path) if complete else [],
    }


def _show(outcome: SweepOutcome) -> None:
    """Print the table and the path of the results."""
    from mkldist.results.status import others_words

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
    if outcome.figures:
        n_figures = len(outcome.figures)
        click.echo(f"figures: {outcome.path / 'figures'}, {n_figures} as .png and .svg")
    for line in _banks(outcome):
        click.echo(line)
    click.echo(f'open:    mkldist.open_results("{outcome.path}")')


def _banks(outcome: SweepOutcome) -> Iterator[str]:
    """Yield a line on the banks: how much stays, or that this call has removed them."""
    from mkldist.core.memory import readable_bytes
    from mkldist.run.clean import stored_banks

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
    from mkldist.results.status import sweep_status

    failures = sweep_status(outcome.path).failed
    console.print(f"\n{pluralize(outcome.failed, 'run')} failed:", style="red", highlight=False)
    for failure in failures[:3]:
        console.print(f"  {failure.node}: {failure.error}", highlight=False)
    console.print(
        f"{command_line('status', outcome.path)} lists them; --retry-failed repeats them",
        soft_wrap=True,
        highlight=False,
    )
