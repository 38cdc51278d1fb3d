"""The page in a browser, its sections and facts, and which files it may replace."""

import json
import re
import shutil
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mkldist.errors import OutputError, StoreError
from mkldist.report.charts import (
    convergence_charts,
    learning_charts,
    loss_units,
    objective_charts,
    path_charts,
    weight_charts,
)
from mkldist.report.page import HEAD, ORIGIN, Page, Section, check_target, made_page
from mkldist.report.sentences import Facts, origin_of, records
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.schema import RunState
from mkldist.results.tree import open_results
from tests.analysis.studies import study
from tests.report.made_up import N_SPLITS, facts_of, parts, study_of
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.variants import quick

COLUMN = 3.5  # inches, of a paper in two columns
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


class Parts(HTMLParser):
    """Elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def page(facts) -> Page:
    return made_page(facts)


@pytest.fixture(scope="module")
def html(page) -> str:
    return page.html()


@pytest.mark.slow
def test_sections_come_in_the_order_of_their_weight(page):
    names = [section.name for section in page.sections]
    assert names == [
        "answer", "explanation", "warnings", "failures", "results", "comparison", "paths",
        "weights", "kernel-numbers", "certificates", "provenance", "sweep-file",
    ]  # fmt: skip
    folded = [section.name for section in page.sections if section.folded]
    assert folded == ["certificates", "provenance", "sweep-file"]
    assert len(page.headline) == 4


def test_the_page_needs_no_other_file(html):
    parts = Parts(html)
    for tag, attributes in parts.found:
        for name in ("src", "href", "xlink:href"):
            target = attributes.get(name) or "#"
            assert target.startswith("#"), (tag, target)
    assert not re.search(r"url\(\s*['\"]?(?!#)", html)
    assert "@import" not in html
    assert len(html) < 1_000_000


def test_ids_are_unique_and_figures_have_names(html, page):
    parts = Parts(html)
    ids = [attributes["id"] for _, attributes in parts.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = {svg.get("aria-labelledby") for svg in parts.of("svg")}
    assert named == {f"{chart.name}-title" for chart in page.charts}
    assert named <= set(ids)


def test_what_users_wrote_is_text_and_no_markup(html):
    assert "no memory for &lt;b&gt;17&lt;/b&gt; matrices" in html
    assert "<b>17</b>" not in html


def test_the_sweep_file_is_in_the_page(page, facts):
    (section,) = [section for section in page.sections if section.name == "sweep-file"]
    assert tomllib.loads(section.code) == facts.spec
    assert "without values that are defaults" in section.title


def test_cells_sort_by_six_digits_of_their_numbers(html, page):
    (table,) = [table for table in page.tables if table.name == "results"]
    keys = [cell.key for row in table.rows for cell in row if cell.key is not None]
    own = html[html.index('<table id="table-results"') :]
    written = re.findall(r'data-key="([^"]*)"', own[: own.index("</table>")])
    assert [float(key) for key in written] == pytest.approx(keys, rel=1e-5)
    assert max(map(len, written)) <= len("-1.23456e-10")


def test_a_figure_draws_its_data(finished):
    (chart,) = path_charts(finished)
    level = chart.data[chart.data["method"] == "level"]
    expected = finished.summary[finished.summary["method"] == "level"].set_index("C")
    pd.testing.assert_series_equal(
        level.set_index("C")["mean"], expected["test_error_mean"], check_names=False
    )
    root = ET.fromstring(chart.svg())
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"level", "simplemkl", "C", "test error"} <= texts
    assert "currentColor" in chart.svg()


def all_charts(facts):
    return made_page(facts).charts


some_charts_and_all = pytest.mark.parametrize("charts_of", quick([path_charts, all_charts]))


@some_charts_and_all
def test_ids_of_a_figure_are_those_that_it_refers_to(finished, charts_of):
    for chart in charts_of(finished):
        svg = chart.svg()
        ids = re.findall(r' id="([^"]+)"', svg)
        assert set(ids) >= set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
        assert all(one.startswith(f"{chart.name}-") for one in ids)


@some_charts_and_all
def test_letters_are_legible_in_print(finished, charts_of):
    for chart in charts_of(finished):
        svg = chart.svg()
        (width,) = re.findall(r'viewBox="0 0 ([\d.]+) ', svg)
        assert float(width) <= 72 * COLUMN
        sizes = [float(size) for size in re.findall(r"font:[^;\"]*?([\d.]+)px", svg)]
        sizes += [float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)]
        assert sizes
        assert min(sizes) >= 7.0


def test_figures_of_weights_sum_to_the_weights(finished):
    for chart in weight_charts(finished):
        sums = chart.data.groupby("method")["share"].sum()
        assert sums.to_numpy() == pytest.approx(1.0)


def test_of_several_banks_the_figures_of_weights_show_the_largest():
    facts = facts_of(study((100, 300)))
    banks = [
        ({"dataset": "ring", "bank": bank, "method": "level"}, weights_on(n_kernels))
        for bank, n_kernels in (("small", 4), ("large", 6))
    ]
    facts.__dict__.update(weights=banks)
    (chart,) = weight_charts(facts)
    assert chart.name == "widths-ring"
    assert chart.data["share"].sum() == pytest.approx(1.0)
    assert chart.caption.endswith("Of 2 banks, the one of most kernels is shown, large.")
    assert chart.svg()
    assert len(chart.data) == 6


def test_widths_on_groups_have_a_line_a_group_of_the_method_that_validation_ranks_first():
    facts = facts_of(study((100, 300)))
    groups = ["one", "one", "two", "two"]
    grouped = weights_on(4).assign_coords(feature_group=("kernel", groups))
    places = [{"dataset": "ring", "bank": "b", "method": name} for name in ("first", "second")]
    losses = [{"validation_error_mean": 0.2, "test_error_mean": 0.1},
              {"validation_error_mean": 0.1, "test_error_mean": 0.2}]  # fmt: skip
    ranked = [{"metric": "error", **p, **own} for p, own in zip(places, losses, strict=True)]
    facts.__dict__.update(weights=[(place, grouped) for place in places], ranked=ranked)
    (widths,) = weight_charts(facts)
    assert widths.caption.count("splits of second") == 1
    lines = widths.draw().axes[0].lines
    assert [line.get_label() for line in lines] == ["one", "two"]
    assert [len(line.get_xdata()) for line in lines] == [2, 2]


def test_figures_of_weights_show_how_often_splits_select_where_there_are_several():
    facts = facts_of(study((100, 300)))
    weights = weights_on(4)
    for n_splits, n_panels in ((1, 1), (3, 2)):
        place = {"dataset": "ring", "bank": "b", "method": "level"}
        facts.__dict__.update(weights=[(place, weights.isel(split=slice(n_splits)))])
        for chart in weight_charts(facts):
            shares, *frequencies = chart.draw().axes
            assert len(frequencies) == n_panels - 1
            assert ("share of the splits" in chart.caption) == (n_panels == 2)
            assert shares.lines[0].get_ydata().sum() == pytest.approx(1.0)
            for axes in frequencies:  # all kernels weigh the same, so that every split selects all
                assert set(axes.lines[0].get_ydata()) == {1.0}


def weights_on(n_kernels: int) -> xr.DataArray:
    """Return equal weights on kernels of different widths, on two groups of features."""
    number = np.arange(n_kernels)
    along = {"width": 1.0 + number, "features": np.array(["a", "b"], object)[number % 2]}
    coordinates = {name: ("kernel", values) for name, values in along.items()}
    return xr.DataArray(np.full((3, n_kernels), 1 / n_kernels), coordinates, ("split", "kernel"))


def test_a_sweep_without_traces_or_sizes_has_no_such_figures(finished):
    assert convergence_charts(finished) == []
    assert finished.growths == []
    assert learning_charts(finished) == []


def test_objectives_along_C_are_of_one_bank_and_of_methods_of_one_problem(tmp_path):
    C = {"C": [1.0, 10.0]}
    grids = {"level": C, "simplemkl": C, "uniform": C, "lp_mkl": {**C, "norm": [2.0, 4.0]}}
    plan = made_up_plan(grids, banks=("few", "many"), n_splits=N_SPLITS)
    Journal(tmp_path / "records.journal").append([made_up_record(run) for run in plan.runs])
    made = replace(made_up_facts(plan, grids), splits={"heart": parts()})
    lay_out(tmp_path, plan, made)
    facts = facts_of(open_results(tmp_path))
    (chart,) = objective_charts(facts)
    assert set(chart.data["method"]) == {"level", "simplemkl"}
    assert chart.data["bank"].nunique() == 1
    runs = facts.runs[facts.runs["bank"] == chart.data["bank"].iloc[0]]
    for row in chart.data.to_dict("records"):
        some = runs[(runs["method"] == row["method"]) & (runs["C"] == row["C"])]
        assert row["objective"] == pytest.approx(np.mean(some["objective"]))
        assert row["lower_bound"] <= row["objective"]
    assert "objective" in chart.svg()


def test_failed_runs_come_with_the_command_that_repeats_them(page):
    (section,) = [section for section in page.sections if section.name == "failures"]
    assert section.code == "mkldist sweep made-up.toml --retry-failed"


@pytest.mark.slow
def test_figures_are_written_in_every_format(finished, tmp_path):
    chart = path_charts(finished)[0]
    chart.write(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".pdf", ".svg", ".png", ".csv"}
    written = pd.read_csv(tmp_path / f"{chart.name}.csv")
    assert list(written.columns) == [
        "dataset", "bank", "method", "C (1)", "loss", "mean (1)", "sd (1)",
    ]  # fmt: skip
    assert len(written) == len(chart.data)


def test_the_data_of_every_figure_say_the_units_of_their_numbers(finished):
    for chart in [*made_page(finished).charts, *study_of(study((100, 300))).charts]:
        table = chart.table()
        for name, column in table.items():
            assert name.endswith(")") == pd.api.types.is_numeric_dtype(column), (chart.name, name)
        for name in ("seconds", "split_seconds"):
            assert (name in chart.data) == (f"{name} (s)" in table)


def test_losses_of_real_values_are_in_units_of_the_labels():
    assert loss_units("rmse", "mean", "sd") == dict.fromkeys(("mean", "sd"), "units of the labels")
    assert loss_units("test_error", "mean", "sd") == {}


def test_without_matplotlib_the_page_says_what_it_lacks(facts, monkeypatch):
    import mkldist.report.page as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    page = made_page(facts)
    assert page.charts == []
    assert "pip install 'mkldist[figures]'" in page.note
    assert "mkldist[figures]" in page.html()


def test_an_empty_section_is_known_as_empty():
    assert Section("x", "X", "Words alone.").is_empty
    assert not Section("x", "X", code="{}").is_empty


CHECK = """
<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("load", () => {
  const table = document.getElementById("table-results");
  const tools = document.querySelector('[data-table="results"]');
  const column = 2;
  const button = table.tHead.rows[0].cells[column].querySelector("button");
  const keys = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[column].dataset.key));
  button.click();
  const up = keys().every((key, i, all) => i === 0 || all[i - 1] <= key);
  button.click();
  const down = keys().every((key, i, all) => i === 0 || all[i - 1] >= key);
  const search = tools.querySelector("input[type=search]");
  search.value = "heart uniform";
  search.dispatchEvent(new Event("input"));
  const left = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
  const box = tools.querySelector('[data-column="1"]');
  box.click();
  const hidden = table.rows[1].cells[1].hidden;
  const drawn = [...document.querySelectorAll("figure svg")]
    .every((svg) => svg.getBoundingClientRect().height > 50);
  const requests = performance.getEntriesByType("resource").length;
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  search.value = "";
  search.dispatchEvent(new Event("input"));
  box.click();
  const loss = table.rows[1].cells[column].getBoundingClientRect().right <= innerWidth;
  const said = { errors, loss, up, down, left, hidden, drawn, requests, wide };
  document.title = "CHECK" + JSON.stringify(said) + "END";
});
</script>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's package chromium")
@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_sorts_filters_hides_and_asks_for_nothing(html, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_text(html.replace("</body>", f"{CHECK}</body>"))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
         f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom",
         path.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    found = json.loads(re.search(r"CHECK(.*?)END", done.stdout).group(1).replace("&quot;", '"'))
    assert found == {
        "errors": [], "up": True, "down": True, "left": 1, "hidden": True, "drawn": True,
        "requests": 0, "wide": 0, "loss": True,
    }  # fmt: skip


def test_counts_are_those_of_the_results(facts):
    assert facts.count(RunState.FAILED) == 1
    assert facts.count(RunState.WAITING) == 2
    complete = [row for row in records(facts.runs) if row["state"] == "complete"]
    assert facts.count(RunState.COMPLETE) == len(complete)
    assert facts.status.n_runs == len(facts.runs)


@pytest.mark.slow
def test_a_record_that_is_lost_leaves_the_page_as_it_is(facts):
    told = replace(facts.status, counts={RunState.WAITING: facts.status.n_runs})
    assert replace(facts, status=told).count(RunState.FAILED) == 1
    assert made_page(replace(facts, status=told)).headline == made_page(facts).headline


def test_the_largest_bank_is_that_of_most_kernels():
    facts = facts_of(study((300, 100, 1000)))
    banks = ["gaussians-1000", "gaussians-300", "gaussians-100"]
    assert facts.largest_bank("ring", banks) == "gaussians-1000"
    assert facts.largest_bank("ring", banks[1:]) == "gaussians-300"


def test_names_of_a_comparison_begin_with_the_method(facts):
    assert facts.method_of("level") == "level"
    assert facts_of(study((100, 300))).method_of("silp (gaussians-100)") == "silp"


def test_each_method_has_a_look_of_its_own(facts):
    assert list(facts.looks) == ["level", "simplemkl", "uniform"]
    assert len({look.colour for look in facts.looks.values()}) == 3


def test_the_axis_is_the_hyperparameter_of_numbers_that_most_methods_have(facts):
    assert facts.axis("heart") == "C"
    assert facts.loss("heart") == "test_error"
    assert not facts.validated
    assert not facts.several_banks


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(StoreError):
        Facts.of(tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("clinic.toml", "clinic.toml: found a name ending in '.toml'; expected .*.html or .htm"),
        ("page", "page: found a name without an ending"),
        ("folder", "folder: found a folder; .* Write .*folder/report.html"),
        ("folder.html", "folder.html: found a folder"),
        ("mine.html", "mine.html: found another file; .*--overwrite"),
    ],
)
def test_what_is_no_page_is_refused_and_kept(name, said, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.html").mkdir()
    for file in ("clinic.toml", "mine.html"):
        (tmp_path / file).write_text("precious")
    with pytest.raises(OutputError, match=said):
        check_target(tmp_path / name, tmp_path)
    assert (tmp_path / "clinic.toml").read_text() == "precious"


def made(path: Path, results: Path) -> Path:
    """Write an empty page of some results."""
    path.write_text(Page("moons & stars", "", [], origin=origin_of(results)).html())
    return path


def test_new_pages_own_pages_and_files_to_overwrite_are_taken(tmp_path):
    check_target(tmp_path / "new.html", tmp_path)
    check_target(tmp_path / "new.HTM", tmp_path)
    own = made(tmp_path / "own.html", tmp_path / "moons")
    check_target(own, tmp_path / "moons")
    (tmp_path / "mine.html").write_text("precious")
    check_target(tmp_path / "mine.html", tmp_path, overwrite=True)


def test_a_page_of_other_results_is_kept_also_where_their_sweep_has_the_same_name(tmp_path):
    other = made(tmp_path / "report.html", tmp_path / "moons")
    with pytest.raises(OutputError, match=r"report.html: found another file; .* -o"):
        check_target(other, tmp_path / "moons-rerun")
    check_target(other, tmp_path / "moons-rerun", overwrite=True)


def test_the_template_has_the_line_by_which_a_page_is_recognised():
    head = (files("mkldist.report") / "templates" / "page.html.j2").read_text()[:HEAD]
    assert ORIGIN in head
    assert "{{ page.title }}: report</title>" in head
