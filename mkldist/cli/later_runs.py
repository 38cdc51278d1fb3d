"""A line on runs that the results do not hold yet, for commands that read these."""

from __future__ import annotations

from pathlib import Path

import click


def tell_later_runs(*results: Path) -> None:
    """Print a line to standard error for each folder whose results lack recorded runs."""
    from mkldist.results.newest import later_words
    from mkldist.results.snapshot import Snapshot
    from mkldist.results.tree import current

    for path in dict.fromkeys(results):
        said = later_words(Snapshot.of(current(path)).n_behind)
        if said:
            click.echo(f"{path}: {said}", err=True)
