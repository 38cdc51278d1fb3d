"""``mkldist explain``: which views, groups of features and features carry the decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_methods, complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.left_out import tell_left_out
from mkldist.core.consoles import standard_output
from mkldist.core.wording import pluralize

if TYPE_CHECKING:
    from rich.table import Table

    from mkldist.analysis.explanation import Explanation


NAME = 18
"""Width of the column of names, at least."""


@click.command("explain")
@click.argument("results", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option("--dataset", help="Data set.  [default: all]")
@click.option("--bank", help="Bank of kernels.  [default: any]")
@click.option(
    "--method",
    help="Method, by its name in the results.  [default: the one of least mean loss]",
    shell_complete=complete_methods,
)
@click.option(
    "--permutations",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Fits on permuted labels of each split, for p-values; each takes as long as a run.",
)
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw one data set to this file: .pdf, .svg or .png.",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
@json_option("explanations", "words", "figure")
def command(
    results: Path,
    dataset: str | None,
    bank: str | None,
    method: str | None,
    permutations: int,
    figure: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Say which views, groups and features carry the decision, how surely, and what is lost.

    RESULTS is the folder of a sweep's results, its file or its name.  One table has the share of
    the decision, the share of the weights, the loss when left out and how often it is active, each
    with its interval over the splits.
    """
    from mkldist.errors import InputError
    from mkldist.fit.explain import explain
    from mkldist.report.sentences import explanation_sentences
    from mkldist.run.paths import results_of

    if figure is not None:
        from mkldist.report.charts import check_figure, write_explanation

        check_figure(figure, overwrite=overwrite)
    path = results_of(results)
    if permutations:
        fits = pluralize(permutations, "permutation")
        click.echo(f"fitting {fits} of the labels of each split", err=True)
    found = explain(path, dataset, bank, method, permutations)
    tell_left_out(path)
    if figure is not None:
        if len(found) > 1:
            names = ", ".join(one.dataset for one in found)
            raise InputError(
                f"--figure {figure}",
                f"{len(found)} data sets: {names}",
                "one, for a figure is of one data set",
                f"Choose it: --dataset {found[0].dataset}",
            )
        write_explanation(found[0], figure)
    if as_json:
        words = {one.dataset: explanation_sentences(one) for one in found}
        print_json({"explanations": found, "words": words, "figure": figure})
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        print_explanation(one)
    if figure is not None:
        click.echo(f"figure:  {figure}")


def print_explanation(explanation: Explanation) -> None:
    """Print the table, what its columns are, and the sentences."""
    from rich.text import Text

    from mkldist.report.sentences import captions, explanation_sentences, warnings

    console = standard_output()
    console.print(Text(f"{explanation.dataset}: {explanation.method}", "bold"), highlight=False)
    for sentence in warnings(explanation):
        console.print(sentence, highlight=False)
    console.print()
    console.print(table(explanation))
    for words in captions(explanation):
        console.print(Text(words, "dim"), highlight=False)
    console.print()
    for sentence in explanation_sentences(explanation)[len(warnings(explanation)) :]:
        console.print(sentence, highlight=False)


def table(explanation: Explanation) -> Table:
    """Return one table of views, then groups, features and kernels."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from mkldist.analysis.explanation import LEVELS
    from mkldist.report.sentences import (
        SHOWN_LEVELS,
        name_of,
        others_words,
        share_cells,
        shown_shares,
    )

    found = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    found.add_column("", min_width=NAME, overflow="fold")
    shares = explanation.shares[:1]
    for name in (heading for share in shares for heading in share_cells(explanation, share)):
        found.add_column(name, justify="right", no_wrap=True)
    for level in SHOWN_LEVELS:
        matter, others = shown_shares(explanation, level)
        if matter:
            found.add_row(Text(LEVELS[level], "bold"))
            for share in matter:
                name = name_of(share, explanation.of(level))
                found.add_row(Text(f" {name}"), *share_cells(explanation, share).values())
        if matter and others and level != "kernel":
            found.add_row(Text(f" {others_words(others)}", "dim"))
    return found
