"""Page in Markdown of the published numbers and conclusions that results reproduce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mkldist.analysis.cell_texts import NOTHING, mean_sd
from mkldist.analysis.conclusion import Conclusion
from mkldist.analysis.explanations import Explanation, explanation_of
from mkldist.analysis.origins import together
from mkldist.analysis.outcomes import Outcome, judged_by
from mkldist.analysis.published import Cell
from mkldist.analysis.published_number import Published
from mkldist.analysis.reproduction import (
    DataFacts,
    Experiment,
    by_data,
    experiments,
    has_verdict,
    is_within,
    within,
)
from mkldist.analysis.setting_ranges import SettingRange
from mkldist.analysis.verdicts import Judged
from mkldist.counted import counted
from mkldist.spec.model import SweepSpec

HEADING = "# What is reproduced of the papers"
NOT_RUN = "not run"
NO_FACTS = DataFacts()
NOT_EXPLAINED = "Not explained:"
RULES = """\
Means over the splits with complete runs of both are compared on each data set, without a test, as
in the papers.  Times are those of a processor, passes over the bank included, of sweeps that do one
run at a time.  A time within 10 % of the bound that a conclusion draws does not decide (?); where
runs had less than half of a processor, because other programs ran, neither does one within a factor
of two.  Times and counts of runs that a limit of time ended are lower bounds, and decide only what
lower bounds can; a limit of iterations is part of an algorithm.  No verdict rests on fewer than
half of the data sets that it is about.  METHOD / METHOD is how the figure of a method grows from
one bank to another.\
"""
OUTSIDE = """\
Each text says what was tried, with figures, and stands above the numbers that it is about.  Errors
are in %.  Where a setting was chosen by cross-validation, `any setting` has the least and the
largest mean that a single setting has over the splits, and `tied` how many settings share the least
validation error on each split, with the mean of the best and of the worst of these; the one that
comes first in the sweep's file is taken.\
"""
PERCENT = frozenset(("test_error", "unlabelled_error"))
NO_VERDICT = """\
One split has no deviation of its own, and none is published for these numbers, so that nothing says
how far they may lie apart.\
"""
UNSTATED = "The paper does not state which points it takes:"
OTHER = "Data are others where the paper's own words do not fit, or name others:"
MOST_TIES = 4  # splits whose ties are listed one by one
MOST_NAMES = 4  # data sets of an experiment that are named


def reproduced(
    outcomes: Mapping[str, Outcome],
    published: Sequence[Published],
    conclusions: Sequence[Conclusion],
    files: Mapping[str, SweepSpec],
    explanations: Sequence[Explanation] = (),
    facts: DataFacts = NO_FACTS,
) -> str:
    """Return the page: experiments, shares, conclusions, and the numbers that lie outside of ±.

    The same outcomes give the same page.

    Parameters
    ----------
    outcomes, published, conclusions, files
        As for :func:`mkldist.analysis.reproduction.experiments`.
    explanations : sequence of Explanation
        Why numbers lie outside.
    facts : DataFacts
        Numbers whose data may not be those of the paper.
    """
    found = experiments(outcomes, published, conclusions, files)
    judged = [judged_by(one, outcomes) for one in conclusions]
    lines = [
        HEADING, "",
        *_origin(outcomes), "",
        "## Experiments", "",
        "A number is within ± if our mean over the splits lies within one published standard",
        "deviation of the published mean; where none above 0 is published, within our own over the",
        "splits, of which two are needed.  Only complete runs count.", "",
        *_experiment_rows(found), "",
        *_parts(found),
        "## Shares", "",
        *_shares(found, facts), "",
        "## Conclusions", "",
        RULES, "",
        *_conclusion_lines(judged),
        "## Numbers outside of ±", "",
        *_outside(found, explanations),
        *_without_verdict(found, explanations),
    ]  # fmt: skip
    return "\n".join(lines)


def _origin(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Yield a line for each software and machine that made runs, and one for their dates."""
    for one, names in together({name: own.origins for name, own in outcomes.items()}):
        total = counted(sum(one.commits.values()), "run")
        known = sorted((-n, commit or "unknown") for commit, n in one.commits.items())
        commits = ", ".join(f"{commit} ({counted(-n, 'run')})" for n, commit in known)
        yield (
            f"- {total} of {counted(len(names), 'sweep')}: {one.description}; by commit {commits}."
        )
    if dates := sorted(one.created for one in outcomes.values()):
        days = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        yield f"- Trees of results: {days}."


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table of Markdown."""
    for row in (heading, ["---"] * len(heading), *rows):
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def _experiment_rows(found: Sequence[Experiment]) -> Iterator[str]:
    heading = ("experiment", "complete runs", "published numbers", "with ours",
               "within the published ±", "none published: within ours")  # fmt: skip
    rows = [
        [
            one.name,
            f"{one.complete} of {one.n_runs}" if one.n_runs else NOT_RUN,
            str(one.n_published),
            str(len(one.compared)),
            *_both_shares(one.compared),
        ]
        for one in found
    ]
    return _table(heading, rows)


def _parts(found: Sequence[Experiment]) -> Iterator[str]:
    """Yield what ran other than the sweep files say, if anything did."""
    changed = [one for one in found if one.changes]
    if changed:
        yield from ("What ran other than the sweep's file says:", "")
        yield from (f"- {one.name}: {'; '.join(one.changes)}." for one in changed)
        yield ""


def _shares(found: Sequence[Experiment], facts: DataFacts) -> Iterator[str]:
    """Yield how many of all numbers lie within ±, and of those of the papers' data alone."""
    cells = [cell for one in found for cell in one.compared]
    own, unstated, other = by_data(cells, facts)
    unknown, others = ([cell for some in kind.values() for cell in some]
                       for kind in (unstated, other))  # fmt: skip
    first, second, third = (_both_shares(some)[0] for some in (own, own + unknown, cells))
    yield f"Of the numbers with a published ±, {first} lie within it where the data are the"
    yield f"papers', {second} with those of data whose points the paper does not state,"
    yield from (f"and {third} with those of other data, too.", "")
    kinds = (
        ("all", cells), ("of the papers' data", own),
        ("of data whose points are not stated", unknown), ("of other data", others),
    )  # fmt: skip
    heading = ("numbers with ours", "within the published ±", "none published: within ours")
    yield from _table(heading, [[words, *_both_shares(some)] for words, some in kinds])
    yield from _facts(UNSTATED, unstated)
    yield from _facts(OTHER, other)


def _facts(words: str, cells: Mapping[str, Sequence[Cell]]) -> Iterator[str]:
    """Yield the facts that numbers stand for, if there are any, below some words."""
    if cells:
        yield from ("", words, "")
    for fact, some in cells.items():
        yield f"- {_places(some)}: {counted(len(some), 'number')}. {fact}"


def _places(cells: Sequence[Cell]) -> str:
    """Return experiments with the data sets of some numbers, or with how many if they are many."""
    places: dict[str, list[str]] = {}
    for cell in cells:
        own = places.setdefault(cell.published.experiment, [])
        if cell.published.dataset not in own:
            own.append(cell.published.dataset)
    return "; ".join(
        f"{name} {', '.join(own) if len(own) <= MOST_NAMES else counted(len(own), 'data set')}"
        for name, own in places.items()
    )


def _both_shares(cells: Sequence[Cell]) -> tuple[str, str]:
    """Return the shares within the published ± and, where there is none, within ours."""
    return _share(*within(cells, published=True)), _share(*within(cells, published=False))


def _share(count: int, of: int) -> str:
    return f"{count} of {of} ({count / of:.0%})" if of else NOTHING


def _conclusion_lines(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield conclusions by paper, each with its verdict and figures."""
    for paper in dict.fromkeys(one.conclusion.paper for one in judged):
        yield from (f"### {paper}", "")
        own = [one for one in judged if one.conclusion.paper == paper]
        rows = [[one.conclusion.words, f"**{one.verdict}**", _figures(one)] for one in own]
        yield from _table(("the paper says", "verdict", "figures"), rows)
        yield ""


def _figures(one: Judged) -> str:
    """Return what was compared, the means on each data set, and what to know of them."""
    said = one.conclusion
    if not one.cases:
        return one.note
    own = [case for case in one.cases if case.dataset]
    cases = ", ".join(
        f"{case.dataset} {case.first:.4g} and {case.second:.4g}"
        + {True: "", False: " (no)", None: " (?)"}[said.is_summed or case.holds]
        for case in own
    )
    if said.is_summed:
        total = one.cases[-1]
        held = {
            "total": f"in sum, {total.first:.4g} and {total.second:.4g}",
            "average": f"by the mean ratio {total.first:.4g}",
            "t-test": f"by the paired t-test, p = {total.first:.2g}",
        }[said.scope]
    else:
        held = f"on {sum(case.holds is True for case in own)} of {counted(len(own), 'data set')}"
        held += f", {said.wins} needed" * bool(said.wins)
    return "; ".join(filter(None, (f"{_head(said)} {held}: {cases}", said.untestable, one.note)))


def _head(said: Conclusion) -> str:
    """Return the metric, the two sides, and how the one should relate to the other."""
    first = _side(said.first, said.first_over, said.setting, said.ending)
    second = ", ".join(
        _side(other, said.second_over, said.second_setting or said.setting,
              said.second_ending or said.ending)
        for other in said.others
    )  # fmt: skip
    near = f"a factor of {said.within_factor:g}" if said.within_factor > 1.0 else f"{said.within:g}"
    alike = "no different from" if said.scope == "t-test" else f"within {near} of"
    relation = {"less": "below", "more": "above", "alike": alike}
    factor = f" {said.factor:g} ×" * (said.factor != 1.0)  # noqa: RUF001
    best = (" the largest of" if said.relation == "more" else " the least of") * bool(said.rivals)
    other = f" {said.second_metric} of" * bool(said.second_metric)
    return f"{said.metric} of {first} {relation[said.relation]}{factor}{best}{other} {second}"


def _side(method: str, over: str, setting: str, ending: str) -> str:
    words = f"{method} / {over}" if over else method
    return " ".join(filter(None, (words, setting, f"({ending})" * bool(ending))))


def _outside(found: Sequence[Experiment], explanations: Sequence[Explanation]) -> Iterator[str]:
    """Yield each explanation once an experiment, with the numbers outside that it is about."""
    heading = ("data set", "method", "metric", "published", "ours", "any setting", "tied")
    rows = [(one.name, _explained(one, explanations, verdict=True)) for one in found]
    if not any(own for _, own in rows):
        yield from ("None.", "")
        return
    yield from (OUTSIDE, "")
    for name, own in rows:
        yield from (f"### {name}", "") if own else ()
        for words, numbers in own.items():
            yield from (words, "", *_table(heading, numbers), "")


def _without_verdict(
    found: Sequence[Experiment], explanations: Sequence[Explanation]
) -> Iterator[str]:
    """Yield the numbers that are neither within ± nor outside, if there are any."""
    rows = [(one.name, _explained(one, explanations, verdict=False)) for one in found]
    if any(own for _, own in rows):
        yield from ("## Numbers without a verdict", "", NO_VERDICT, "")
    heading = ("data set", "method", "metric", "published", "ours")
    for name, own in rows:
        yield from (f"### {name}", "") if own else ()
        for words, numbers in own.items():
            said = () if words == NOT_EXPLAINED else (words, "")
            yield from (*said, *_table(heading, [row[:5] for row in numbers]), "")


def _explained(
    one: Experiment, explanations: Sequence[Explanation], *, verdict: bool
) -> dict[str, list[list[str]]]:
    """Return rows of the numbers not within ±, with a verdict or without, by their text."""
    rows: dict[str, list[list[str]]] = {}
    for cell, settings in zip(one.cells, one.ranges, strict=True):
        if cell.n_splits and not is_within(cell) and has_verdict(cell) == verdict:
            words = explanation_of(cell.published, explanations, cell.mean) or NOT_EXPLAINED
            rows.setdefault(words, []).append(_row(cell, settings))
    return rows


def _row(cell: Cell, settings: SettingRange) -> list[str]:
    """Return a number, ours, and what all settings give."""
    number = cell.published
    scale = 100.0 if number.metric in PERCENT else 1.0
    method = f"{number.method} {number.setting}".strip()
    ours, theirs = (mean_sd(scale * one.mean, scale * one.sd) for one in (cell, number))
    return [number.dataset, method, number.metric, theirs, ours, *_range(settings, scale)]


def _range(settings: SettingRange, scale: float) -> tuple[str, str]:
    """Return what any setting gives, and those tied for the least validation error."""
    if not settings.n_settings:
        return NOTHING, NOTHING
    few, *_, many = sorted((*settings.n_tied, settings.n_tied[0]))
    listed = ", ".join(map(str, settings.n_tied))
    if few == many:
        counts = str(few)
    else:
        counts = listed if len(settings.n_tied) <= MOST_TIES else f"{few} to {many}"
    tied = f"{counts} of {settings.n_settings}"
    if many > 1:
        tied += f": {scale * settings.tied_least:.4g} to {scale * settings.tied_most:.4g}"
    return f"{scale * settings.least:.4g} to {scale * settings.most:.4g}", tied
