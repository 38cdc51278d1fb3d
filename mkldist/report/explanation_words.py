"""What carries the decisions of a method, in rows of a table and in sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from mkldist.analysis.explanation import EQUAL, LEVELS, Explanation, Share
from mkldist.analysis.statistics import FEWEST_SPLITS, Interval
from mkldist.core.metrics import NOTHING, Metric, p_value_text
from mkldist.report.comparison_words import pair_sentence
from mkldist.report.tables import Cell, Row, Table

POOR, EXCELLENT = 0.4, 0.75  # limits of Nogueira et al. (2018), after Fleiss
SHOWN, NAMED, LEAST = 10, 3, 0.01  # rows, names in a sentence, and the share that has one
TOLD = ("view", "group", "feature", "kernel")
"""Levels that tables show."""
COLUMNS = ("decision %", "weights %", "left out", "active")
ADD_UNIFORM = (
    'To see what it loses, add [[methods]] with name = "uniform" and the same C to the sweep file '
    "and repeat mkldist sweep, which runs only what is new."
)


def columns_of(explanation: Explanation) -> tuple[str, ...]:
    """Return the headings beside the name; that of p-values where labels were permuted."""
    return (*COLUMNS, "p") if explanation.n_permutations else COLUMNS


def shown_shares(explanation: Explanation, level: str) -> tuple[list[Share], list[Share]]:
    """Return the shares of a level that matter, at most ten active ones, and the others."""
    every = explanation.of(level)
    matter = [share for share in every if share.selected.mean > 0.0][:SHOWN]
    return matter, [share for share in every if share not in matter]


def cells(explanation: Explanation, share: Share) -> list[str]:
    """Return the texts of the :func:`columns_of` a share."""
    found = [
        percent(share.decision),
        percent(share.weight),
        worse(share.left_out, explanation.metric),
        f"{share.selected.mean * explanation.n_splits:.0f}/{explanation.n_splits}",
    ]
    return [*found, p_value_text(share.p_value)] if explanation.n_permutations else found


def name_of(share: Share, same: Sequence[Share]) -> str:
    """Return rank and name, ``=`` after a rank that other shares of the level have too."""
    tied = sum(other.rank == share.rank for other in same) > 1
    name = f"{share.name:g}" if isinstance(share.name, float) else share.name
    return f"{share.rank}{'=' if tied else '.'}\N{NO-BREAK SPACE}{name}"


def others_words(others: Sequence[Share]) -> str:
    """Return how many shares a table leaves out and how large they are at most."""
    known = not math.isnan(others[0].decision.mean)
    largest = max((share.decision if known else share.weight).mean for share in others)
    return f"and {len(others):,} more, of at most {100 * largest:z.0f} %"


def explanation_table(found: Sequence[Explanation]) -> Table:
    """Return the rows that matter of the best method on each data set."""
    import pandas as pd

    def told(one: Explanation) -> pd.DataFrame:
        matter = [share in shown_shares(one, share.level)[0] for share in one.shares]
        own = one.table[[kept and one.shares[n].level in TOLD for n, kept in enumerate(matter)]]
        return own.assign(dataset=one.dataset, method=one.method)

    data = pd.concat([told(one) for one in found], ignore_index=True)

    metrics = {one.dataset: one.metric for one in found}

    def ends(name: str, text: Callable[[Interval, Metric], str]) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            own = Interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
            return Cell(text(own, metrics[row["dataset"]]), own.mean)

        return cell

    places: dict[str, Callable[[Row], Cell]] = {
        "data set": lambda row: Cell(row["dataset"]),
        "method": lambda row: Cell(row["method"]),
    }
    columns: dict[str, Callable[[Row], Cell]] = {
        "set": lambda row: Cell(LEVELS[row["level"]]),
        "name": lambda row: Cell(f"{row['name']}"),
        "rank": lambda row: Cell(str(row["rank"]), row["rank"]),
        COLUMNS[0]: ends("decision", lambda own, _: percent(own)),
        COLUMNS[1]: ends("weight", lambda own, _: percent(own)),
        COLUMNS[2]: ends("left_out", worse),
        "active in %": ends("selected", lambda own, _: percent(own)),
    }
    shown = columns if len(found) == 1 else places | columns
    return Table("explanation", data, shown, caption=" ".join(captions(found[0])))


def percent(found: Interval) -> str:
    """Return a share and its interval in per cent."""
    return _cell(found, 100.0, "{:z.0f}".format)


def worse(found: Interval, metric: Metric) -> str:
    """Return the rise of a loss and its interval; of errors in points."""
    if metric.unit == "%":
        return _cell(found, 100.0, lambda value: f"{value:z.{0 if abs(value) >= 9.95 else 1}f}")
    if metric.unit == "1":
        return _cell(found, 1.0, "{:z.3f}".format)
    return _cell(
        found, 1.0, lambda value: f"{value:,.0f}" if abs(value) >= 10.0 else f"{value:.2g}"
    )


def captions(explanation: Explanation) -> list[str]:
    """Return what the columns are."""
    metric = explanation.metric
    unit = ", in points" if metric.unit == "%" else ""
    found = [
        "decision: share of the variance of the decision values, Cov(part, whole) / Var(whole); "
        "the part of features is what the decision loses where they stand at their means.",
        "weights: share of the sum of kernel weights, of kernels on these features alone, as the "
        "bank normalises them.",
        f"left out: how much worse the {metric.words} on the test rows is with the part at its "
        f"mean{unit}; without training again.",
        "active: splits that give a kernel with one of its features more than 0.001 of the largest "
        "weight.",
    ]
    if explanation.n_permutations:
        found.append(
            f"p: how often a fit on permuted labels has as large a share of the decision, of "
            f"{explanation.n_permutations}, at least {1 / (1 + explanation.n_permutations):.2g}; "
            f"not corrected for the number of rows."
        )
    if explanation.n_splits > 1:
        found.append("In brackets: 95 % intervals over the splits.")
    return found


def explanation_sentences(explanation: Explanation) -> list[str]:
    """Return what carries the decision, how stable that is, and what uniform weights would do."""
    return [
        *warnings(explanation),
        _subject(explanation),
        *answers(explanation),
        *_ties(explanation),
        *_stability(explanation),
        _against(explanation),
        *_limits(explanation),
    ]


def warnings(one: Explanation) -> list[str]:
    """Return what a reader must know before the shares."""
    if not one.no_better:
        return []
    return [
        f"On {one.dataset}, {one.method} is no better than {one.no_better}, by a test: what its "
        f"decision rests on may say nothing of the labels."
    ]


def _subject(one: Explanation) -> str:
    setting = ", ".join(f"{name} = {_value(value)}" for name, value in one.setting.items())
    where = f"On {one.dataset}, {one.method}{f' ({setting})' if setting else ''}"
    splits = f"on average over {one.n_splits} splits" if one.n_splits > 1 else "on one split"
    always = f"; {one.always} of them in every split" if one.n_splits > 1 else ""
    return (
        f"{where} has {one.selected:.3g} active kernels of {one.n_kernels:,} of bank {one.bank} "
        f"{splits}{always}."
    )


def answers(one: Explanation) -> list[str]:
    """Return sentences of the largest shares of views, of groups and of features."""
    what, found = "weights" if one.no_decision else "decision", []
    for level in ("view", "group", "feature"):
        matter, _ = shown_shares(one, level)
        shares = [(share.weight if one.no_decision else share.decision) for share in matter]
        named = [
            f"{share.name} {_in_words(mean)}"
            for share, mean in zip(matter[:NAMED], shares, strict=False)
            if mean.mean >= LEAST
        ]
        if named:
            words = f"{LEVELS[level].capitalize()} by share of the {what}: {', '.join(named)}."
            found.append(words)
    return found


def _ties(one: Explanation) -> Iterator[str]:
    for level in ("view", "group", "feature"):
        shares = one.of(level)
        means = [share.weight.mean for share in shares]
        if shares and max(means) - min(means) <= EQUAL:
            words = LEVELS[level]
            yield f"Weights do not tell the {len(shares)} {words} apart: all have equal shares."


def _stability(one: Explanation) -> Iterator[str]:
    stability = one.stability["kernel"]
    if math.isnan(stability.mean):
        if one.n_splits < 2:
            yield "One split cannot tell how stable the selection is."
        else:
            yield "Every split selects all kernels or none, so that stability has no meaning."
        return
    found = ", ".join(
        f"{LEVELS[level] if level != 'kernel' else 'kernels'} {_stable(one.stability[level])}"
        for level in ("kernel", "view", "group", "feature")
        if level in one.stability and not math.isnan(one.stability[level].mean)
    )
    few = ""
    if one.n_splits < FEWEST_SPLITS:
        few = f" Fewer than {FEWEST_SPLITS} splits give no interval, and no grade."
    yield (
        f"Stability of the selection over the splits by Nogueira's measure (1 is equal selections, "
        f"0 is chance): {found}.{few}"
    )


def _stable(stability: Interval) -> str:
    """Return the measure, with its interval and grade, or both grades that the interval meets."""
    if math.isnan(stability.low):
        return f"{stability.mean:.2f}"
    low, high = (
        "unstable" if end < POOR else "fairly stable" if end < EXCELLENT else "stable"
        for end in (stability.low, stability.high)
    )
    grade = low if low == high else f"{low} or {high}"
    high_end = min(stability.high, 1.0)
    return f"{stability.mean:.2f} [{stability.low:.2f}, {high_end:.2f}], {grade}"


def _against(one: Explanation) -> str:
    if one.against_uniform is not None:
        return pair_sentence(one.against_uniform)
    if one.method == "uniform":
        return "Uniform weights are the baseline that other methods are held to."
    if one.task == "regression":
        return "Uniform weights learn classes alone, so nothing tells what is lost here."
    return f"The sweep has no uniform weights on this bank. {ADD_UNIFORM}"


def _limits(one: Explanation) -> Iterator[str]:
    if one.no_decision:
        yield f"Shares of the decision's variance are not known: {one.no_decision}."
    elif not one.n_permutations:
        yield (
            f"--permutations 20 adds p-values, by 20 fits on permuted labels of each split: about "
            f"{20 * one.seconds:.2g} s of computing."
        )
    if not one.normalised:
        yield "The bank does not scale its kernels, so that their weights do not compare."
    if one.n_candidates > 1:
        by = "validation loss" if one.validated else "loss on the scored rows, which flatters it"
        yield f"It has the least mean {by}, of {one.n_candidates} methods and banks."
    if not one.validated and one.n_settings > 1:
        yield (
            f"Its setting was chosen from {one.n_settings} by the test parts; inner folds, "
            f"[selection], would choose it without their labels."
        )
    yield (
        "Shares describe this model, not causes: of features that resemble each other, one may "
        "carry the share of all."
    )


def _cell(found: Interval, scale: float, text: Callable[[float], str]) -> str:
    if math.isnan(found.mean):
        return NOTHING
    mean = text(scale * found.mean)
    if math.isnan(found.low):
        return mean
    return f"{mean} [{text(scale * found.low)}, {text(scale * found.high)}]"


def _in_words(found: Interval) -> str:
    if math.isnan(found.low):
        return f"{100 * found.mean:.0f} %"
    return f"{100 * found.mean:.0f} % ({100 * found.low:z.0f} to {100 * found.high:z.0f})"


def _value(value: object) -> str:
    if isinstance(value, list):
        if len(value) > 1 and all(type(one) in (int, float) for one in value):
            low, high = _value(min(value)), _value(max(value))
            return low if low == high else f"{low}…{high}"
        return "/".join(dict.fromkeys(_value(one) for one in value))
    return f"{value:g}" if isinstance(value, float) else str(value)
