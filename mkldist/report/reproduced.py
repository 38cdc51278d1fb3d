"""Page in Markdown of the published numbers and conclusions that results reproduce."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mkldist.analysis.cell_texts import NOTHING
from mkldist.analysis.conclusions import Conclusion, Judged, judge
from mkldist.analysis.explanations import Explanation, explanation_of
from mkldist.analysis.pairing import Results
from mkldist.analysis.published import Cell, Published, against_published
from mkldist.results.schema import STATE
from mkldist.results.state import RunState
from mkldist.spec.changes import changes
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec

HEADING = "# What is reproduced of the papers"
NOT_RUN = "not run"
NOT_EXPLAINED = "not explained"
RULES = """\
Means over the splits with complete runs of both are compared on each data set, without a test, as
in the papers.  Times are those of a processor, passes over the bank included, of sweeps that do one
run at a time.  A time within 10 % of the bound that a conclusion draws does not decide (?); where
runs had less than half of a processor, because other programs ran, neither does one within a factor
of two.  No verdict rests on fewer than half of the data sets of a sweep's file.\
"""


@dataclass(frozen=True)
class Experiment:
    """A published experiment and what its sweep found.

    Parameters
    ----------
    name : str
        Name of the sweep.
    complete, n_runs : int
        Complete runs, and all of its results; 0 if it was not run.
    cells : tuple of Cell
        Its published numbers with ours; none if it was not run.
    n_published : int
        How many numbers are published.
    changes : tuple of str
        What ran other than the sweep's file says.
    """

    name: str
    complete: int
    n_runs: int
    cells: tuple[Cell, ...]
    n_published: int
    changes: tuple[str, ...] = ()

    @property
    def compared(self) -> list[Cell]:
        """Cells with a number of ours."""
        return [cell for cell in self.cells if cell.n_splits]

    def within(self, *, published: bool) -> tuple[int, int]:
        """Return how many numbers lie within ±, and of how many.

        Parameters
        ----------
        published : bool
            True for the published ±, of the numbers that have one; False for our own standard
            deviation over the splits, of the others.
        """
        own = [cell for cell in self.compared if (cell.published.sd > 0.0) == published]
        return sum(is_within(cell) for cell in own), len(own)


def is_within(cell: Cell) -> bool:
    """Return True if our mean is within the published ±, or within ours where none is published."""
    sd = cell.published.sd if cell.published.sd > 0.0 else cell.sd
    return abs(cell.mean - cell.published.mean) <= sd


def experiments(
    results: Mapping[str, Results],
    published: Sequence[Published],
    conclusions: Sequence[Conclusion],
    files: Mapping[str, SweepSpec],
) -> list[Experiment]:
    """Return the experiments that numbers and conclusions name, by name, run or not.

    Parameters
    ----------
    results : mapping of str to Results
        Results by the name of their sweep.
    published : sequence of Published
        Numbers of all experiments.
    conclusions : sequence of Conclusion
        Conclusions from all experiments.
    files : mapping of str to SweepSpec
        Sweeps by name, as their files have them.
    """
    names = {one.experiment for one in published} | {one.experiment for one in conclusions}
    return [
        _experiment(name, results.get(name), published, files.get(name))
        for name in sorted(names - {""})
    ]


def _experiment(
    name: str, results: Results | None, published: Sequence[Published], file: SweepSpec | None
) -> Experiment:
    own = [one for one in published if one.experiment == name]
    if results is None:
        return Experiment(name, 0, 0, (), len(own))
    states = [node[STATE.name] for node in results.nodes()]
    complete = sum(int((state == RunState.COMPLETE.value).sum()) for state in states)
    n_runs = sum(state.size for state in states)
    cells = tuple(against_published(results, own))
    run = load_sweep(json.loads(str(results.tree.attrs["spec"])))
    changed = changes(file, run) if file else ()
    return Experiment(name, complete, n_runs, cells, len(own), tuple(changed))


def reproduced(
    results: Mapping[str, Results],
    published: Sequence[Published],
    conclusions: Sequence[Conclusion],
    files: Mapping[str, SweepSpec],
    explanations: Sequence[Explanation] = (),
) -> str:
    """Return the page: experiments, conclusions, and the numbers that lie outside of ±.

    The same results give the same page.

    Parameters
    ----------
    results, published, conclusions, files
        As for :func:`experiments`.
    explanations : sequence of Explanation
        Why numbers lie outside.

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
        "deviation of the published mean; where none is published, within our own over the splits.",
        "Only complete runs count.", "",
        *_experiment_rows(found), "",
        *_parts(found),
        "## Conclusions", "",
        RULES, "",
        *_conclusion_lines(judged),
        "## Numbers outside of ±", "",
        *_outside(found, explanations), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _origin(results: Mapping[str, Results]) -> Iterator[str]:
    """Yield a line for each software and machine that made results, with the dates of these."""
    origins: dict[str, list[str]] = {}
    for one in results.values():
        origins.setdefault(_software(one), []).append(str(one.tree.attrs["created"])[:10])
    for software, dates in sorted(origins.items()):
        days = " to ".join(dict.fromkeys((min(dates), max(dates))))
        yield f"- {len(dates)} sweeps of {days}: {software}."


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
            _share(*one.within(published=True)),
            _share(*one.within(published=False)),
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


def _share(count: int, of: int) -> str:
    return f"{count} of {of}" if of else NOTHING


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
    """Yield the table of the numbers outside, with their explanations."""
    rows = [
        [
            one.name,
            cell.published.dataset,
            f"{cell.published.method} {cell.published.setting}".strip(),
            cell.published.metric,
            _mean_sd(cell.published.mean, cell.published.sd),
            _mean_sd(cell.mean, cell.sd),
            explanation_of(cell.published, explanations) or NOT_EXPLAINED,
        ]
        for one in found
        for cell in one.compared
        if not is_within(cell)
    ]
    heading = ("experiment", "data set", "method", "metric", "published", "ours", "what was tried")
    return _table(heading, rows)


def _mean_sd(mean: float, sd: float) -> str:
    return f"{mean:.4g}" + ("" if math.isnan(sd) else f" ± {sd:.2g}")
