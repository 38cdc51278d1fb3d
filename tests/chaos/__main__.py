"""``python -m tests.chaos``: disturb small sweeps, and count the harm."""

import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console

from tests.chaos.campaign import Campaign
from tests.chaos.outcomes import Outcome, table_of


@click.command()
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all faults.")
@click.option("--kills", default=0, help="Kills of a coordinator, worker, their host, or all.")
@click.option("--pauses", default=0, help="Stops of one of them, which goes on later.")
@click.option("--signals", default=0, help="SIGINT, SIGTERM and SIGHUP, once and twice.")
@click.option("--exhausted", default=0, help="Workers out of memory.")
@click.option("--media", default=0, help="Full, read-only and vanished folders, each in turn.")
@click.option("--pairs", default=0, help="Second coordinators on one folder.")
@click.option("--starts", default=0, help="Two coordinators that start on one folder at once.")
@click.option("--schedulers", default=0, help="Running schedulers, killed and started again.")
@click.option("--lives", default=0, help="Sweeps on workers that live 12 seconds.")
@click.option("--flips", default=0, help="Flipped bits and files cut short.")
@click.option("--exchanges", default=0, help="Pairs of files of one kind that change places.")
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Where sweeps run; harmed ones stay there."
)
def main(folder: Path | None, **numbers: int) -> None:
    """Disturb small sweeps of two workers, run the same command again, and count the harm.

    The exit code is 1 if a fault did harm.
    """
    console = Console(width=140)
    outcomes: list[Outcome] = []
    folder = folder or Path(tempfile.mkdtemp(prefix="mkldist-chaos-"))
    try:
        for outcome in Campaign(**numbers).outcomes(folder):
            outcomes.append(outcome)
            for line in outcome.lines():
                console.print(f"{len(outcomes) - 1}: {line}", highlight=False, markup=False)
    finally:  # also of a campaign that is interrupted
        console.print(table_of(outcomes))
    if not all(outcome.is_good for outcome in outcomes):
        console.print(f"folders of harmed sweeps: {folder}", highlight=False)
        sys.exit(1)


if __name__ == "__main__":
    main()
