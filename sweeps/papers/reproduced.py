"""Write what is reproduced of the papers: one page, details of each experiment, pictures.

    python -m sweeps.papers.reproduced results/*      # reads results anew, and keeps their outcomes
    python -m sweeps.papers.reproduced                # from the outcomes that are kept

``REPRODUCED.md`` begins with counts, the most important conclusions, and the causes of what
differs; a short part on each paper follows.  ``reproduced/NAME.md`` has every figure of an
experiment, ``reproduced/PAPER.svg`` our numbers against the published ones.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from mkldist.errors import MkldistError
from sweeps.papers.judge import (
    CAUSES,
    HERE,
    NOTHING,
    OUTCOMES,
    Cell,
    Conclusion,
    Judged,
    Outcome,
    Papers,
    Results,
    SettingRange,
    cell_of,
    judged_by,
    mean_sd,
    outcome_of,
    read_outcomes,
    sweep_files,
    text_on,
    write_outcome,
)

HEADING = "# What is reproduced of the papers"
WITHIN, OUTSIDE, OPEN = "within ±", "outside of ±", "without a verdict"
VERDICTS = {"reproduced": "yes", "not reproduced": "**no**"}
PERCENT = ("test_error", "unlabelled_error")
FEWEST_POINTS = 3  # in a panel of a picture
MOST_TIES = 4  # splits whose ties are listed one by one
DATA = {
    "": "of the paper's data and splits",
    "surrogate": "of the paper's data, splits drawn in place of its own",
    "unstated": "of points that the paper does not name",
    "other": "of other data than the paper's",
}
HEAD = """\
Published numbers beside ours, and what the papers conclude.  A number is within ± if our mean is no
further from the published one than the ±.  [How it is counted](#how-it-is-counted).\
"""
RULES = """\
A number is within ± if our mean over the splits lies within one published standard deviation of the
published mean; where none above 0 is published, within our own over the splits, of which two are
needed.  Only complete runs count, and the settings are those that cross-validation chose.

A conclusion compares means over the splits with complete runs of both methods on each data set,
without a test, as in the papers.  Times are those of a processor, passes over the bank included, of
sweeps that do one run at a time.  A time within 10 % of the bound that a conclusion draws does not
decide; where runs had less than half of a processor, neither does one within a factor of two.
Times and counts of runs that a limit of time ended are lower bounds, and decide only what lower
bounds can.  No verdict rests on fewer than half of the data sets that it is about.

The cause of a difference is one word: *data*, where points, splits or images are others; *reading*,
where the paper leaves open or misstates what it did; *selection*, where the setting that
cross-validation chose decides; *solver*, where the software or where it stops decides; and
*unknown*, where nothing that was tried explains it.\
"""
ANY_SETTING = """\
Errors are in %.  Where a setting was chosen by cross-validation, `any setting` has the least and
the largest mean of a single setting over the splits, and `tied` how many settings share the least
validation error on each split, with the means of the best and of the worst of these; the one that
comes first in the sweep's file is taken.\
"""
NO_VERDICT = "One split has no deviation of its own, and none is published for these numbers."


# --- tables of all numbers and conclusions ---------------------------------------------------


def paper_of(papers: Papers) -> dict[str, str]:
    """Return the paper of each experiment; by the name's first part if unsaid."""
    known = {one.experiment: one.paper for one in papers.conclusions if one.experiment}
    by_prefix = {name.partition("_")[0]: paper for name, paper in known.items()}
    names = {one.experiment for one in papers.published} - {""}
    found = {name: by_prefix.get(name.partition("_")[0], "Other papers") for name in names}
    return found | known


def numbers_of(outcomes: Mapping[str, Outcome], papers: Papers) -> pd.DataFrame:
    """Return the published numbers of which there is one of ours, a row each."""
    of_experiment, rows = paper_of(papers), []
    for number in papers.published:
        if number.experiment not in outcomes:
            continue
        cell = cell_of(outcomes[number.experiment], number)
        if not cell.n_splits:
            continue
        state = WITHIN if cell.is_within else OUTSIDE if cell.has_verdict else OPEN
        why, data = text_on(number, papers.explanations, cell.mean), text_on(number, papers.data)
        scale = 100.0 if number.metric in PERCENT else 1.0
        ours, theirs = (mean_sd(scale * one.mean, scale * one.sd) for one in (cell, number))
        rows.append({
            "paper": of_experiment[number.experiment], "experiment": number.experiment,
            "data set": number.dataset, "method": f"{number.method} {number.setting}".strip(),
            "metric": number.metric, "published": theirs, "ours": ours,
            **_ranges(cell.settings, scale), "state": state, "has ±": number.sd > 0.0,
            "cause": why.kind if why else "unknown",
            "words": why.words if why else "Not explained.",
            "kind": data.kind if data else "", "fact": data.words if data else "", "cell": cell,
        })  # fmt: skip
    columns = ["paper", "experiment", "metric", "state", "has ±", "cause", "kind", "fact", "cell"]
    return pd.DataFrame(rows, columns=None if rows else columns)


def conclusions_of(outcomes: Mapping[str, Outcome], papers: Papers) -> pd.DataFrame:
    """Return the conclusions with their verdicts, a row each."""
    rows = []
    for said in papers.conclusions:
        judged = judged_by(said, outcomes.get(said.experiment))
        cause = said.cause or "unknown" if judged.verdict == "not reproduced" else ""
        rows.append({
            "paper": said.paper, "experiment": said.experiment, "the paper says": said.words,
            "holds": VERDICTS.get(judged.verdict, judged.verdict), "cause": cause,
            "rank": said.rank or math.inf, "judged": judged,
        })  # fmt: skip
    columns = ["paper", "experiment", "the paper says", "holds", "cause", "rank", "judged"]
    return pd.DataFrame(rows, columns=columns)


def _ranges(settings: SettingRange, scale: float) -> dict[str, str]:
    """Return what any setting gives, and those tied for the least validation error."""
    if not settings.n_settings:
        return {"any setting": NOTHING, "tied": NOTHING}
    few, many = min(settings.n_tied), max(settings.n_tied)
    short = len(settings.n_tied) <= MOST_TIES
    counts = ", ".join(map(str, settings.n_tied)) if short else f"{few} to {many}"
    tied = f"{few if few == many else counts} of {settings.n_settings}"
    if many > 1:
        tied += f": {scale * settings.tied_least:.4g} to {scale * settings.tied_most:.4g}"
    ends = f"{scale * settings.least:.4g} to {scale * settings.most:.4g}"
    return {"any setting": ends, "tied": tied}


# --- the page --------------------------------------------------------------------------------


def _table(frame: pd.DataFrame) -> list[str]:
    """Return a table of Markdown."""
    rows = [list(frame.columns), ["---"] * frame.shape[1], *frame.astype(str).to_numpy().tolist()]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]


def counted(count: int, noun: str) -> str:
    """Return ``1 run`` or ``2 runs``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def share(numbers: pd.DataFrame) -> str:
    """Return how many numbers with a verdict are within ±."""
    known = numbers[numbers["state"] != OPEN]
    held = (known["state"] == WITHIN).sum()
    return f"{held} of {len(known)} ({held / len(known):.0%})" if len(known) else NOTHING


def _shares(numbers: pd.DataFrame) -> dict[str, str]:
    has = numbers["has ±"].astype(bool)
    return {"within the published ±": share(numbers[has]),
            "within ours, where none is published": share(numbers[~has])}  # fmt: skip


def _verdicts(conclusions: pd.DataFrame) -> dict[str, int]:
    counts = conclusions["holds"].value_counts()
    held, not_held = (int(counts.get(word, 0)) for word in VERDICTS.values())
    return {"conclusions hold": held, "do not": not_held,
            "open": len(conclusions) - held - not_held}  # fmt: skip


def page_of(outcomes: Mapping[str, Outcome], papers: Papers) -> str:
    """Return the page of outcomes by the names of their sweeps; the same give the same page."""
    numbers, conclusions = numbers_of(outcomes, papers), conclusions_of(outcomes, papers)
    names = list(dict.fromkeys((*conclusions["paper"], *numbers["paper"])))
    lines = [HEADING, "", *_head(names, numbers, conclusions)]
    for paper in names:
        lines += ["", *_part(paper, outcomes, papers, numbers, conclusions)]
    lines += ["", "## How it is counted", "", RULES, "", "## Data", ""]
    for kind, words in list(DATA.items())[1:]:
        facts = numbers[numbers["kind"] == kind]
        lines += [f"Numbers {words}:", ""] * (not facts.empty)
        for fact, own in facts.groupby("fact", sort=False):
            sets = own.groupby("experiment")["data set"].agg(lambda of: ", ".join(of.unique()))
            where = "; ".join(f"{name} {those}" for name, those in sets.items())
            lines.append(f"- {where}: {counted(len(own), 'number')}. {fact}")
        lines += [""] * (not facts.empty)
    return "\n".join([*lines, "## What ran", "", *_origin_lines(outcomes), ""])


def _head(names: Sequence[str], numbers: pd.DataFrame, conclusions: pd.DataFrame) -> Iterator[str]:
    """Yield counts by paper and by data, the most important conclusions, and the causes."""
    rows = [(paper, numbers[numbers["paper"] == paper], conclusions[conclusions["paper"] == paper])
            for paper in names]  # fmt: skip
    rows.append(("all", numbers, conclusions))
    yield from (HEAD, "")
    yield from _table(
        pd.DataFrame([{"paper": p, **_shares(n), **_verdicts(c)} for p, n, c in rows])
    )
    parts = [(words, numbers[numbers["kind"] == kind]) for kind, words in DATA.items()]
    shares = pd.DataFrame([{"numbers": words} | _shares(own) for words, own in parts if len(own)])
    yield from ("", *_table(shares), "") if len(shares) else [""]
    first = conclusions[np.isfinite(conclusions["rank"])].sort_values("rank")
    yield from (*_table(first[["the paper says", "holds", "cause"]]), "") if len(first) else ()
    causes = {
        "numbers outside of ±": numbers.loc[numbers["state"] == OUTSIDE, "cause"],
        "conclusions that do not hold": conclusions["cause"],
    }
    counts = {name: own.value_counts().reindex(list(CAUSES), fill_value=0)
              for name, own in causes.items()}  # fmt: skip
    yield from _table(pd.DataFrame(counts).T.rename_axis("cause").reset_index())


def _part(
    paper: str, outcomes: Mapping[str, Outcome], papers: Papers,
    numbers: pd.DataFrame, conclusions: pd.DataFrame,
) -> Iterator[str]:  # fmt: skip
    """Yield the part on a paper: a picture, its experiments, its conclusions."""
    yield from (f"## {paper}", "")
    if (numbers["paper"] == paper).any():
        yield from (f"![Our numbers against the published ones](reproduced/{slug(paper)}.svg)", "")
        yield from ("Full points are within ±, hollow ones outside or without a verdict.", "")
    own = conclusions[conclusions["paper"] == paper]
    rows = []
    for name in sorted(name for name, of in paper_of(papers).items() if of == paper):
        outcome = outcomes.get(name)
        rows.append({
            "experiment": f"[{name}](reproduced/{name}.md)" if outcome else name,
            "complete runs": f"{outcome['complete']} of {outcome['n_runs']}" if outcome else "none",
            "smaller than its file": "yes" if outcome and outcome["changes"] else "",
            **_shares(numbers[numbers["experiment"] == name]),
            **_verdicts(own[own["experiment"] == name]),
        })  # fmt: skip
    yield from (*_table(pd.DataFrame(rows)), "") if rows else ()
    yield from _table(own[["the paper says", "holds", "cause"]])


def _origin_lines(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Yield a line for each software and machine that made runs, and one for their dates."""
    origins = pd.DataFrame(
        [(one["description"], commit or "unknown", runs)
         for outcome in outcomes.values() for one in outcome["origins"]
         for commit, runs in one["commits"].items()],
        columns=["made by", "commit", "runs"],
    )  # fmt: skip
    for words, own in origins.groupby("made by"):
        commits = own.groupby("commit")["runs"].sum().sort_values(ascending=False)
        by = ", ".join(f"{commit} ({counted(runs, 'run')})" for commit, runs in commits.items())
        yield f"- {counted(int(commits.sum()), 'run')}: {words}; by commit {by}."
    if dates := sorted(outcome["created"] for outcome in outcomes.values()):
        yield f"- Trees of results: {' to '.join(dict.fromkeys((dates[0], dates[-1])))}."


# --- the details of an experiment ------------------------------------------------------------


def details_of(outcome: Outcome, numbers: pd.DataFrame, conclusions: pd.DataFrame) -> str:
    """Return the page of an experiment: its conclusions and numbers with all figures."""
    name = outcome["sweep"]
    lines = [f"# {name}", "", f"{outcome['complete']} of {outcome['n_runs']} runs are complete; "
             "[all papers](../REPRODUCED.md) has the rules."]  # fmt: skip
    if outcome["changes"]:
        lines += ["", "What ran other than the sweep's file says:", ""]
        lines += [f"- {words}" for words in outcome["changes"]]
    for judged in conclusions[conclusions["experiment"] == name]["judged"]:
        lines += ["", f"## {judged.conclusion.words}", "", *_figures(judged)]
    own = numbers[numbers["experiment"] == name]
    columns = ["data set", "method", "metric", "published", "ours", "any setting", "tied"]
    outside = own[own["state"] == OUTSIDE]
    if len(outside):
        lines += ["", f"## Numbers {OUTSIDE}", "", ANY_SETTING]
    for (cause, words), some in outside.groupby(["cause", "words"], sort=False):
        lines += ["", f"**{str(cause).capitalize()}.** {words}", "", *_table(some[columns])]
    for state, note in ((WITHIN, ""), (OPEN, NO_VERDICT)):
        some = own[own["state"] == state]
        if len(some):
            lines += ["", f"## Numbers {state}", "", *[note, ""] * bool(note)]
            lines += _table(some[columns[:5]])
    return "\n".join([*lines, ""])


def _figures(one: Judged) -> Iterator[str]:
    """Yield the verdict on a conclusion, what was compared, and the means on each data set."""
    said, verdict = one.conclusion, f"**{one.verdict.capitalize()}**"
    cause = f" ({said.cause or 'unknown'})" * (one.verdict == "not reproduced")
    own = [case for case in one.cases if case.dataset]
    summed = one.cases[-1] if said.is_summed and one.cases else None
    if summed:
        held = {
            "total": f"in sum, {summed.first:.4g} and {summed.second:.4g}",
            "average": f"by the mean ratio {summed.first:.4g}",
            "t-test": f"by the paired t-test, p = {summed.first:.2g}",
        }[said.scope]
    else:
        held = f"on {sum(case.holds is True for case in own)} of {counted(len(own), 'data set')}"
        held += f", {said.wins} needed" * bool(said.wins)
    tested = f"{_test(said)}, {held}" if one.cases else ""
    notes = "; ".join(filter(None, (tested, said.untestable * bool(one.cases), one.note)))
    yield f"{verdict}{cause}: {notes}."
    if not own:
        return
    word = {True: "yes", False: "no", None: "open"}
    figures = pd.DataFrame({
        "data set": [case.dataset for case in own],
        "first": [f"{case.first:.4g}" for case in own],
        "second": [f"{case.second:.4g}" for case in own],
        "holds": [word[case.holds] for case in own],
    })  # fmt: skip
    yield from ("", *_table(figures.drop(columns=["holds"] if summed else [])))


def _test(said: Conclusion) -> str:
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


# --- pictures --------------------------------------------------------------------------------


def slug(paper: str) -> str:
    """Return the name of the picture of a paper."""
    return re.sub(r"\W+", "-", paper.rpartition(", ")[2].lower())


def picture(numbers: pd.DataFrame) -> Figure:
    """Draw our numbers against the published ones with both ±; a panel has a metric of several."""
    counts = numbers["metric"].value_counts(sort=False)
    metrics = list(counts[counts >= min(FEWEST_POINTS, counts.max())].index)
    n_columns = min(len(metrics), 3)
    n_rows = -(-len(metrics) // n_columns)
    figure = Figure(figsize=(3.4 * n_columns, 3.4 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for panel, metric in zip(panels, metrics, strict=False):
        _panel(panel, metric, numbers[numbers["metric"] == metric])
    for panel in panels[len(metrics) :]:
        panel.remove()
    return figure


def _panel(panel: Any, metric: str, numbers: pd.DataFrame) -> None:
    """Draw the numbers of a metric: full points within ±, hollow ones outside."""
    scale = 100.0 if metric in PERCENT else 1.0
    for place, (name, own) in enumerate(numbers.groupby("experiment")):
        cells: list[Cell] = list(own["cell"])
        both = [[(one.published.mean, one.published.sd), (one.mean, one.sd)] for one in cells]
        (x, dx), (y, dy) = np.nan_to_num(scale * np.array(both)).transpose(1, 2, 0)
        for ends in (((x - dx, x + dx), (y, y)), ((x, x), (y - dy, y + dy))):
            bars = [np.column_stack([*two, np.full(len(x), np.nan)]).ravel() for two in ends]
            panel.plot(*bars, color="0.75", linewidth=0.6, zorder=1)
        held = (own["state"] == WITHIN).to_numpy()
        points = {"marker": "o", "linestyle": "", "markersize": 3.5, "color": f"C{place}"}
        panel.plot(x[~held], y[~held], **points, markerfacecolor="white", zorder=2)
        panel.plot(x[held], y[held], **points, zorder=2)
        panel.plot([], [], **points, label=name)
    ends = scale * np.array([[one.mean, one.published.mean] for one in numbers["cell"]])
    panel.plot([ends.min(), ends.max()], [ends.min(), ends.max()], color="0.4", linewidth=0.6)
    if metric not in PERCENT:
        panel.set_xscale("log")
        panel.set_yscale("log")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
    unit = " (%)" if metric in PERCENT else ""
    panel.set_title(f"{metric}{unit}".replace("/", " over\n"), fontsize=8)
    panel.set_xlabel("published", fontsize=8)
    panel.set_ylabel("ours", fontsize=8)
    panel.tick_params(labelsize=7)
    panel.legend(fontsize=6, frameon=False, loc="upper left")


def write_picture(file: Path, numbers: pd.DataFrame) -> None:
    """Write the picture of a paper as an SVG file, the same each time."""
    with mpl.rc_context({"svg.hashsalt": file.stem, "svg.fonttype": "none"}):
        picture(numbers).savefig(file, metadata={"Date": None, "Creator": None})
    text = re.sub(r"(\d\.\d\d)\d{3,}", r"\1", file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")


# --- the command -----------------------------------------------------------------------------


def write(page: Path, folder: Path, papers: Papers, given: Iterable[Results]) -> None:
    """Write the page, details and pictures, and in ``outcomes`` of a folder what results say."""
    if page.exists() and not page.read_text(encoding="utf-8").startswith(HEADING):
        raise ValueError(f"{page}: found a file that is no such page; expected a new file")
    files, outcomes = sweep_files(), read_outcomes(folder / OUTCOMES)
    read: dict[str, Outcome] = {}
    for one in given:
        if one.sweep in read:
            raise ValueError(f"{one.folder}: found a second result of {one.sweep}; expected one")
        file = files.get(one.sweep)
        read[one.sweep] = outcome_of(one, papers.published, papers.conclusions, file)
    outcomes |= read
    if not outcomes:
        raise ValueError(f"found no results, and no outcome in {folder / OUTCOMES}")
    for outcome in read.values():
        write_outcome(folder / OUTCOMES, outcome)
    details = page.parent / "reproduced"
    details.mkdir(exist_ok=True)
    page.write_text(page_of(outcomes, papers), encoding="utf-8")
    numbers, conclusions = numbers_of(outcomes, papers), conclusions_of(outcomes, papers)
    for name, outcome in outcomes.items():
        text = details_of(outcome, numbers, conclusions)
        (details / f"{name}.md").write_text(text, encoding="utf-8")
    for paper, own in numbers.groupby("paper"):
        write_picture(details / f"{slug(str(paper))}.svg", own)


def main(words: Sequence[str] | None = None) -> None:
    """Write what is reproduced, of results and of the outcomes of earlier ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", nargs="*", help="folders of results of the papers' sweeps")
    parser.add_argument("--page", type=Path, default=HERE / "REPRODUCED.md", metavar="FILE",
                        help="the page; details are in reproduced beside it")  # fmt: skip
    parser.add_argument("--published", type=Path, default=HERE / "published", metavar="FOLDER",
                        help="the papers' numbers and conclusions, and the outcomes")  # fmt: skip
    given = parser.parse_args(words)
    try:
        papers = Papers.read(given.published)
        write(given.page, given.published, papers, map(Results, given.results))
    except (ValueError, OSError, MkldistError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
