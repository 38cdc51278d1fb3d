"""Sentences on the kernels that carry the decisions of a method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mkldist.analysis.explanation import Explanation, Grouping, Share
from mkldist.analysis.resampling import Interval
from mkldist.analysis.stability import FEWEST_SPLITS
from mkldist.report.comparison_words import pair_sentence

POOR, EXCELLENT = 0.4, 0.75  # limits of Nogueira et al. (2018), after Fleiss
NAMED = 5
MOST_WEIGHT = 0.8
ADD_UNIFORM = (
    'To see what it loses, add [[methods]] with name = "uniform" and the same C to the sweep file '
    "and repeat mkldist sweep, which runs only what is new."
)


def explanation_sentences(explanation: Explanation) -> list[str]:
    """Return what carries the decision, how stable that is, and what uniform weights would do."""
    return [
        _subject(explanation),
        *_groups(explanation),
        *_features(explanation),
        *_widths(explanation),
        *_functions(explanation),
        *_stability(explanation),
        _against(explanation),
        *_limits(explanation),
    ]


def _subject(one: Explanation) -> str:
    setting = ", ".join(f"{name} = {_value(value)}" for name, value in one.setting.items())
    where = f"On {one.dataset}, {one.method}{f' ({setting})' if setting else ''}"
    splits = f"on average over {one.n_splits} splits" if one.n_splits > 1 else "on one split"
    always = f"; {one.always} of them in every split" if one.n_splits > 1 else ""
    return (
        f"{where} selects {one.selected:.3g} of {one.n_kernels:,} kernels of bank {one.bank} "
        f"{splits}{always}."
    )


def _groups(one: Explanation) -> Iterator[str]:
    found = one.grouping("feature_group")
    if found is not None and has_named_groups(found):
        yield f"Groups of features by share of the weights: {_largest(found.shares)}."
        if not one.no_decision:
            by_decision = sorted(found.shares, key=lambda share: -share.decision)
            yield f"By share of the decision's variance: {_largest(by_decision, decision=True)}."


def has_named_groups(found: Grouping) -> bool:
    """Return True if the sweep file or the data name some groups of features."""
    return any(share.name not in ("all", "single", "several") for share in found.shares)


def _features(one: Explanation) -> Iterator[str]:
    found = one.grouping("features")
    if found is None:
        return
    yield f"Features by share of the weights: {_largest(found.shares)}."
    if not one.no_decision:
        by_decision = sorted(found.shares, key=lambda share: -share.decision)
        yield f"By share of the decision's variance: {_largest(by_decision, decision=True)}."


def _widths(one: Explanation) -> Iterator[str]:
    """Yield the narrowest range of widths that has most of the weight."""
    found = one.grouping("width")
    total = sum(share.weight for share in found.shares) if found else 0.0
    if found is None or total <= 0.0:
        return
    first, last = _range([share.weight for share in found.shares], MOST_WEIGHT * total)
    some = found.shares[first : last + 1]
    low, high = float(some[0].name), float(some[-1].name)
    on = f"width {low:g}, one of {_number(found, 'widths ')}"
    if first < last:
        on = f"the {len(some)} widths from {low:g} to {high:g}, of {_number(found)}"
    part = sum(share.weight for share in some) / total
    yield (
        f"Kernels with a width carry {_percent(total)} of the weights; {_percent(part)} of this is "
        f"on kernels of {on}."
    )


def _range(weights: Sequence[float], wanted: float) -> tuple[int, int]:
    """Return the ends of the shortest run of neighbours whose sum is at least what is wanted."""
    n = len(weights)
    runs = (
        (last - first, -sum(weights[first : last + 1]), first, last)
        for first in range(n)
        for last in range(first, n)
        if sum(weights[first : last + 1]) >= wanted - 1e-12
    )
    _, _, first, last = min(runs)
    return first, last


def _number(found: Grouping, noun: str = "") -> str:
    low, high = found.shares[0].name, found.shares[-1].name
    return f"{len(found.shares)} {noun}from {low:g} to {high:g}"


def _functions(one: Explanation) -> Iterator[str]:
    found = one.grouping("function")
    if found is not None:
        yield f"Kernel functions by share of the weights: {_largest(found.shares)}."


def _stability(one: Explanation) -> Iterator[str]:
    if math.isnan(one.stability.mean):
        if one.n_splits < 2:
            yield "One split cannot tell how stable the selection is."
        else:
            yield "Every split selects all kernels or none, so that stability has no meaning."
        return
    meaning = "1 is equal selections, 0 is chance"
    found = one.grouping("features")
    of_features = None if found is None or math.isnan(found.stability.mean) else found.stability
    if math.isnan(one.stability.low):
        yield (
            f"Nogueira's measure of the selection of kernels over the splits is "
            f"{one.stability.mean:.2f}; {meaning}. Fewer than {FEWEST_SPLITS} splits give it no "
            f"interval, and cannot tell a stable selection from an unstable one."
        )
        if of_features is not None:
            yield f"For the selection of features it is {of_features.mean:.2f}."
        return
    yield (
        f"The selection of kernels over the splits is {_grade(one.stability)}: Nogueira's measure "
        f"is {_interval(one.stability)}; {meaning}."
    )
    if of_features is not None:
        yield f"The selection of features is {_grade(of_features)}: {_interval(of_features)}."


def _grade(stability: Interval) -> str:
    """Return the grade of a selection, or both where its interval holds a limit of grades."""
    low, high = _grade_at(stability.low), _grade_at(stability.high)
    return low if low == high else f"{low} or {high} (so few splits leave it open)"


def _grade_at(value: float) -> str:
    if value < POOR:
        return "unstable"
    return "fairly stable" if value < EXCELLENT else "stable"


def _interval(found: Interval) -> str:
    return f"{found.mean:.2f} (95 % interval {found.low:.2f} to {min(found.high, 1.0):.2f})"


def _against(one: Explanation) -> str:
    pair = one.against_uniform
    if pair is None:
        if one.method == "uniform":
            return "Uniform weights are the baseline that other methods are held to."
        if one.task == "regression":
            return "Uniform weights learn classes alone, so nothing tells what is lost here."
        return f"The sweep has no uniform weights on this bank. {ADD_UNIFORM}"
    return (
        f"It selects {one.selected:.3g} kernels where uniform weights use all {one.n_kernels:,}. "
        f"{pair_sentence(pair)}"
    )


def _limits(one: Explanation) -> Iterator[str]:
    if one.no_decision:
        yield f"Shares of the decision's variance are not known: {one.no_decision}."
    if one.n_candidates > 1:
        by = "validation loss" if one.validated else "loss on the scored rows"
        flatters = ", which flatters it against uniform weights on these rows"
        yield (
            f"It has the least mean {by} of {one.n_candidates} methods and banks"
            f"{'' if one.validated else flatters}."
        )
    if not one.validated and one.n_settings > 1:
        yield (
            f"Its setting was chosen from {one.n_settings} by the test parts; [selection] would "
            f"choose it without their labels."
        )
    yield (
        "Shares describe this model, not causes: of features that resemble each other, one may "
        "carry the share of all."
    )


def _largest(shares: Sequence[Share], *, decision: bool = False) -> str:
    """Return the largest shares of a list that is ordered by them."""

    def value(share: Share) -> str:
        mean, sd = (
            (share.decision, share.decision_sd) if decision else (share.weight, share.weight_sd)
        )
        return _percent(mean) if math.isnan(sd) else f"{100 * mean:.0f} ± {100 * sd:.0f} %"

    of = [share for share in shares if (share.decision if decision else share.weight) > 0.0]
    named = ", ".join(f"{share.name} {value(share)}" for share in of[:NAMED])
    more = len(of) - NAMED
    return f"{named or 'none'}{f', and {more} more' if more > 0 else ''}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _value(value: object) -> str:
    if isinstance(value, list):
        return "/".join(dict.fromkeys(_value(one) for one in value))
    return f"{value:g}" if isinstance(value, float) else str(value)
