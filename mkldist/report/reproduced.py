"""Page in Markdown of the published numbers and conclusions that results reproduce."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mkldist.analysis.cell_texts import NOTHING
from mkldist.analysis.conclusions import Conclusion, Judged, judge
from mkldist.analysis.explanations import Explanation, explanation_of
from mkldist.analysis.pairing import Results
from mkldist.analysis.published import Cell, Published
from mkldist.analysis.reproduction import Experiment, by_data, experiments, is_within, within
from mkldist.counted import counted
from mkldist.spec.model import SweepSpec

HEADING = "# What is reproduced of the papers"
NOT_RUN = "not run"
NOT_EXPLAINED = "Not explained:"
RULES = """\
Means over the splits with complete runs of both are compared on each data set, without a test, as
in the papers.  Times are those of a processor, passes over the bank included, of sweeps that do one
run at a time.  A time within 10 % of the bound that a conclusion draws does not decide (?); where
runs had less than half of a processor, because other programs ran, neither does one within a factor
of two.  No verdict rests on fewer than half of the data sets of a sweep's file.\
"""


def reproduced(
    results: Mapping[str, Results],
    published: Sequence[Published],
    conclusions: Sequence[Conclusion],
    files: Mapping[str, SweepSpec],
    explanations: Sequence[Explanation] = (),
    other_data: Sequence[Explanation] = (),
) -> str:
    """Return the page: experiments, shares, conclusions, and the numbers that lie outside of ±.

    The same results give the same page.

    Parameters
    ----------
    results, published, conclusions, files
        As for :func:`mkldist.analysis.reproduction.experiments`.
    explanations : sequence of Explanation
        Why numbers lie outside.
    other_data : sequence of Explanation
        Numbers whose data are not those of the paper, with the fact that shows it.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    found = experiments(results, published, conclusions, files)
    sizes = {name: len(file.datasets) for name, file in files.items()}
    judged = [judge(one, results, sizes.get(one.experiment, 0)) for one in conclusions]
    lines = [
        HEADING, "",
        *_origin(results), "",
        "## Experiments", "",
        "A number is within ± if our mean over the splits lies within one published standard",
        "deviation of the published mean; where none above 0 is published, within our own over the",
        "splits, of which two are needed.  Only complete runs count.", "",
        *_experiment_rows(found), "",
        *_parts(found),
        "## Shares", "",
        *_shares(found, other_data), "",
        "## Conclusions", "",
        RULES, "",
        *_conclusion_lines(judged),
        "## Numbers outside of ±", "",
        *_outside(found, explanations),
    ]  # fmt: skip
    return "\n".join(lines)


def _origin(results: Mapping[str, Results]) -> Iterator[str]:
    """Yield a line for each software and machine that made results, with the dates of these."""
    origins: dict[str, list[str]] = {}
    for one in results.values():
        origins.setdefault(_software(one), []).append(str(one.tree.attrs["created"])[:10])
    for software, dates in sorted(origins.items()):
        days = " to ".join(dict.fromkeys((min(dates), max(dates))))
        yield f"- {counted(len(dates), 'sweep')} of {days}: {software}."


def _software(results: Results) -> str:
    """Return the versions, the commit and the machine of results."""
    facts: dict[str, Any] = json.loads(str(results.tree.attrs["provenance"]))
    versions = ", ".join(f"{name} {text}" for name, text in facts.get("versions", {}).items())
    system = str(facts.get("platform", "unknown")).partition("-")[0]
    machine = f"{facts.get('processors', '?')} processors, {system} {facts.get('machine', '')}"
    if facts.get("processor"):
        machine += f", {facts['processor']}"
    commit = f"; commit {facts['commit']}" if facts.get("commit") else ""
    python = facts.get("python", "unknown")
    return (
        f"{versions or results.tree.attrs['mkldist_version']}{commit}; Python {python}; {machine}"
    )


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


def _shares(found: Sequence[Experiment], other_data: Sequence[Explanation]) -> Iterator[str]:
    """Yield how many of all numbers lie within ±, and of those of the papers' data alone."""
    cells = [cell for one in found for cell in one.compared]
    own, other = by_data(cells, other_data)
    others = [cell for some in other.values() for cell in some]
    share, _ = _both_shares(own)
    yield from (f"Of the papers' data and with a published ±: {share} within it.", "")
    rows = [
        [words, *_both_shares(some)]
        for words, some in (
            ("all", cells), ("of the papers' data", own), ("of other data", others)
        )
    ]  # fmt: skip
    heading = ("numbers with ours", "within the published ±", "none published: within ours")
    yield from _table(heading, rows)
    if other:
        yield from ("", "Data are others where the paper's own words do not fit them:", "")
        for fact, some in other.items():
            names = dict.fromkeys(f"{c.published.experiment} {c.published.dataset}" for c in some)
            yield f"- {', '.join(names)}: {counted(len(some), 'number')}. {fact}"


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
    sides = [f"{said.first} {said.setting}".strip(),
             f"{said.second} {said.second_setting or said.setting}".strip()]  # fmt: skip
    relation = {"less": "below", "more": "above", "alike": f"within {said.within:g} of"}
    factor = f" {said.factor:g} ×" * (said.factor != 1.0)  # noqa: RUF001
    head = f"{said.metric} of {sides[0]} {relation[said.relation]}{factor} {sides[1]}"
    own = [case for case in one.cases if case.dataset]
    cases = ", ".join(
        f"{case.dataset or 'sum'} {case.first:.4g} and {case.second:.4g}"
        + {True: "", False: " (no)", None: " (?)"}[case.holds]
        for case in one.cases
    )
    held = f"on {sum(case.holds is True for case in own)} of {len(own)} data sets"
    return f"{head} {held}: {cases}" + f"; {one.note}" * bool(one.note)


def _outside(found: Sequence[Experiment], explanations: Sequence[Explanation]) -> Iterator[str]:
    """Yield each explanation once, with the numbers outside that it is about."""
    rows: dict[str, list[list[str]]] = {}
    for one in found:
        for cell in one.compared:
            if not is_within(cell):
                words = explanation_of(cell.published, explanations) or NOT_EXPLAINED
                rows.setdefault(words, []).append(_row(one.name, cell))
    heading = ("experiment", "data set", "method", "metric", "published", "ours")
    for words, own in rows.items():
        yield from (words, "", *_table(heading, own), "")
    if not rows:
        yield from ("None.", "")


def _row(experiment: str, cell: Cell) -> list[str]:
    """Return a number and ours."""
    number = cell.published
    method = f"{number.method} {number.setting}".strip()
    ours, theirs = _mean_sd(cell.mean, cell.sd), _mean_sd(number.mean, number.sd)
    return [experiment, number.dataset, method, number.metric, theirs, ours]


def _mean_sd(mean: float, sd: float) -> str:
    return f"{mean:.4g}" + ("" if math.isnan(sd) else f" ± {sd:.2g}")
