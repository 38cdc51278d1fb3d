"""The result of a comparison in words: what it says, and what it does not say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mkldist.analysis.comparison import (
    FEWEST_DATA_SETS,
    OverDataSets,
    PairComparison,
    ResultsComparison,
)
from mkldist.analysis.losses import LABEL_UNITS, SIGNIFICANCE
from mkldist.core.metrics import LEAST_P, metric_of_variable, variable_words

SURE = 0.95
MOST_SENTENCES = 8  # with more pairs, one sentence counts them
SIZES_SHARE = (
    "Sizes of one data set share their points: tests over data sets count them as one data set, by "
    "its largest size."
)
FIRST, SECOND = " of the first results", " of the second results"


def sentences(comparison: ResultsComparison, *, isolated: bool) -> list[str]:
    """Return the result of each pair of methods, of all data sets together, and the limits."""
    return [
        *_verdicts(comparison.pairs),
        *(_certificates(comparison)),
        *dict.fromkeys(_over(one) for one in comparison.over if len(comparison.over) == 1),
        *_limits(comparison, isolated=isolated),
    ]


def _verdicts(pairs: Sequence[PairComparison]) -> Iterator[str]:
    """Yield a sentence on each pair; where methods of one sweep are many, on each data set."""
    groups: dict[tuple[str, ...], list[PairComparison]] = {}
    for pair in pairs:
        groups.setdefault((pair.dataset, pair.first.rpartition("/")[0]), []).append(pair)
    for own in groups.values():
        if len(own) > 1 and all(pair.first != pair.second for pair in own):
            yield best_sentence(own)
        elif len(pairs) <= MOST_SENTENCES:
            yield from map(pair_sentence, own)
    if len(pairs) > MOST_SENTENCES and all(len(own) == 1 for own in groups.values()):
        yield _count(pairs)


def best_sentence(pairs: Sequence[PairComparison]) -> str:
    """Return which method has the best mean on a data set, and which are no worse by a test."""
    means = {pair.first: pair.losses.first for pair in pairs}
    means |= {pair.second: pair.losses.second for pair in pairs}
    best = min(means, key=lambda name: means[name])
    worse: list[str] = []
    alike: list[str] = []
    for pair in pairs:
        if best in (pair.first, pair.second):
            other = pair.second if pair.first == best else pair.first
            (worse if pair.p_holm < SIGNIFICANCE else alike).append(other)
    parts = [f"finds it better than {listed(worse)}"] if worse else []
    parts += [f"does not tell it from {listed(alike)}"] if alike else []
    metric, name = metric_of_variable(pairs[0].loss), pairs[0].loss
    mean = metric.text(metric.loss(means[best]))
    return (
        f"On {pairs[0].dataset} {best} has the best mean {variable_words(name)}, "
        f"{mean}; the corrected t-test {' and '.join(parts)}."
    )


def listed(names: Sequence[str]) -> str:
    """Return names with commas, and "and" before the last."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def pair_sentence(pair: PairComparison) -> str:
    """Return what the splits of one data set say about two methods."""
    (first, second), metric, scores = names(pair), metric_of_variable(pair.loss), pair.scores
    unit = {"%": " points", "": f" {LABEL_UNITS}"}.get(metric.unit, "")
    start = (
        f"On {pair.dataset} the mean {variable_words(pair.loss)} is {metric.text(scores.first)} "
        f"with {first} and {metric.text(scores.second)} with {second}"
    )
    if pair.n_splits == 1:
        return f"{start}; one split tells no spread, so there is no test."
    splits = f"{pair.n_splits} splits"
    if math.isnan(pair.p_value):
        return f"{start}, the same difference on each of {splits}, so that no test applies."
    if pair.losses.low == pair.losses.high:
        return f"{start}: there is no difference on any of {splits}."
    difference, low, high = map(metric.difference, scores[2:])
    said = f"{start}, a difference of {difference}{unit} (95 % interval {low} to {high})"
    if pair.p_holm < SIGNIFICANCE:
        better = first if pair.losses.difference < 0.0 else second
        verdict = f"{better} is better by the corrected t-test, {p_words(pair)}"
    else:
        verdict = f"the corrected t-test does not tell them apart, {p_words(pair)} on {splits}"
    return f"{said}: {verdict}. {_posterior(pair, first, second)}"


def names(pair: PairComparison) -> tuple[str, str]:
    """Return both methods, told apart where they have one name."""
    if pair.first != pair.second:
        return pair.first, pair.second
    return pair.first + FIRST, pair.second + SECOND


def p_words(test: PairComparison | OverDataSets) -> str:
    """Return the adjusted p-value of a test, and say where it is not the p-value itself."""
    if math.isnan(test.p_holm):
        return "p unknown"
    p = f"p = {test.p_holm:.2g}" if test.p_holm >= LEAST_P else f"p < {LEAST_P}"
    return p if test.p_holm == test.p_value else f"{p} with Holm's correction"


def _posterior(pair: PairComparison, first: str, second: str) -> str:
    """Return the most probable of better, equivalent and worse."""
    below, equivalent, above = pair.posterior
    most = max(pair.posterior)
    points = 100 * pair.rope
    width = f"{pair.rope:.3g}"
    if metric_of_variable(pair.loss).unit == "%":
        width = f"{points:g} point{'s' * (points != 1.0)}"
    if equivalent == most:
        what = f"the two are within {width} of each other"
    else:
        what = f"{first if below > above else second} is better by more than {width}"
    sure = "" if most >= SURE else f", less than the {SURE} that would settle it"
    return f"The probability that {what} is {most:.2f}{sure}."


def _count(pairs: Sequence[PairComparison]) -> str:
    """Return how many pairs differ by the corrected test."""
    found = [pair for pair in pairs if pair.p_holm < SIGNIFICANCE]
    first = sum(pair.losses.difference < 0.0 for pair in found)
    return (
        f"Of {len(pairs)} pairs, the corrected t-test with Holm's correction finds A "
        f"better on {first} and B better on {len(found) - first}; it does not tell the others "
        f"apart."
    )


def _certificates(comparison: ResultsComparison) -> Iterator[str]:
    """Yield a sentence on the runs at equal settings, if there are any."""
    found = [pair.equal_settings for pair in comparison.pairs if pair.equal_settings is not None]
    if not found:
        return
    runs, wrong = sum(one.n_runs for one in found), sum(one.contradictions for one in found)
    change = max(one.objective_change for one in found)
    agree = "the bounds of all agree" if not wrong else f"the bounds of {wrong} contradict"
    differ = f"differ by a share of {change:.1e} at most" if change else "are equal"
    yield (
        f"{runs} runs have equal settings, kernels and rows in both results: {agree}, and their "
        f"objectives {differ}."
    )


def _over(over: OverDataSets) -> str:
    """Return what the data sets together say about two methods."""
    first, second = over.first, over.second
    if first == second:
        first, second = first + FIRST, second + SECOND
    said = f"{len(over.datasets)} data sets"
    if len(over.datasets) < FEWEST_DATA_SETS:
        return (
            f"{said} are too few for a test: with fewer than {FEWEST_DATA_SETS}, Wilcoxon's "
            f"p-value exceeds {SIGNIFICANCE} whatever they show."
        )
    if over.p_holm >= SIGNIFICANCE:
        verdict = f"does not tell {first} from {second}"
    else:
        better, worse = (first, second) if over.median_difference < 0.0 else (second, first)
        verdict = f"finds {better} better than {worse}"
    return f"Over {said} Wilcoxon's signed-rank test {verdict}, {p_words(over)}."


def _limits(comparison: ResultsComparison, *, isolated: bool) -> Iterator[str]:
    """Yield what the comparison does not say."""
    pairs = comparison.pairs
    places = {(pair.dataset, pair.series or pair.dataset) for pair in pairs}
    if len({series for _, series in places}) < len(places):
        yield SIZES_SHARE
    if any(pair.n_splits > 1 and pair.p_holm >= SIGNIFICANCE for pair in pairs):
        yield "A difference that no test finds is not shown to be zero."
    by_test = (
        not validated and number > 1
        for pair in pairs
        for validated, number in zip(pair.validated, pair.n_settings, strict=True)
    )
    if any(by_test):
        yield (
            "Settings were chosen by the test parts where the sweep has no inner folds, which "
            "flatters methods with many settings."
        )
    if not isolated:
        yield 'Seconds include shares of common passes; execution = "isolated" gives honest times.'
    yield (
        "This holds for these data sets, kernels and settings; it says nothing about other data."
    )
