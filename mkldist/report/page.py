"""The page of the report: its sections in order, and the file they are written to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from mkldist.analysis.comparison import ranks_of
from mkldist.durable import check_free, make_folder, write_file, writing
from mkldist.report.charts import Chart
from mkldist.report.comparison_words import SIZES_SHARE
from mkldist.report.curves import (
    bank_size_charts,
    convergence_charts,
    kernel_number_charts,
    learning_charts,
    scaling_charts,
)
from mkldist.report.facts import Facts
from mkldist.report.loss_figures import objective_charts, path_charts, rank_chart
from mkldist.report.optimism import optimism_charts, optimism_of, optimism_table
from mkldist.report.page_target import origin_of
from mkldist.report.scaling_study import exponents_table, growth_cautions
from mkldist.report.tables import (
    Table,
    certificates_table,
    chosen_table,
    failures_table,
    over_table,
    pairs_table,
    results_table,
    stability_table,
)
from mkldist.report.weight_figures import weight_charts
from mkldist.report.words import Caution, cautions, headline
from mkldist.results.newest import others_words
from mkldist.spec.values import toml_text

TEMPLATE = "page.html.jinja"
NO_FIGURES = "This page has no figures: pip install 'mkldist[figures]' installs what draws them."


@dataclass(frozen=True, eq=False)
class Section:
    """One section of the page.

    Parameters
    ----------
    name : str
        Name of its element.
    title : str
        Heading.
    text : str
        Sentences below the heading.
    tables : list of Table
        Its tables.
    charts : list of Chart
        Its figures.
    cautions : list of Caution
        What to beware of.
    code : str
        Text set as it is, such as a file.
    """

    name: str
    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    cautions: Sequence[Caution] = ()
    code: str = ""

    @property
    def is_empty(self) -> bool:
        """True if the sweep has nothing to show here."""
        return not (any(t.rows for t in self.tables) or self.charts or self.cautions or self.code)


@dataclass(frozen=True, eq=False)
class Page:
    """A report.

    Parameters
    ----------
    title, description : str
        Name and description of the sweep.
    headline : list of str
        Three sentences.
    note : str
        What the page lacks, and how to have it.
    left_out : str
        How many recorded runs are left out.
    sections : list of Section
        What follows, in order, without empty sections.
    origin : str
        What tells the results from others, by :func:`mkldist.report.page_target.origin_of`.
    """

    title: str
    description: str
    headline: list[str]
    note: str = ""
    left_out: str = ""
    sections: list[Section] = field(default_factory=list)
    origin: str = ""

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
    """Write the report of a sweep to an HTML file, and its figures to a folder.

    Parameters
    ----------
    results : Path
        The sweep's output folder, or the ``results.zarr`` in it; the sweep may be running.
    page : Path
        The file.
    figures : Path, optional
        Folder for each figure as PDF, SVG, PNG and CSV, and each table as CSV.
    overwrite : bool, optional
        Replace files that are in this folder.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    mkldist.errors.OutputError
        If a file cannot be written, or one of a figure or table is there: nothing is written then.
    """
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
    """Return the report of a sweep, without figures where matplotlib is not installed."""
    drawn = find_spec("matplotlib") is not None
    sections = [
        _certificates(facts),
        _results(facts),
        _comparison(facts),
        _settings(facts),
        _optimism(facts),
        Section(
            "paths",
            "Along the hyperparameters",
            charts=[*path_charts(facts), *objective_charts(facts)],
        ),
        _weights(facts),
        Section(
            "kernel-numbers",
            "Accuracy against number of kernels",
            charts=[*kernel_number_charts(facts), *bank_size_charts(facts)],
        ),
        Section("learning", "Learning curves", charts=learning_charts(facts)),
        Section("convergence", "Convergence", charts=convergence_charts(facts)),
        _time(facts),
        _failures(facts),
        *_provenance(facts),
    ]
    if not drawn:
        sections = [replace(section, charts=()) for section in sections]
    return Page(
        title=facts.status.name,
        description=str(facts.tree.attrs.get("description", "")),
        headline=headline(facts),
        note="" if drawn else NO_FIGURES,
        left_out=others_words(facts.status.others),
        sections=[section for section in sections if not section.is_empty],
    )


def _certificates(facts: Facts) -> Section:
    return Section(
        "certificates",
        "Certificates",
        "Each run returns its objective and a lower bound of the optimum; their relative distance "
        "is the duality gap. Where the problem is not convex, a stationarity takes its place. "
        "Rows with runs that failed or stopped before their tolerance are "
        "marked.",
        [certificates_table(facts)],
    )


def _results(facts: Facts) -> Section:
    chosen = "validation error" if facts.validated else "loss on the test parts"
    return Section(
        "results",
        "Results",
        f"Means over the splits ± one standard deviation. The marked rows have the least mean loss "
        f"of their data set, of those that lack no split; settings are chosen by {chosen} "
        f"elsewhere on this page. Kernels are those of more than 0.001 of the largest weight.",
        [results_table(facts)],
    )


def _comparison(facts: Facts) -> Section:
    tables = [pairs_table(facts.pairs)]
    over = ranks_of(facts.compared) if len(facts.datasets) > 1 else None
    text = (
        "Training parts overlap, so plain t-tests are too sure of themselves. The p-values are of "
        "the corrected resampled t-test (Nadeau & Bengio 2003), with Holm's correction over the "
        "pairs of a data set; the probabilities are of the Bayesian correlated t-test with a "
        "region of practical equivalence of 0.01 of an error, or 1 % of another loss (Benavoli et "
        "al. 2017). A pair of equal differences on all splits has no test. Marked pairs differ at "
        "the level 0.05."
    )
    if len(facts.series) < len(facts.compared):
        text += f" {SIZES_SHARE}"
    charts = []
    if over is not None:
        text += (
            f" Over {len(over.losses)} data sets, pairs are compared by Wilcoxon's signed-rank "
            "test with Holm's correction. Fewer than six data sets cannot make it significant."
        )
        if over.left_out:
            text += f" Left out, for want of a split or a data set: {', '.join(over.left_out)}."
        tables.append(over_table(over))
        charts = [chart for chart in [rank_chart(over, facts)] if chart]
    return Section("comparison", "Comparison of methods", text, tables, charts)


def _settings(facts: Facts) -> Section:
    table = chosen_table(facts)
    return Section(
        "settings",
        "Chosen settings and warnings",
        "",
        [table] if table else [],
        cautions=cautions(facts),
    )


def _optimism(facts: Facts) -> Section:
    found = optimism_of(facts)
    return Section(
        "optimism",
        "Optimism of the selection",
        "The loss of a selected setting on the inner folds is the least of many, and so too low on "
        "average; its loss on the test part, which took no part in the selection, is not (Varma & "
        "Simon 2006; Cawley & Talbot 2010). Their difference is the optimism, with an interval "
        "corrected for overlapping training parts; rows whose interval leaves out 0 are marked. "
        "Machines on inner folds have fewer training points, which raises the loss there. The "
        "second rule takes the sparsest setting within one standard error of the least loss. The "
        "least test loss is that of the best setting on the test part, which nobody can select.",
        [optimism_table(found)],
        optimism_charts(found, facts),
    )


def _weights(facts: Facts) -> Section:
    return Section(
        "weights",
        "Kernel weights",
        "At each method's chosen setting. Stability is 1 if all splits select the same kernels and "
        "0 if they agree as by chance (Nogueira et al. 2018).",
        [stability_table(facts.stability)],
        weight_charts(facts),
    )


def _time(facts: Facts) -> Section:
    found = [growth for growth in facts.growths if not growth.fits.empty]
    return Section(
        "time",
        "Time",
        "Fits of seconds = a size^k, with the other size held fixed. The shares are of the seconds "
        "of a split: the build of its bank, once, and the passes and solvers of all settings. "
        "Marked rows have runs that stopped before their tolerance.",
        [exponents_table(growth) for growth in found],
        scaling_charts(facts),
        growth_cautions(found),
    )


def _failures(facts: Facts) -> Section:
    return Section(
        "failures",
        "Failed runs",
        "The command below repeats them; give it the same options as before, such as --set.",
        [failures_table(facts)],
        code=facts.retry_command if facts.status.failed else "",
    )


def _provenance(facts: Facts) -> list[Section]:
    return [
        Section("provenance", "Provenance", code=json.dumps(facts.provenance, indent=2)),
        Section(
            "sweep-file",
            "The sweep file, without values that are defaults",
            code=toml_text(facts.spec),
        ),
    ]
