"""``python -m tests.fuzz``: read many wrong inputs, and print those that were met badly."""

import sys
import tempfile
import time
from pathlib import Path

import click

from tests.fuzz.cases import faults, shares
from tests.fuzz.inputs import prepare


@click.command()
@click.option("--seed", default=0, show_default=True, help="Seed of all cases.")
@click.option("--cases", default=20_000, show_default=True, help="Number of wrong inputs.")
@click.option("--kind", "only", help="Only this kind.")
@click.option("--keep", type=click.Path(path_type=Path), help="Folder for inputs met badly.")
def main(seed: int, cases: int, only: str | None, keep: Path | None) -> None:
    """Read wrong inputs of every kind: the right answer is an error of mkldist, or right values.

    The exit code is 1 if an input raised anything else, hung, took much memory, or had something
    written outside its folder.
    """
    n_bad = 0
    with tempfile.TemporaryDirectory(prefix="mkldist-fuzz-") as name:
        folder = Path(name)
        prepare(folder)
        for kind, numbers in shares(cases):
            if only not in (None, kind.name):
                continue
            begin, n_before = time.monotonic(), n_bad
            for fault in faults(kind, numbers, seed, folder):
                n_bad += 1
                click.echo(f"{fault.kind} {fault.number}: {fault.said}")
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    place = f"{fault.kind.replace(' ', '-')}-{seed}-{fault.number}"
                    (keep / place).write_bytes(fault.content)
            seconds = time.monotonic() - begin
            click.echo(
                f"{kind.name}: {len(numbers)} cases, {n_bad - n_before} met badly, {seconds:.0f} s"
            )
    sys.exit(1 if n_bad else 0)


if __name__ == "__main__":
    main()
