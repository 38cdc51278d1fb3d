"""``mkldist plan``: print the work of a sweep without doing it."""

from __future__ import annotations

import click

from mkldist.cli.options import GivenSweep, sweep_options


@click.command("plan")
@sweep_options
@click.option("--workers", type=click.IntRange(min=1), help="Worker processes to plan for.")
def command(sweep: GivenSweep, workers: int | None) -> None:
    """Print the data, runs, kernels, bytes, memory and passes of FILE; write nothing."""
    from rich.console import Console

    from mkldist.from_python.plans import SweepPlan
    from mkldist.run.places import output_path

    spec = sweep.load()
    with sweep.naming():
        output = sweep.results or output_path(spec)
        plan = SweepPlan.make(
            spec, sweep.file, sweep.data_dirs, output, workers, allow_code=sweep.allow_code
        )
    Console().print(plan, crop=False)
