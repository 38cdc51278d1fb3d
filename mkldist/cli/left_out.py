"""Lines on recorded runs that results leave out, for commands that read these."""

from __future__ import annotations

from pathlib import Path

import click


def tell_left_out(*results: Path) -> None:
    """Print a line to standard error for each folder whose results leave out recorded runs."""
    from mkldist.results.status import other_runs, others_words

    for path in dict.fromkeys(results):
        if said := others_words(other_runs(path)):
            click.echo(f"{path}: {said}", err=True)
