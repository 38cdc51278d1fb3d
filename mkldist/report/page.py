"""The page of the report: its sections in order, and the file they are written to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from mkldist.analysis.losses import ranks_of
from mkldist.core.durable import check_apart, check_free, make_folder, write_file, writing
from mkldist.errors import OutputError, ending_words
from mkldist.report.charts import (
    MOST,
    Chart,
    bank_size_charts,
    convergence_charts,
    explanation_chart,
    kernel_number_charts,
    learning_charts,
    objective_charts,
    path_charts,
    prediction_charts,
    rank_chart,
    weight_charts,
)
from mkldist.report.scaling import charts_of, exponents_table, growth_cautions
from mkldist.report.sentences import (
    SIZES_SHARE,
    Caution,
    Facts,
    answers_of,
    cautions,
    headline,
    origin_of,
    records,
    warnings,
)
from mkldist.report.tables import (
    Table,
    answers_table,
    certificates_table,
    chosen_table,
    confusion_table,
    data_table,
    explanation_table,
    failures_table,
    over_table,
    pairs_table,
    results_tables,
    stability_table,
)
from mkldist.results.folder import inputs_of
from mkldist.results.status import others_words
from mkldist.spec.kinds import toml_text

NO_FIGURES = "This page has no figures: pip install 'mkldist[figures]' installs what draws them."


@dataclass(frozen=True, eq=False)
class Section:
    """One section of the page; it shows its heading alone until a reader opens it, if `folded`."""

    name: str  # of its element
    title: str
    text: str = ""  # sentences below the heading
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    cautions: Sequence[Caution] = ()
    code: str = ""  # text set as it is, such as a file
    folded: bool = False

    @property
    def is_empty(self) -> bool:
        """True if the sweep has nothing to show here."""
        return not (any(t.rows for t in self.tables) or self.charts or self.cautions or self.code)


@dataclass(frozen=True, eq=False)
class Page:
    """A report."""

    title: str
    description: str
    headline: list[str]
    note: str = ""  # what the page lacks, and how to have it
    left_out: str = ""  # how many recorded runs are left out
    sections: Sequence[Section] = ()  # in order, without empty ones
    origin: str = ""  # what tells the results from others

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
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("mkldist.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        return environment.get_template("page.html.j2").render(page=self)


def write_report(
    results: Path, page: Path, figures: Path | None = None, *, overwrite: bool = False
) -> Page:
    """Write the report of a sweep, which may be running, to an HTML file.

    A folder takes each figure as PDF, SVG, PNG and CSV, and each table as CSV.  If one of these
    files is there or cannot be written, an error says so and nothing is written.
    """
    report = replace(made_page(Facts.of(results)), origin=origin_of(results))
    inputs = inputs_of(results)
    check_free(page, overwrite=True, inputs=inputs)
    for file in report.files(figures) if figures is not None else ():
        check_free(file, overwrite=overwrite, inputs=inputs)
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
    """Return the report of a sweep, without figures where matplotlib is not installed."""
    drawn, best = find_spec("matplotlib") is not None, answers_of(facts)
    sides = [facts.chosen(row["dataset"], row["name"]) for row in records(best.head(MOST))]
    explained = facts.explanations
    text = [words for one in explained for words in warnings(one)]
    over = ranks_of(facts.compared) if len(facts.datasets) > 1 else None
    ranks = rank_chart(over, facts) if over is not None else None
    growths = [growth for growth in facts.growths if not growth.fits.empty]
    chosen = chosen_table(facts)
    sections = [
        Section("answer", "The answer", tables=[answers_table(best)]),
        Section("data", "The data", tables=[data_table(facts)]),
        Section(
            "predictions", "Predictions of the best method",
            tables=[table for side in sides if (table := confusion_table(side)) is not None],
            charts=[chart for side in sides
                    for chart in prediction_charts(side, facts.looks[side.place["method"]])],
        ),
        Section(
            "explanation", "What the decision rests on", " ".join(text),
            [explanation_table(explained)] if explained else [],
            [explanation_chart(one) for one in explained if one.shares],
        ),
        Section("warnings", "What to beware of", cautions=cautions(facts)),
        Section(
            "failures", "Failed runs", tables=[failures_table(facts)],
            code=facts.retry_command if facts.status.failed else "",
        ),
        Section("results", "Results", tables=results_tables(facts)),
        Section(
            "comparison", "Comparison of methods",
            SIZES_SHARE * (len(facts.series) < len(facts.compared)),
            [pairs_table(facts.pairs), *([over_table(over)] if over is not None else [])],
            [ranks] if ranks is not None else [],
        ),
        Section("paths", "Along the hyperparameters",
                charts=[*path_charts(facts), *objective_charts(facts)]),
        Section("weights", "Kernel weights", tables=[stability_table(facts.stability)],
                charts=weight_charts(facts)),
        Section("kernel-numbers", "Accuracy against number of kernels",
                charts=[*kernel_number_charts(facts), *bank_size_charts(facts)]),
        Section("learning", "Learning curves", charts=learning_charts(facts)),
        Section("convergence", "Convergence", charts=convergence_charts(facts)),
        Section(
            "time", "Time",
            "With the other size held fixed. The build of a bank counts once for a split, passes "
            "and solvers of all settings.",
            [exponents_table(growth) for growth in growths],
            [chart for growth in growths for chart in charts_of(growth, facts.looks, MOST)],
            growth_cautions(growths),
        ),
        Section("certificates", "Certificates", tables=[certificates_table(facts)], folded=True),
        Section("settings", "Chosen settings", tables=[chosen] if chosen else [], folded=True),
        Section("provenance", "Provenance", code=json.dumps(facts.provenance, indent=2),
                folded=True),
        Section("sweep-file", "The sweep file, without values that are defaults",
                code=toml_text(facts.spec), folded=True),
    ]  # fmt: skip
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


# The file: no other file of the user is replaced.

ENDINGS = (".html", ".htm")
ORIGIN = '<meta name="mkldist-results" content="'
"""Start of the line of the template that tells of which results a page is."""
HEAD = 2000  # bytes of a file in which this line stands


def check_name(page: Path) -> None:
    """Refuse a folder, and a name that is not of a page."""
    if page.is_dir():
        hint = f"Write {page / 'report.html'}"
        raise OutputError(str(page), "a folder", "the name of a file, the page", hint)
    if page.suffix.casefold() not in ENDINGS:
        ending = ending_words(page.suffix)
        raise OutputError(str(page), ending, f"a name ending in {' or '.join(ENDINGS)}")


def check_target(page: Path, results: Path, *, overwrite: bool = False) -> None:
    """Refuse what :func:`check_name` does, and a file other than a page of the results."""
    check_name(page)
    check_apart(page, inputs_of(results))
    head = b""
    with suppress(OSError), page.open("rb") as stream:
        head = stream.read(HEAD)
    if page.exists() and not overwrite and f'{ORIGIN}{origin_of(results)}"'.encode() not in head:
        hint = "Choose another name with -o, or replace the file by --overwrite"
        raise OutputError(str(page), "another file", f"a new one, or a page of {results}", hint)
