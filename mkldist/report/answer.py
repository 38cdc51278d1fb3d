"""The answer of a sweep: the best method of each data set, beside a constant and the runner-up."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

from mkldist.analysis.losses import (
    SIGNIFICANCE,
    TO_TRY,
    Compared,
    constant_words,
    number_of_settings,
    without_gaps,
)
from mkldist.analysis.statistics import known_interval
from mkldist.analysis.summary import loss_of
from mkldist.core.metrics import METRICS, NOTHING, p_value_text, variable_words
from mkldist.core.wording import pluralize
from mkldist.report.facts import Facts, records
from mkldist.report.tables import Cell, Row, Table, p_value, text
from mkldist.results.rows import settings_of


def answers_of(facts: Facts) -> pd.DataFrame:
    """Return the best method of each data set, of those that lack no split that another has.

    Validation ranks the methods where it selects settings, as it does for ``mkldist fit``; scores
    are of the test parts.

    ``dataset``, ``metric``, ``name`` of the method in the comparison, its ``setting``, ``mean`` of
    the metric with its interval ``low`` and ``high``, ``constant``, the metric of the best constant
    prediction, and ``no_better`` where a test finds no gain on it; ``second``, the method of the
    next mean, its ``second_mean``, and ``difference`` from it with ``difference_low``,
    ``difference_high`` and ``p_holm`` of the corrected t-test. Without a second method the latter
    are missing.
    """
    found = [_answer(facts, one, [r for r in facts.ranked if r["dataset"] == one.dataset])
             for one in facts.compared]  # fmt: skip
    return pd.DataFrame([row for row in found if row is not None])


def _answer(facts: Facts, compared: Compared, rows: list[Row]) -> Row | None:
    """Return the row of one data set; None where every method lacks a split."""
    losses = without_gaps(compared.losses)
    if losses.empty:
        return None
    chosen = {n: _at_chosen_setting(facts, compared, n, rows) for n in map(str, losses)}
    # As the stars of the summary do: inner folds choose alone; else what beats a constant is first.
    ranks = pd.DataFrame(
        {
            name: {"no_better": row["no_better"], "loss": loss_of(row)}
            for name, row in chosen.items()
        }
    ).T
    order = ["loss"] if facts.validated else ["no_better", "loss"]
    best, *others = map(str, ranks.sort_values(order, kind="stable").index)
    metric, score, row = facts.metric(compared.dataset), facts.loss(compared.dataset), chosen[best]
    found: Row = {
        "dataset": compared.dataset,
        "metric": metric.name,
        "name": best,
        "setting": _setting_text(facts, row),
        "mean": row[f"{score}_mean"],
        "low": row[f"{score}_low"],
        "high": row[f"{score}_high"],
        "constant": row["constant_mean"],
        "no_better": bool(row["no_better"]),
    }
    if not others:
        return found
    second = others[0]
    sign = -1.0 if metric.greater else 1.0
    gap = known_interval(sign * (losses[best] - losses[second]).to_numpy(), compared.overlap)
    tests = facts.pairs[facts.pairs["dataset"] == compared.dataset]
    is_pair = tests["first"].isin([best, second]) & tests["second"].isin([best, second])
    return found | {
        "second": second,
        "second_mean": chosen[second][f"{score}_mean"],
        "difference": gap.mean,
        "difference_low": gap.low,
        "difference_high": gap.high,
        "p_holm": float(next(iter(tests.loc[is_pair, "p_holm"]), np.nan)),
    }


def _at_chosen_setting(facts: Facts, compared: Compared, name: str, rows: list[Row]) -> Row:
    """Return the row of a method in a summary, at the setting that was chosen."""
    setting = {} if facts.validated else compared.settings[name]
    return next(
        row
        for row in rows
        if facts.name_of(row) == name and all(row[n] == value for n, value in setting.items())
    )


def _setting_text(facts: Facts, row: Row) -> str:
    """Return the hyperparameters of a row of a summary that are not missing, in words."""
    names = dict.fromkeys(name for _, node in facts.nodes for name in settings_of(node))
    known = {name: row[name] for name in names if row.get(name) not in (None, "")}
    return ", ".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in known.items()
        if value == value
    )


def answer_sentences(facts: Facts, answers: pd.DataFrame) -> list[str]:
    """Return which method is best, and whether a test tells it from the next."""
    if not facts.compared:
        return ["No run is complete yet, so there is nothing to compare."]
    if answers.empty:
        return ["Every method lacks a split that another has, so none is best."]
    if len(facts.compared) > 1:
        return [_of_several(facts, answers), _tests_of_several(answers)]
    (row,) = records(answers)
    if row["no_better"]:
        return [_best(facts, row), " ".join(TO_TRY)]
    return [_best(facts, row), *([_next(facts, row)] if row.get("second") else [])]


def _best(facts: Facts, row: Row) -> str:
    metric, score = METRICS[row["metric"]], variable_words(facts.loss(row["dataset"]))
    setting = f" ({row['setting']})" if row["setting"] else ""
    value = metric.text(row["mean"], row["low"], row["high"])
    value += " (95 % interval)" * (not np.isnan(row["low"]))
    constant = constant_words(metric, row["constant"])
    if row["no_better"]:
        return (
            f"On {row['dataset']}, {row['name']}{setting} is best, but not shown to be better than "
            f"{constant}: it has {score} {value}{_how(facts)}."
        )
    against = "" if np.isnan(row["constant"]) else f"; {constant} is worse"
    return (
        f"On {row['dataset']}, {row['name']}{setting} is best, with {score} "
        f"{value}{_how(facts)}{against}."
    )


def _how(facts: Facts) -> str:
    """Return how settings were chosen, if there was a choice."""
    if facts.validated:
        return ", chosen with its setting on inner folds"
    several = any(number_of_settings(node) > 1 for _, node in facts.nodes)
    return ", at its best setting on the test parts" if several else ""


def _difference(row: Row) -> str:
    """Return the difference from the next method with its interval; points of a share of errors."""
    metric = METRICS[row["metric"]]
    mean, *ends = (metric.difference(row[f"difference{end}"]) for end in ("", "_low", "_high"))
    known = not np.isnan(row["difference_low"])
    return mean + f" [{', '.join(ends)}]" * known + " points" * (metric.unit == "%")


def _next(facts: Facts, row: Row) -> str:
    score = METRICS[row["metric"]].text(row["second_mean"])
    said = f"Next{' on inner folds' * facts.validated} is {row['second']} with {score}"
    if row["difference_low"] == row["difference_high"] == 0.0:
        return f"{said}, the same on every split."
    if np.isnan(row["p_holm"]):
        return f"{said}; no test applies to the difference on these splits."
    verdict = "tells" if row["p_holm"] < SIGNIFICANCE else "does not tell"
    several = int((facts.pairs["dataset"] == row["dataset"]).sum()) > 1
    return (
        f"{said}, a difference of {_difference(row)}: the corrected t-test {verdict} them apart "
        f"(p = {p_value_text(row['p_holm'])}{', corrected for all pairs' * several})."
    )


def _of_several(facts: Facts, answers: pd.DataFrame) -> str:
    better = answers[~answers["no_better"].astype(bool)]
    wins = Counter(better["name"]).most_common()
    said = ", ".join(f"{name} on {number}" for name, number in wins) or "no method on any"
    rest = len(answers) - len(better)
    nothing = f"; on {rest} the best is not shown to be better than a constant prediction"
    places = pluralize(len(facts.series), "data set")
    if len(facts.series) < len(facts.compared):
        places = f"{len(facts.compared)} sizes of {places}"
    return f"Of {places}, best is {said}{_how(facts)}{nothing * (rest > 0)}."


def _tests_of_several(answers: pd.DataFrame) -> str:
    told = int((answers["p_holm"] < SIGNIFICANCE).sum()) if "p_holm" in answers else 0
    return f"The corrected t-test tells the best from the next on {told} of {len(answers)}."


def answers_table(answers: pd.DataFrame) -> Table:
    """Return the best method of each data set, with its interval, beside constant and next."""
    data = answers if len(answers) > 1 else answers.head(0)  # sentences say that of one data set
    columns = {
        "dataset": text("dataset"),
        "best": text("name"),
        "score": lambda row: _text(row, "mean", "low", "high"),
        "metric": lambda row: Cell(METRICS[row["metric"]].words),
        "setting": text("setting"),
        "constant": lambda row: _text(row, "constant"),
        "next": text("second"),
        "difference": lambda row: Cell(_difference(row), float(row["difference"])),
        "p (Holm)": lambda row: p_value(row["p_holm"]),
    }
    caption = (
        "Scores of the best method and of the best constant prediction, and differences from the "
        "next method, with 95 % intervals. Rows where a test finds a gain on the constant are "
        "marked."
    )
    return Table("answers", data, columns, lambda row: not row["no_better"], caption)


def _text(row: Row, name: str, *ends: str) -> Cell:
    """Return the cell of a score, with its interval if that is known."""
    metric, value = METRICS[row["metric"]], row[name]
    if np.isnan(value):
        return Cell(NOTHING)
    return Cell(metric.text(value, *(row[end] for end in ends)), float(value))
