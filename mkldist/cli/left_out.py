"""Lines on recorded runs that results leave out, for commands that read these."""

from __future__ import annotations

from pathlib import Path

import click


def tell_left_out(*results: Path) -> None:
    """Print lines to standard error for each folder whose results leave out recorded runs."""
    from mkldist.results.newest import later_words, others_words
    from mkldist.results.snapshot import Snapshot
    from mkldist.results.tree import current

    for path in dict.fromkeys(results):
        held = Snapshot.of(current(path))
        for said in (later_words(held.n_behind), others_words(held.n_others)):
            if said:
                click.echo(f"{path}: {said}", err=True)
