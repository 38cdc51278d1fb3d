"""Ranking of the methods of one sweep over its data sets, as ``mkldist compare`` prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mkldist.analysis.cell_texts import p_value_text
from mkldist.cli.compare_tables import plain_table, short
from mkldist.consoles import standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from mkldist.analysis.pairing import Results

FEWEST_DATA_SETS = 2


class MethodRanking(NamedTuple):
    """Methods over the data sets of a sweep; empty where there is nothing to rank.

    Parameters
    ----------
    points : dict of str to dict of str to float
        Points of each method on each data set; see :func:`mkldist.analysis.mcnemar_points`.
    kernel_tests : list of dict
        Rows of :func:`mkldist.analysis.compare_active_kernels`.
    """

    points: Mapping[str, Mapping[Hashable, float]]
    kernel_tests: Sequence[Mapping[Hashable, Any]]


def rank_methods(
    results: Results, methods: Collection[str], datasets: Collection[str]
) -> MethodRanking:
    """Return the points of methods and the tests of their numbers of kernels.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    methods, datasets : collection of str
        Only these; empty for all.
    """
    from mkldist.analysis.kernel_numbers import active_kernels, compare_active_kernels
    from mkldist.analysis.pooled_points import mcnemar_points

    tables = [mcnemar_points(results, methods), active_kernels(results, methods)]
    if datasets:
        tables = [table[table.index.isin(datasets)] for table in tables]
    points = {str(dataset): row.dropna().to_dict() for dataset, row in tables[0].iterrows()}
    tests = compare_active_kernels(tables[1]).to_dict("records")
    return MethodRanking(points if len(points) >= FEWEST_DATA_SETS else {}, tests)


def print_ranking(ranking: MethodRanking) -> None:
    """Print the points and the tests that there are.

    Parameters
    ----------
    ranking : MethodRanking
        As :func:`rank_methods` returns it.
    """
    console = standard_output()
    for one in (_points(ranking), _tests(ranking)):
        if one.row_count:
            console.print()
            console.print(one)


def _points(ranking: MethodRanking) -> Table:
    """Return the table of the points, summed over the data sets, the best method first."""
    from rich.text import Text

    sums: Counter[Hashable] = Counter()
    for own in ranking.points.values():
        sums.update(own)
    table = plain_table([f"McNemar points over {len(ranking.points)} data sets", "points"])
    for method, points in sums.most_common():
        table.add_row(Text(str(method)), short(points))
    return table


def _tests(ranking: MethodRanking) -> Table:
    """Return the table of the tests of numbers of kernels."""
    from rich.text import Text

    table = plain_table(["active kernels, paired t-test", "data sets", "A - B", "p", "p Holm"])
    for one in ranking.kernel_tests:
        table.add_row(
            Text(f"A: {one['first']}, B: {one['second']}"),
            str(one["n_datasets"]),
            f"{one['mean_difference']:+.3g}",
            p_value_text(one["p_value"]),
            p_value_text(one["p_holm"]),
        )
    return table
