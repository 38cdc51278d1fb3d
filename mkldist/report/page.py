"""The page of the report: its sections in order, and the file they are written to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.analysis.losses import ranks_of
from mkldist.core.durable import check_free, make_folder, write_file, writing
from mkldist.report.answer import answers_of, answers_table
from mkldist.report.charts import Chart
from mkldist.report.comparison_words import SIZES_SHARE
from mkldist.report.explanation_chart import explanation_chart
from mkldist.report.explanation_words import answers, explanation_table, warnings
from mkldist.report.facts import Facts, records
from mkldist.report.optimism import bias_of_selection, optimism_charts, optimism_table
from mkldist.report.page_target import origin_of
from mkldist.report.scaling_study import exponents_table, growth_cautions
from mkldist.report.sweep_charts import (
    MOST,
    bank_size_charts,
    convergence_charts,
    kernel_number_charts,
    learning_charts,
    objective_charts,
    path_charts,
    prediction_charts,
    rank_chart,
    scaling_charts,
    weight_charts,
)
from mkldist.report.tables import (
    Table,
    certificates_table,
    chosen_table,
    confusion_table,
    data_table,
    failures_table,
    over_table,
    pairs_table,
    results_table,
    stability_table,
)
from mkldist.report.words import Caution, cautions, headline
from mkldist.results.status import others_words
from mkldist.spec.toml_texts import toml_text

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.analysis.explanation import Explanation

TEMPLATE = "page.html.jinja"
NO_FIGURES = "This page has no figures: pip install 'mkldist[figures]' installs what draws them."


@dataclass(frozen=True, eq=False)
class Section:
    """One section of the page."""

    name: str  # Name of its element
    title: str  # Heading
    text: str = ""  # Sentences below the heading
    tables: Sequence[Table] = ()  # Its tables
    charts: Sequence[Chart] = ()  # Its figures
    cautions: Sequence[Caution] = ()  # What to beware of
    code: str = ""  # Text set as it is, such as a file
    folded: bool = False  # True if the page shows its heading alone, until a reader opens it

    @property
    def is_empty(self) -> bool:
        """True if the sweep has nothing to show here."""
        return not (any(t.rows for t in self.tables) or self.charts or self.cautions or self.code)


@dataclass(frozen=True, eq=False)
class Page:
    """A report."""

    title: str  # Name and description of the sweep
    description: str
    headline: list[str]  # Three sentences
    note: str = ""  # What the page lacks, and how to have it
    left_out: str = ""  # How many recorded runs are left out
    # What follows, in order, without empty sections
    sections: list[Section] = field(default_factory=list)
    origin: str = ""  # What tells the results from others, by origin_of

    @property
    def charts(self) -> list[Chart]:
        """All figures."""
        return [chart for section in self.sections for chart in section.charts]

    @property
    def tables(self) -> list[Table]:
        """All tables with rows."""
        return [table for section in self.sections for table in section.tables if table.rows]

    def files(self, folder: Path) -> list[Path]:
        """Return the files of all figures and tables in a folder."""
        drawn = [file for chart in self.charts for file in chart.files(folder)]
        return [*drawn, *(table.file(folder) for table in self.tables)]

    def html(self) -> str:
        """Return the page, which needs no other file."""
        from jinja2 import Environment, StrictUndefined

        room = files("mkldist.report")
        environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                                  lstrip_blocks=True)  # fmt: skip
        template = environment.from_string((room / TEMPLATE).read_text(encoding="utf-8"))
        style, script = (
            (room / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
        )
        return template.render(page=self, style=style, script=script)


def write_report(
    results: Path, page: Path, figures: Path | None = None, *, overwrite: bool = False
) -> Page:
    """Write the report of a sweep to an HTML file, and its figures to a folder."""
    report = replace(made_page(Facts.of(results)), origin=origin_of(results))
    for file in report.files(figures) if figures is not None else ():
        check_free(file, overwrite=overwrite)
    with writing(page):
        write_file(page, [report.html().encode()])
    if figures is not None:
        with writing(figures):
            make_folder(figures)
            for chart in report.charts:
                chart.write(figures)
            for table in report.tables:
                table.write(figures)
    return report


def made_page(facts: Facts) -> Page:
    """Return the report of a sweep, without figures where matplotlib is not installed.

    What a reader asks first comes first: the answer and its limits, then results and comparisons.
    Certificates and provenance, which prove it, are folded.
    """
    drawn = find_spec("matplotlib") is not None
    found, best = bias_of_selection(facts), answers_of(facts)
    sections = [
        Section("answer", "The answer", tables=[answers_table(best)]),
        Section("data", "The data", tables=[data_table(facts)]),
        _predictions(facts, best),
        _explanation(facts),
        Section("warnings", "What to beware of", cautions=cautions(facts)),
        _failures(facts),
        Section("results", "Results", tables=[results_table(facts)]),
        _comparison(facts),
        Section(
            "optimism",
            "Optimism of the selection",
            tables=[optimism_table(found)],
            charts=optimism_charts(found, facts),
        ),
        Section(
            "paths",
            "Along the hyperparameters",
            charts=[*path_charts(facts), *objective_charts(facts)],
        ),
        Section(
            "weights",
            "Kernel weights",
            tables=[stability_table(facts.stability)],
            charts=weight_charts(facts),
        ),
        Section(
            "kernel-numbers",
            "Accuracy against number of kernels",
            charts=[*kernel_number_charts(facts), *bank_size_charts(facts)],
        ),
        Section("learning", "Learning curves", charts=learning_charts(facts)),
        Section("convergence", "Convergence", charts=convergence_charts(facts)),
        _time(facts),
        *_proofs(facts),
    ]
    if not drawn:
        sections = [replace(section, charts=()) for section in sections]
    return Page(
        title=facts.status.name,
        description=str(facts.tree.attrs.get("description", "")),
        headline=headline(facts, best),
        note="" if drawn else NO_FIGURES,
        left_out=others_words(facts.status.others),
        sections=[section for section in sections if not section.is_empty],
    )


def _predictions(facts: Facts, best: pd.DataFrame) -> Section:
    """Return what the best method of each data set predicts right and wrong."""
    sides = [facts.chosen(row["dataset"], row["name"]) for row in records(best.head(MOST))]
    tables = [table for side in sides if (table := confusion_table(side)) is not None]
    charts = [
        chart
        for side in sides
        for chart in prediction_charts(side, facts.looks[side.place["method"]])
    ]
    return Section("predictions", "Predictions of the best method", tables=tables, charts=charts)


def _explanation(facts: Facts) -> Section:
    found = facts.explanations
    return Section(
        "explanation",
        "What the decision rests on",
        " ".join(words for one in found for words in (*warnings(one), *_named(one))),
        [explanation_table(found)] if found else [],
        [explanation_chart(one) for one in found if one.shares],
    )


def _named(one: Explanation) -> list[str]:
    """Return what carries the decision of a method, after its name; nothing without such words."""
    said = answers(one)
    return [f"{one.dataset}, {one.method}.", *said] if said else []


def _comparison(facts: Facts) -> Section:
    tables = [pairs_table(facts.pairs)]
    over = ranks_of(facts.compared) if len(facts.datasets) > 1 else None
    charts = []
    if over is not None:
        tables.append(over_table(over))
        charts = [chart for chart in [rank_chart(over, facts)] if chart]
    text = SIZES_SHARE if len(facts.series) < len(facts.compared) else ""
    return Section("comparison", "Comparison of methods", text, tables, charts)


def _time(facts: Facts) -> Section:
    found = [growth for growth in facts.growths if not growth.fits.empty]
    return Section(
        "time",
        "Time",
        "Fits of seconds = a size^k, with the other size held fixed. The shares are of the seconds "
        "of a split: the build of its bank, once, and the passes and solvers of all settings.",
        [exponents_table(growth) for growth in found],
        scaling_charts(facts),
        growth_cautions(found),
    )


def _failures(facts: Facts) -> Section:
    return Section(
        "failures",
        "Failed runs",
        tables=[failures_table(facts)],
        code=facts.retry_command if facts.status.failed else "",
    )


def _proofs(facts: Facts) -> list[Section]:
    """Return what proves the results and allows to repeat them, folded."""
    chosen = chosen_table(facts)
    parts = [
        Section("certificates", "Certificates", tables=[certificates_table(facts)]),
        Section("settings", "Chosen settings", tables=[chosen] if chosen else []),
        Section("provenance", "Provenance", code=json.dumps(facts.provenance, indent=2)),
        Section(
            "sweep-file",
            "The sweep file, without values that are defaults",
            code=toml_text(facts.spec),
        ),
    ]
    return [replace(part, folded=True) for part in parts]
