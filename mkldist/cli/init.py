"""``mkldist init``: a first sweep file for a user's data."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.core.consoles import command_line

if TYPE_CHECKING:
    from mkldist.data.table_profile import Column
    from mkldist.run.first_sweep import Facts

SHOWN = 8
OTHER_FILE = "join files by [[datasets.views]]"


@click.command("init")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--label", metavar="COLUMN", help="Label column.  [default: by its name, else asked]")
@click.option(
    "--to",
    "file",
    type=click.Path(path_type=Path),
    help="Sweep file to write.  [default: NAME.toml here]",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
@click.pass_context
def command(
    context: click.Context, data: Path, label: str | None, file: Path | None, overwrite: bool
) -> None:
    """Look at the file DATA, write a commented sweep for it, and print the plan of that sweep."""
    from mkldist.cli.plan import command as plan
    from mkldist.core.durable import check_free, write_file, writing
    from mkldist.run.first_sweep import first_sweep, sweep_name

    target = file or Path(f"{sweep_name(data)}.toml")
    check_free(target, overwrite=overwrite)
    facts = _facts(data, label)
    text = first_sweep(data, target, facts)
    with writing(target):
        write_file(target, [text.encode()])
    for note in facts.notes(target):
        click.echo(note)
    click.echo(f"wrote {target}; its plan:\n")
    context.invoke(plan, file=target, overrides=(), memory=None, data_dirs=(), workers=None)
    click.echo(f"\n{command_line('sweep', target)} runs it")


def _facts(data: Path, label: str | None) -> Facts:
    """Return what the data are like: of a table by its columns, of others by the data set."""
    from mkldist.data.catalogue import load_dataset
    from mkldist.data.opening import check_file
    from mkldist.data.table_profile import TABLES, TableProfile, check_label, read_columns
    from mkldist.data.zarr_stores import is_zarr
    from mkldist.errors import DataError
    from mkldist.run.first_sweep import Facts, sweep_name
    from mkldist.spec.datasets import DatasetSpec

    if not is_zarr(data):
        check_file(data, str(data))
    if not data.name.casefold().endswith(TABLES):
        spec = DatasetSpec(name=sweep_name(data), file=str(data.absolute()), label=label)
        try:
            found = load_dataset(spec, (), Path(), seed=0)
        except DataError as error:  # in the words of this command, not in those of a sweep file
            hint = error.hint.replace("Set label = ", "Give --label ")
            raise DataError(error.where, error.found, error.expected, hint) from None
        counts = Counter(found.class_numbers.tolist()) if found.classes else {}
        names = found.classes or ()
        classes = {names[number]: count for number, count in counts.items()}
        facts = Facts(found.n_points, found.n_features, found.classes is None, label)
        return replace(facts, classes=classes)
    columns = read_columns(data)
    if label is not None:
        check_label(columns, label, "--label")
    return Facts.of(TableProfile(columns, label or _label(columns, data)))


def _label(columns: dict[str, Column], data: Path) -> str:
    """Return the label column by its name, or ask for it; raise a DataError if nobody is there."""
    from mkldist.data.columns import LABEL_WORDS
    from mkldist.data.table_profile import MOST_CLASSES, likely_label, possible_labels
    from mkldist.errors import DataError

    likely = likely_label(columns)
    if likely is not None:
        return likely
    possible = possible_labels(columns)
    few = [name for name in possible if len(columns[name].counts) <= MOST_CLASSES]
    if not sys.stdin.isatty():
        raise DataError(
            str(data),
            f"no column that is called {LABEL_WORDS}",
            "the name of the label column",
            _advice(few, possible or list(columns)),
        )
    possible = possible or list(columns)
    shown_names = few or possible
    for name in shown_names:
        values = columns[name].counts
        shown = ", ".join(list(values)[:5])
        click.echo(f"  {name}: {len(values)} values ({shown}{', …' if len(values) > 5 else ''})")
    if len(shown_names) < len(possible):
        click.echo("  all others hold more values, such as real values for regression")
    choice = click.Choice(possible)
    return str(click.prompt("Which column holds the labels?", type=choice, show_choices=False))


def _advice(few: Sequence[str], possible: Sequence[str]) -> str:
    """Return the columns that may be the label, in words: first those of few values."""
    from mkldist.core.wording import truncate

    if not few:
        listed = truncate([repr(name) for name in possible], SHOWN)
        return f"Give --label, one of {listed}; or, if labels stand in another file, {OTHER_FILE}"
    listed = truncate([repr(name) for name in few], SHOWN)
    others = "; all others hold more values" if len(few) < len(possible) else ""
    return f"Give --label, one of {listed}{others}. If labels stand in another file, {OTHER_FILE}"
