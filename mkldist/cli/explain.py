"""``mkldist explain``: which features and widths carry the decision of a method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_methods, complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.left_out import tell_left_out
from mkldist.consoles import standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from mkldist.analysis.explanation import Explanation, Share

SHOWN = 10
HEADINGS = {
    "feature_group": "groups of features",
    "features": "features",
    "width": "width",
    "function": "function",
}


@click.command("explain")
@click.argument("results", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option("--dataset", help="Data set.  [default: all]")
@click.option("--bank", help="Bank of kernels.  [default: any]")
@click.option(
    "--method",
    help="Method, by its name in the results.  [default: of those that choose kernels, the one of "
    "least mean loss]",
    shell_complete=complete_methods,
)
@click.option(
    "-o",
    "--output",
    "figure",
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
    figure: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Say which features and widths carry the decision, how stable, and what is lost.

    RESULTS is the folder of a sweep's results, its file or its name.  The share of the weights is
    that of the sum of kernel weights.  The share of the decision is that of the variance of the
    decision values at the test rows: the covariance of a kernel's part with the whole, by the
    variance of the whole.  What is lost is the loss against uniform weights, if the sweep has them.
    """
    from mkldist.errors import InputError
    from mkldist.fit.select import explain
    from mkldist.report.explanation_words import explanation_sentences
    from mkldist.run.places import results_of

    if figure is not None:
        from mkldist.report.explanation_chart import check_figure, write_explanation

        check_figure(figure, overwrite=overwrite)
    path = results_of(results)
    found = explain(path, dataset, bank, method)
    tell_left_out(path)
    if figure is not None:
        if len(found) > 1:
            names = ", ".join(one.dataset for one in found)
            raise InputError(
                f"-o {figure}",
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
        print_explanation(one, explanation_sentences(one))
    if figure is not None:
        click.echo(f"figure:  {figure}")


def print_explanation(explanation: Explanation, sentences: Sequence[str]) -> None:
    """Print the tables and the sentences."""
    from rich.text import Text

    from mkldist.report.explanation_words import has_named_groups

    console = standard_output()
    console.print(Text(f"{explanation.dataset}: {explanation.method}", "bold"), highlight=False)
    for coordinate, heading in HEADINGS.items():
        grouping = explanation.grouping(coordinate)
        if grouping is not None and (coordinate != "feature_group" or has_named_groups(grouping)):
            shares = grouping.shares
            if coordinate == "width" and len(shares) > SHOWN:
                shares = tuple(sorted(shares, key=lambda share: -share.weight))
            console.print()
            console.print(_table(heading, shares))
    console.print()
    for sentence in sentences:
        console.print(sentence, highlight=False)


def _table(heading: str, shares: Sequence[Share]) -> Table:
    """Return the largest shares, or all where they are few."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(heading)
    for name in ("kernels", "weights %", "decision %", "selected in"):
        table.add_column(name, justify="right", no_wrap=True)
    for share in shares[:SHOWN]:
        name = f"{share.name:g}" if isinstance(share.name, float) else share.name
        table.add_row(
            Text(name),
            str(share.n_kernels),
            _percent(share.weight, share.weight_sd),
            _percent(share.decision, share.decision_sd),
            f"{100 * share.frequency:.0f} % of splits",
        )
    if len(shares) > SHOWN:
        table.add_row(f"and {len(shares) - SHOWN} more", *[""] * 4, style="dim")
    return table


def _percent(mean: float, sd: float) -> str:
    from mkldist.analysis.cell_texts import NOTHING

    if math.isnan(mean):
        return NOTHING
    return f"{100 * mean:.1f}" + ("" if math.isnan(sd) else f" ± {100 * sd:.1f}")
