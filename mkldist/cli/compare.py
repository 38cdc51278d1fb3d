"""``mkldist compare``: methods of one sweep, or two sweeps, on the splits that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_compared
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.left_out import tell_left_out

if TYPE_CHECKING:
    from mkldist.analysis.compare_results import ResultsComparison
    from mkldist.analysis.pairing import Results


Place = dict[str, str]
ONE_SWEEP, TWO_SWEEPS, TWO_METHODS = 1, 2, 3  # numbers of words


def finite(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Refuse NaN and infinite numbers, which the ranges of click let through."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number.", context, option)
    return value


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
def command(
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
    from mkldist.analysis.compare_results import compare_results
    from mkldist.cli.compare_tables import print_comparison
    from mkldist.report.comparison_words import sentences

    first, second, matches = _asked(words, datasets, methods)
    comparison = compare_results(first, second, matches, rope)
    if not comparison.pairs:
        raise _nothing(words, comparison, first, second)
    tell_left_out(first.path, second.path)
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
    from mkldist.analysis.pairing import Results, every_two, matching
    from mkldist.errors import InputError
    from mkldist.run.paths import results_of

    if len(words) not in (ONE_SWEEP, TWO_SWEEPS, TWO_METHODS):
        raise InputError(
            "compare",
            f"{len(words)} word{'s' * (len(words) != 1)}",
            "RESULTS, RESULTS_A RESULTS_B, or RESULTS METHOD_A METHOD_B",
            "For example: mkldist compare quickstart level uniform",
        )
    if len(words) == TWO_METHODS and words[1] == words[2]:
        raise _twice(words)
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
    from mkldist.analysis.pairing import is_named

    places = results.places()
    known = {name for p in places for name in (p["method"], f"{p['bank']}/{p['method']}")}
    for name in named:
        _check_names(None, [name], known)
    own = [[place for place in places if is_named(place, name)] for name in named]
    if own[0] == own[1] and len({place["dataset"] for place in own[0]}) == len(own[0]):
        raise _twice(words)


def _twice(words: Sequence[str]) -> Exception:
    from mkldist.errors import InputError

    return InputError(" ".join(words), "one method twice", "two methods")


def _check_names(option: str | None, given: Collection[str], known: Collection[str]) -> None:
    """Refuse a name that results do not have."""
    from mkldist.errors import InputError, nearest

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
    from mkldist.errors import InputError

    asked = " ".join(words)
    if comparison.unpaired:
        one, more = comparison.unpaired[0], len(comparison.unpaired) - 1
        found = f"nothing to pair: {one.place}: {one.reason}{f' (and {more} more)' * (more > 0)}"
        return InputError(
            asked,
            found,
            "runs of both on the same rows of the same data",
            "Run both sweeps with the same [splits], seed and data",
        )
    banks = _banks_apart(words, first, second)
    if banks:
        advice = "Results of one bank each are compared whatever the names of their banks"
        if len(words) == TWO_METHODS:
            advice = "A method with its bank before it is compared across banks: BANK/METHOD"
        return InputError(asked, f"no bank that both have ({'; '.join(banks)})",
                          "methods on the same bank", advice)  # fmt: skip
    held = [
        ", ".join(dict.fromkeys(f"{p['dataset']}/{p['method']}" for p in results.places()))
        for results in (first, second)
    ]
    found = f"no method on a data set that both have ({'; '.join(dict.fromkeys(held))})"
    return InputError(asked, found, "two methods, or one in both results, on the same data set")


def _banks_apart(words: Sequence[str], first: Results, second: Results) -> list[str]:
    """Return both sides with their banks if these alone keep methods from being compared."""
    from mkldist.analysis.pairing import is_named

    sides: list[list[Place]] = [first.places(), second.places()]
    if len(words) == TWO_METHODS:
        sides = [
            [place for place in side if is_named(place, word)]
            for side, word in zip(sides, words[1:], strict=True)
        ]
    banks = [list(dict.fromkeys(place["bank"] for place in side)) for side in sides]
    data = [{place["dataset"] for place in side} for side in sides]
    if {*banks[0]} & {*banks[1]} or not data[0] & data[1]:
        return []
    names = words[1:] if len(words) == TWO_METHODS else words
    return [f"{name}: {', '.join(own)}" for name, own in zip(names, banks, strict=True)]


def _isolated(results: Results) -> bool:
    """Return True if the runs were timed one by one."""
    import json

    return bool(json.loads(str(results.tree.attrs["spec"])).get("execution") == "isolated")
