"""Tables and sentences of ``mkldist compare``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mkldist.analysis.cell_texts import NOTHING, p_value_text
from mkldist.analysis.paired_losses import SIGNIFICANCE
from mkldist.consoles import standard_output

if TYPE_CHECKING:
    from rich.align import VerticalAlignMethod
    from rich.console import Console
    from rich.table import Table

    from mkldist.analysis.compare_results import (
        Difference,
        OverDataSets,
        PairComparison,
        ResultsComparison,
    )
    from mkldist.analysis.pairing import Results

MEASURES = ("active_kernels", "seconds", "gap")


def print_comparison(
    comparison: ResultsComparison, first: Results, second: Results, said: Sequence[str]
) -> None:
    """Print a comparison."""
    console = standard_output()
    pairs = comparison.pairs
    one_pair = len({(pair.first, pair.second) for pair in pairs}) == 1
    names = {id(pair): _name(pair, one_pair=one_pair) for pair in pairs}
    for letter, results, name in (("A", first, pairs[0].first), ("B", second, pairs[0].second)):
        what = f"{name}, " if one_pair else "methods "
        said_of = f"{letter}: {what}in {results.path}"
        console.print(said_of, highlight=False, soft_wrap=True)
    for loss in dict.fromkeys(pair.loss for pair in pairs):
        some = [pair for pair in pairs if pair.loss == loss]
        console.print()
        console.print(_fitting(console, partial(_losses, some, loss, names)))
    console.print()
    console.print(_fitting(console, partial(_measures, pairs, names)))
    if any(not math.isnan(found.low) for pair in pairs for found in pair.measures.values()):
        console.print()
        console.print(_fitting(console, partial(_differences, pairs, names)))
    console.print()
    for line in legend(pairs):
        console.print(line, highlight=False, style="dim")
    console.print()
    for one in comparison.unpaired:
        console.print(f"Not compared: {one.place}: {one.reason}.", highlight=False)
    for pair in pairs:
        if any(pair.left_out):
            left = f"{pair.left_out[0]} of A and {pair.left_out[1]} of B"
            console.print(
                f"{names[id(pair)]}: {pair.n_splits} splits are paired; {left} have no partner.",
                highlight=False,
            )
    for over in comparison.over:
        console.print(_over(over), highlight=False)
    for sentence in said:
        console.print(sentence, highlight=False, soft_wrap=False)


def legend(pairs: Sequence[PairComparison]) -> Iterator[str]:
    """Yield what the columns of tests are, and why one is empty."""
    if any(not math.isnan(pair.p_value) for pair in pairs):
        yield (
            "p: how probable a difference as large is where both are equal, at most 1; "
            f"below {SIGNIFICANCE} counts. p Holm: corrected for all pairs of this answer."
        )
        yield "A better / equal / B: probabilities; equal is less apart than --rope."
    classes = [pair for pair in pairs if pair.loss.endswith("error")]
    if not classes:
        yield f"McNemar {NOTHING}: its test compares predicted classes, and these are real values."
        return
    if any(pair.points is not None for pair in classes):
        yield "McNemar: splits whose test finds A better, B better, or leaves it open."
    if any(pair.points is None for pair in classes):
        yield (
            f"McNemar {NOTHING}: runs kept no predictions to test; [outputs] predictions = true "
            "keeps them."
        )


def plain_table(headings: Sequence[str], vertical: VerticalAlignMethod = "bottom") -> Table:
    """Return a table with these headings: text on the left, numbers on the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if number else "left",
            no_wrap=bool(number),
            overflow="fold",
            vertical=vertical,
        )
    return table


def _fitting(console: Console, make: Callable[[str], Table]) -> Table:
    """Return a table whose pairs of numbers are in one line, or in two where names would be cut.

    `make` takes what stands between two numbers, a space or a new line.
    """
    wide = make(" ")
    return wide if _least_width(wide) <= console.width else make("\n")


def _least_width(table: Table) -> int:
    """Return the width at which no word of the first column, and no line of others, is cut."""
    first, *others = ([str(c.header), *map(str, c.cells)] for c in table.columns)
    longest = [max(map(len, "\n".join(cells).split("\n"))) for cells in others]
    return max(map(len, " ".join(first).split())) + sum(2 + width for width in longest)


def _losses(
    pairs: Sequence[PairComparison], loss: str, names: Mapping[int, str], space: str
) -> Table:
    """Return the table of the losses and their tests."""
    from rich.text import Text

    percent = loss.endswith("error")
    unit = f"{loss.replace('_', ' ')}{' %' * percent}"
    table = plain_table(
        [unit, "A", "B", "A - B", f"95 %{space}interval", "p", "p Holm", "A better /\nequal / B %"]
    )
    for pair in pairs:
        low, high = (_signed(value, percent) for value in pair.losses[3:])
        shares = " / ".join(
            NOTHING if math.isnan(share) else f"{100 * share:.0f}" for share in pair.posterior
        )
        table.add_row(
            Text(names[id(pair)]),
            _loss(pair.losses.first, percent),
            _loss(pair.losses.second, percent),
            _signed(pair.losses.difference, percent),
            NOTHING if math.isnan(pair.losses.low) else f"{low} to{space}{high}",
            p_value_text(pair.p_value),
            p_value_text(pair.p_holm),
            shares,
            style="green" if pair.p_holm < SIGNIFICANCE else "",
        )
    return table


def _measures(pairs: Sequence[PairComparison], names: Mapping[int, str], space: str) -> Table:
    """Return the table of kernels, times and gaps, each as A and B."""
    from rich.text import Text

    table = plain_table(
        ["means, A / B", "active\nkernels", "seconds", "gap", "McNemar\nA / B / open"]
    )
    for pair in pairs:
        cells = [_both(pair.measures[name], space) for name in MEASURES]
        counts = NOTHING
        if pair.points is not None:
            counts = " / ".join(str(count) for count in pair.points[:3])
        table.add_row(Text(names[id(pair)]), *cells, counts)
    return table


def _differences(pairs: Sequence[PairComparison], names: Mapping[int, str], space: str) -> Table:
    """Return the table of differences of kernels, times, gaps and objectives, with intervals.

    Objectives are there only where both minimise the same function.
    """
    from rich.text import Text

    shown = [*MEASURES, *(["objective"] if any("objective" in p.measures for p in pairs) else [])]
    table = plain_table(
        ["A - B, 95 % interval", *(name.replace("_", "\n") for name in shown)], "top"
    )
    for pair in pairs:
        cells = [_difference(pair.measures.get(name), space) for name in shown]
        table.add_row(Text(names[id(pair)]), *cells)
    return table


def _difference(found: Difference | None, space: str) -> str:
    """Return a difference above its interval."""
    if found is None or math.isnan(found.difference):
        return NOTHING
    interval = "" if math.isnan(found.low) else f"\n{found.low:+.3g} to{space}{found.high:+.3g}"
    return f"{found.difference:+.3g}{interval}"


def _over(over: OverDataSets) -> str:
    """Return the Bayesian signed-rank test of two methods over data sets."""
    shares = " / ".join(f"{100 * share:.0f}" for share in over.posterior)
    percent = over.loss.endswith("error")
    median = _signed(over.median_difference, percent) + " points" * percent
    return (
        f"{over.first} and {over.second} over {len(over.datasets)} data sets: median difference "
        f"{median}; A better / equal / B {shares} %."
    )


def _name(pair: PairComparison, *, one_pair: bool) -> str:
    """Return the data set, with the methods where rows are of several."""
    if pair.first == pair.second:
        return f"{pair.dataset}/{pair.first}"
    return pair.dataset if one_pair else f"{pair.dataset}: {pair.first}, {pair.second}"


def _both(found: Difference, space: str) -> str:
    return f"{short(found.first)} /{space}{short(found.second)}"


def short(value: float) -> str:
    """Return a number with three digits."""
    return NOTHING if math.isnan(value) else f"{value:.3g}"


def _loss(value: float, percent: bool) -> str:
    return f"{100 * value:.2f}" if percent else f"{value:.4g}"


def _signed(value: float, percent: bool) -> str:
    if math.isnan(value):
        return NOTHING
    return f"{round(100 * value, 2) + 0.0:+.2f}" if percent else f"{value + 0.0:+.3g}"
