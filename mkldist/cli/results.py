"""``mkldist report``, ``export``, ``scale`` and ``compare``: what is made of a sweep's results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mkldist.cli.options import (
    PATH,
    complete_compared,
    complete_results,
    finite,
    json_option,
    note_basis,
    overwrite_option,
    print_json,
    results_argument,
)
from mkldist.core.metrics import (
    NOTHING,
    Metric,
    metric_of_variable,
    p_value_text,
    pooled_words,
    variable_words,
)
from mkldist.core.terminal import command_line, plain_table, standard_output
from mkldist.errors import InputError, nearest
from mkldist.results.export import ENDINGS, export, format_of
from mkldist.results.folder import results_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from mkldist.analysis.comparison import OverDataSets, PairComparison, Results, ResultsComparison


@click.command("report")
@click.argument("results", type=PATH, shell_complete=complete_results)
@click.option(
    "-o", "--output", "page", type=PATH, default=Path("report.html"),
    show_default=True, help="The page, an HTML file that needs no other.",
)  # fmt: skip
@click.option(
    "--figures", type=click.Path(file_okay=False, path_type=Path),
    help="Write each figure to this folder as PDF, SVG, PNG and CSV, and each table as CSV.",
)  # fmt: skip
@click.option(
    "--overwrite", is_flag=True,
    help="Replace a file that is no page of this sweep, and files of figures and tables.",
)  # fmt: skip
@json_option("headline", "note", "page", "figures", "tables")
def report_command(
    results: Path, page: Path, figures: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Write the results of a sweep, running or finished, to one page.

    RESULTS is a sweep file, its name or the folder of its results.
    """
    from mkldist.report.page import check_name, check_target

    check_name(page)
    results = results_of(results)
    check_target(page, results, overwrite=overwrite)
    from mkldist.report.page import write_report

    report = write_report(results, page, figures, overwrite=overwrite)
    note_basis(results)
    if as_json:
        print_json(
            {
                "headline": report.headline,
                "note": report.note,
                "page": page,
                "figures": [f for one in report.charts for f in one.files(figures)]
                if figures
                else [],
                "tables": [one.file(figures) for one in report.tables] if figures else [],
            }
        )
        return
    for sentence in report.headline:
        click.echo(sentence)
    if report.note:
        click.echo(report.note)
    click.echo(f"report:  {page}")
    if figures is not None:
        click.echo(f"figures: {len(report.charts)}, and {len(report.tables)} tables, in {figures}")


@click.command("export")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=PATH, shell_complete=complete_results
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(ENDINGS)),
    help="netcdf and zarr: the whole tree; parquet and csv: a row per run, and beside it a file of "
    "kernel weights.  [default: by the ending of --to, else netcdf]",
)
@click.option(
    "--to",
    "destination",
    type=PATH,
    help="File to write.  [default: NAME.nc, .zarr, .parquet or .csv here]",
)
@overwrite_option
def export_command(
    paths: tuple[Path, ...], kind: str | None, destination: Path | None, overwrite: bool
) -> None:
    """Write the results of the sweep PATH, or of several in one, to a file for other programs.

    PATH is the folder of its results, its file or its name.  Several must be of the same data and
    splits; a method that they have under one name has the name of its sweep, too.
    """
    if kind is None:
        ending = destination.suffix if destination else ""
        kind = format_of(ending) if ending else "netcdf"
        if kind is None:
            wanted = f"a name that ends in {', '.join(ENDINGS.values())}, or a --format"
            raise InputError(f"--to {destination}", f"the ending {ending!r}", wanted)
    folders = [results_of(path) for path in paths]
    name = "-".join(folder.resolve().name for folder in folders)
    target = destination or Path(name + ENDINGS[kind])
    for file in export(folders, kind, target, overwrite=overwrite):
        click.echo(str(file))
    note_basis(*folders)


FOLDER = Path("scaling")


@click.command("scale")
@results_argument()
@click.option(
    "-o", "--output", "folder", type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder for two tables as CSV, and figures as PDF, SVG, PNG and CSV.  [default: "
    f"{FOLDER}; none with --json]",
)  # fmt: skip
@click.option(
    "--over",
    multiple=True,
    type=click.Choice(["n_kernels", "n_train"]),
    help="Size that grows.  [default: each that has several values]",
)
@overwrite_option
@json_option("times", "fits", "cautions")
def scale_command(
    results: Path, folder: Path | None, over: tuple[str, ...], overwrite: bool, as_json: bool
) -> None:
    """Fit the times of a scaling study, running or finished: seconds = a size^k.

    RESULTS is a sweep file, its name or the folder of its results.  There is an exponent k with its
    95 % interval for each method, and the share of building, passes and solver in its time.
    """
    from mkldist.report.scaling import NO_FIGURES, scaling_study
    from mkldist.report.sentences import records

    study = scaling_study(results, over)
    note_basis(results)
    target = folder or (None if as_json else FOLDER)
    if target is not None:
        study.write(target, results, overwrite=overwrite)
    if as_json:
        cautions = [f"{one.title}: {one.text}" for one in study.cautions]
        print_json(
            {"times": records(study.times), "fits": records(study.fits), "cautions": cautions}
        )
        return
    console = standard_output()
    for table in study.tables:
        console.print(table.for_terminal())
        console.print(table.caption, style="dim", highlight=False)
    for caution in study.cautions:
        click.echo(f"{caution.title}: {caution.text}")
    click.echo(f"tables:  scaling-times.csv and scaling-fits.csv in {target}")
    figures = f"figures: {len(study.charts)} in {target}" if study.charts else NO_FIGURES
    click.echo(figures)


Place = dict[str, str]
ONE_SWEEP, TWO_SWEEPS, TWO_METHODS = 1, 2, 3  # numbers of words


@click.command("compare")
@click.argument(
    "words",
    nargs=-1,
    metavar="RESULTS | RESULTS_A RESULTS_B | RESULTS METHOD_A METHOD_B",
    shell_complete=complete_compared,
)
@click.option("--dataset", "datasets", multiple=True, help="Only this data set; may be repeated.")
@click.option("--method", "methods", multiple=True, help="Only this method; may be repeated.")
@click.option(
    "--rope",
    type=click.FloatRange(min=0.0, min_open=True),
    callback=finite,
    help="Differences up to this count as none, in units of the loss.  "
    "[default: 0.01 of an error, 1 % of other losses]",
)
@json_option("first", "second", "pairs", "over_data_sets", "unpaired", "words")
def compare_command(
    words: tuple[str, ...],
    datasets: tuple[str, ...],
    methods: tuple[str, ...],
    rope: float | None,
    as_json: bool,
) -> None:
    """Compare every two methods of a sweep, or two of them, or the methods that two sweeps share.

    Where two sweeps share none, each method of the one is compared with each of the other.
    RESULTS is the folder of a sweep's results, its file or its name; METHOD is a name in the
    results, or BANK/METHOD.  Methods are compared at their chosen settings, on splits of the same
    rows of the same data.  A minus B is printed, in the metric of the sweep.
    """
    from mkldist.analysis.comparison import compare_results
    from mkldist.report.sentences import sentences

    first, second, matches = _asked(words, datasets, methods)
    comparison = compare_results(first, second, matches, rope)
    if not comparison.pairs:
        raise _nothing(words, comparison, first, second)
    note_basis(first.path, second.path)
    said = sentences(comparison, isolated=_isolated(first) and _isolated(second))
    if as_json:
        print_json(
            {
                "first": {"results": first.path, "sweep": first.tree.attrs["sweep"]},
                "second": {"results": second.path, "sweep": second.tree.attrs["sweep"]},
                "pairs": comparison.pairs,
                "over_data_sets": comparison.over,
                "unpaired": comparison.unpaired,
                "words": said,
            }
        )
        return
    print_comparison(comparison, first, second, said)


def _asked(
    words: Sequence[str], datasets: Collection[str], methods: Collection[str]
) -> tuple[Results, Results, Callable[[Place, Place], bool]]:
    """Return the results to compare, and which of their methods; refuse names that are unknown."""
    from mkldist.analysis.comparison import Results, every_two, matching

    if len(words) not in (ONE_SWEEP, TWO_SWEEPS, TWO_METHODS):
        raise InputError(
            "compare",
            f"{len(words)} word{'s' * (len(words) != 1)}",
            "RESULTS, RESULTS_A RESULTS_B, or RESULTS METHOD_A METHOD_B",
            "For example: mkldist compare quickstart level uniform",
        )
    first = Results.of(results_of(Path(words[0])))
    second, named = first, None
    if len(words) == TWO_METHODS:
        if methods:
            raise InputError("--method", "two methods already", "it with RESULTS_A RESULTS_B")
        named = words[1], words[2]
        _check_alone(first, named, words)
    elif len(words) == TWO_SWEEPS:
        second = Results.of(results_of(Path(words[1])))
    of_both = first.places() + second.places()
    for option, given, key in (("dataset", datasets, "dataset"), ("method", methods, "method")):
        _check_names(option, given, {place[key] for place in of_both})
    of_names = every_two(first) if len(words) == ONE_SWEEP else matching(first, second, named)

    def matches(one: Place, two: Place) -> bool:
        return (
            (not datasets or one["dataset"] in datasets)
            and (not methods or {one["method"], two["method"]} <= {*methods})
            and of_names(one, two)
        )

    return first, second, matches


def _check_alone(results: Results, named: tuple[str, str], words: Sequence[str]) -> None:
    """Refuse names that the results do not have, and two names of one method."""
    from mkldist.analysis.comparison import is_named

    places = results.places()
    known = {name for p in places for name in (p["method"], f"{p['bank']}/{p['method']}")}
    for name in named:
        _check_names(None, [name], known)
    one, two = ([place for place in places if is_named(place, name)] for name in named)
    if named[0] == named[1] or (one == two and len({p["dataset"] for p in one}) == len(one)):
        raise InputError(" ".join(words), "one method twice", "two methods")


def _check_names(option: str | None, given: Collection[str], known: Collection[str]) -> None:
    """Refuse a name that results do not have."""
    for name in given:
        if name not in known:
            plain = sorted(one for one in known if "/" not in one)
            where = name if option is None else f"--{option} {name}"
            expected = f"one of {', '.join(plain)}"
            raise InputError(where, "nothing of this name in the results", expected,
                             nearest(name, known))  # fmt: skip


def _nothing(
    words: Sequence[str], comparison: ResultsComparison, first: Results, second: Results
) -> Exception:
    """Return the error of results in which nothing can be paired."""
    asked = " ".join(words)
    if comparison.unpaired:
        one = comparison.unpaired[0]
        return InputError(
            asked,
            f"nothing to pair: {one.place}: {one.reason}",
            "runs of both on the same rows of the same data",
            "Run both sweeps with the same [splits], seed and data",
        )
    held = [
        ", ".join(dict.fromkeys(f"{p['dataset']}: {p['bank']}/{p['method']}" for p in one.places()))
        for one in (first, second)
    ]
    return InputError(
        asked,
        f"no two methods on one data set and bank ({'; '.join(dict.fromkeys(held))})",
        "two methods, or one in both results, on the same data set and bank",
        "BANK/METHOD names methods across banks",
    )


def _isolated(results: Results) -> bool:
    """Return True if the runs were timed one by one."""
    return bool(json.loads(str(results.tree.attrs["spec"])).get("execution") == "isolated")


_NARROW: dict[str, Any] = {"vertical": "top", "overflow": "fold"}
MEASURES = ("active_kernels", "seconds", "gap", "objective")


def print_comparison(
    comparison: ResultsComparison, first: Results, second: Results, said: Sequence[str]
) -> None:
    """Print a comparison: a matrix of several methods of one sweep, else all numbers of pairs."""
    console = standard_output()
    pairs = comparison.pairs
    groups: dict[tuple[str, ...], list[PairComparison]] = {}
    for pair in pairs:
        groups.setdefault((pair.dataset, pair.first.rpartition("/")[0], pair.loss), []).append(pair)
    if first is second and len(pairs) > len(groups):
        _print_matrices(console, groups, comparison.over, first)
    else:
        _print_details(console, pairs, first, second)
    console.print()
    for one in comparison.unpaired:
        console.print(f"Not compared: {one.place}: {one.reason}.", highlight=False)
    for pair in pairs:
        if any(pair.left_out):
            left = f"{pair.left_out[0]} of A and {pair.left_out[1]} of B"
            console.print(
                f"{_name(pair)}: {pair.n_splits} splits are paired; {left} have no partner.",
                highlight=False,
            )
    for sentence in said:
        console.print(sentence, highlight=False, soft_wrap=False)


def _print_matrices(
    console: Console,
    groups: Mapping[tuple[str, ...], Sequence[PairComparison]],
    over_sets: Sequence[OverDataSets],
    results: Results,
) -> None:
    """Print a matrix of the methods for each data set and bank, and one over the data sets."""
    from mkldist.analysis.losses import SIGNIFICANCE

    console.print(f"methods in {results.path}", highlight=False, soft_wrap=True)
    for (dataset, _, loss), pairs in groups.items():
        means = {p.first: p.losses.first for p in pairs}
        means |= {p.second: p.losses.second for p in pairs}
        cells = {(p.first, p.second): _Cell(*p.losses[2:], p.p_holm) for p in pairs}
        _print_matrix(console, dataset, loss, means, cells)
    for loss in dict.fromkeys(one.loss for one in over_sets):
        over = [one for one in over_sets if one.loss == loss]
        count = max(len(one.datasets) for one in over)
        cells = {
            (o.first, o.second): _Cell(o.median_difference, math.nan, math.nan, o.p_holm)
            for o in over
        }
        names = dict.fromkeys((name for pair in cells for name in pair), math.nan)
        _print_matrix(console, f"median over {count} data sets", loss, names, cells)
    console.print()
    console.print(
        "Above the diagonal: row minus column, with its 95 % interval where there is room; below: "
        f"two-sided p, corrected for all pairs of this answer. * p is below {SIGNIFICANCE}.\n"
        "The mark ~ of the sweep's table is by a one-sided test of one row, not so corrected.\n"
        f"{command_line('compare', results.path, 'A', 'B')} has all numbers of two of them.",
        highlight=False,
        style="dim",
    )


class _Cell(NamedTuple):
    """First minus second, its interval, and the corrected p-value."""

    difference: float
    low: float
    high: float
    p: float

    def turned(self) -> _Cell:
        """Return second minus first."""
        return _Cell(-self.difference, -self.high, -self.low, self.p)


def _print_matrix(
    console: Console,
    title: str,
    loss: str,
    means: Mapping[str, float],
    cells: Mapping[tuple[str, str], _Cell],
) -> None:
    """Print the differences of every two methods in the sweep's metric, the best mean first."""
    from mkldist.analysis.losses import SIGNIFICANCE

    both_ways = {**cells, **{(b, a): cell.turned() for (a, b), cell in cells.items()}}
    methods = sorted(means, key=lambda name: (math.isnan(means[name]), means[name]))
    metric = metric_of_variable(loss)
    unit = f"{title}, {variable_words(loss)}{' %' * (metric.unit == '%')}"

    def made(named: bool, with_interval: bool) -> Table:
        from rich.text import Text

        headings = [name if named else f"({i})" for i, name in enumerate(methods, 1)]
        with_mean = not all(map(math.isnan, means.values()))
        table = plain_table([unit, *["mean"] * with_mean, *headings], **_NARROW)
        for one in table.columns[1:]:
            one.no_wrap = True
        for i, row in enumerate(methods):
            values = [metric.number(metric.loss(means[row]))] * with_mean
            for j, column in enumerate(methods):
                cell = both_ways.get((row, column))
                if cell is None:
                    values.append("" if i == j else NOTHING)
                elif i > j:
                    values.append(p_value_text(cell.p))
                else:
                    cell = cell.turned() if metric.greater else cell
                    star = " *" if cell.p < SIGNIFICANCE else ""
                    difference, low, high = (_signed(value, metric) for value in cell[:3])
                    text = difference + star
                    if with_interval and low != NOTHING:
                        text += f"\n{low} to {high}"
                    values.append(text)
            table.add_row(Text(row if named else f"({i + 1}) {row}"), *values)
        return table

    shapes = (made(*shape) for shape in ((True, True), (False, True), (False, False)))
    console.print()
    table = next(shapes)
    for other in shapes:
        if _least_width(table) <= console.width:
            break
        table = other
    console.print(table)


def _print_details(
    console: Console, pairs: Sequence[PairComparison], first: Results, second: Results
) -> None:
    """Print all numbers of every pair, and what they are."""
    one_pair = len({(pair.first, pair.second) for pair in pairs}) == 1
    for letter, results, name in (("A", first, pairs[0].first), ("B", second, pairs[0].second)):
        what = f"{name}, " if one_pair else "methods "
        said_of = f"{letter}: {what}in {results.path}"
        console.print(said_of, highlight=False, soft_wrap=True)
    console.print()
    console.print(_details(pairs))
    console.print()
    for line in legend(pairs):
        console.print(line, highlight=False, style="dim")


def legend(pairs: Sequence[PairComparison]) -> Iterator[str]:
    """Yield what the rows and columns of tests are."""
    from mkldist.analysis.losses import SIGNIFICANCE

    if any(not math.isnan(pair.p_value) for pair in pairs):
        yield (
            "p: how probable a difference as large, of either sign, is where both are equal, "
            f"corrected for all pairs of this answer; below {SIGNIFICANCE} counts."
        )
        yield "probably better: A, B, or neither, where they are less apart than --rope."
    for dataset, pooled, loss in dict.fromkeys((p.dataset, p.pooled, p.loss) for p in pairs):
        if pooled:
            yield f"{dataset}: {pooled_words(pooled, metric_of_variable(loss).task)}."


def _least_width(table: Table) -> int:
    """Return the width at which no word of the first column, and no line of others, is cut."""
    first, *others = ([str(c.header), *map(str, c.cells)] for c in table.columns)
    longest = [max(map(len, "\n".join(cells).split("\n"))) for cells in others]
    return max(map(len, " ".join(first).split())) + sum(2 + width for width in longest)


def _details(pairs: Sequence[PairComparison]) -> Table:
    """Return the table of losses, kernels, times, gaps and objectives of every pair."""
    from rich.text import Text

    from mkldist.analysis.losses import SIGNIFICANCE

    table = plain_table(["", "A", "B", "A - B", "95 % interval", "p"], **_NARROW)
    for column in table.columns[1:]:
        column.no_wrap = True
    table.columns[4].no_wrap = False  # two lines where there is no room for one
    for pair in pairs:
        table.add_section()
        table.add_row(Text(_name(pair), style="bold"))
        metric = metric_of_variable(pair.loss)
        scores = pair.scores
        table.add_row(
            f" {variable_words(pair.loss)}{' %' * (metric.unit == '%')}",
            metric.number(scores.first),
            metric.number(scores.second),
            _signed(scores.difference, metric),
            _interval([_signed(value, metric) for value in scores[3:]]),
            p_value_text(pair.p_holm),
            style="green" if pair.p_holm < SIGNIFICANCE else "",
        )
        for name in MEASURES:
            found = pair.measures.get(name)
            if found is not None and not math.isnan(found.difference):
                ends = [NOTHING if math.isnan(v) else f"{v:+.3g}" for v in found[3:]]
                table.add_row(
                    f" {name.replace('_', ' ')}",
                    _short(found.first),
                    _short(found.second),
                    f"{found.difference:+.3g}",
                    _interval(ends),
                )
        if not math.isnan(pair.posterior.equivalent):
            better, equal, worse = (f"{100 * share:.0f} %" for share in pair.posterior)
            table.add_row(" probably better", better, worse, f"equal {equal}")
    return table


def _interval(ends: Sequence[str]) -> str:
    return NOTHING if NOTHING in ends else " to ".join(ends)


def _name(pair: PairComparison) -> str:
    """Return the data set and the methods."""
    if pair.first == pair.second:
        return f"{pair.dataset}/{pair.first}"
    return f"{pair.dataset}: {pair.first}, {pair.second}"


def _short(value: float) -> str:
    """Return a number with three digits."""
    return NOTHING if math.isnan(value) else f"{value:.3g}"


def _signed(value: float, metric: Metric) -> str:
    return NOTHING if math.isnan(value) else metric.difference(value)
