"""``mkldist rerun``: run a sweep again from its results, and compare."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import cluster_options, data_dir_option
from mkldist.core.consoles import command_line, standard_error
from mkldist.core.wording import pluralize
from mkldist.errors import EXIT_FAILED_RUNS

if TYPE_CHECKING:
    from mkldist.analysis.comparison import Agreement
    from mkldist.run.cluster import ConnectOptions

SHOWN = 5


@click.command("rerun")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=complete_results)
@cluster_options("results/NAME-rerun")
@data_dir_option()
@click.option(
    "--allow-code", is_flag=True, help="Call kernel functions that are not mkldist's own."
)
@click.option("--quiet", is_flag=True, help="Print no progress.")
@json_option("results", "path", "versions", "failed", "agreement", "holds")
def command(
    path: Path,
    output: Path | None,
    connect_options: ConnectOptions,
    data_dirs: tuple[Path, ...],
    allow_code: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the sweep of the results PATH again, into another folder, and compare the results.

    PATH is the folder of a sweep's results, its file or its name.  The sweep is that of the
    results, whatever its file says now.  Data that differ from those of the runs are refused.  The
    new results lie beside the former ones, under their name and -rerun, unless -o names a folder.
    After any interruption, the same command resumes.  The exit code is 3 if runs failed, if one of
    the results lacks runs, or if a certified interval of the optimum contradicts the former one.
    """
    from mkldist.run.paths import results_of
    from mkldist.run.rerun import Rerun, rerun_folder

    results = results_of(path)
    again = Rerun(results, output or rerun_folder(results), data_dirs, connect_options, allow_code)
    again.check_data()
    click.echo(f"{results}: the same data; {again.versions}", err=True)
    outcome = again.run(
        console=None if quiet else standard_error,
        resume_command=command_line(*sys.argv[1:]),
    )
    found = again.agreement()
    holds = found.holds and not (outcome.failed or outcome.waiting)
    if as_json:
        print_json(
            {
                "results": results,
                "path": outcome.path,
                "versions": again.versions,
                "failed": outcome.failed,
                "agreement": found,
                "holds": holds,
            }
        )
    else:
        if outcome.failed:
            click.echo(
                f"{pluralize(outcome.failed, 'run')} failed: {command_line('status', outcome.path)}"
            )
        for line in _lines(found, results, outcome.path):
            click.echo(line)
    if not holds:
        sys.exit(EXIT_FAILED_RUNS)


def _lines(found: Agreement, results: Path, again: Path) -> Iterator[str]:
    """Yield the sentences that say how far both results agree."""
    yield (
        f"{pluralize(found.n_runs, 'run')} compared, {found.n_equal} of them equal to the bit; "
        f"largest relative difference of objectives {found.objective_difference:.1e}"
    )
    for name, difference in found.loss_differences.items():
        yield f"largest difference of {name}: {difference:.2g}"
    for folder, number in zip((results, again), found.n_alone, strict=True):
        if number:
            yield f"{pluralize(number, 'complete run')} in {folder} alone"
    for run in found.contradictions[:SHOWN]:
        yield f"certificates contradict each other: {run}"
    if found.contradictions:
        yield f"{pluralize(len(found.contradictions), 'contradiction')} in all"
    elif found.n_runs:
        yield "all certified intervals of the optimum have points in common"
