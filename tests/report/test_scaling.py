"""A scaling study in tables, words and files; `scaling_times` and `scaling_figures`."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mkldist.analysis.growth import Growth
from mkldist.errors import InputError, OutputError
from mkldist.report import scaling as module
from mkldist.report.scaling import ScalingStudy, exponents_table, scaling_study
from tests.analysis.studies import (
    LAWS,
    N_KERNELS,
    SETTINGS,
    build_seconds,
    pass_seconds,
    solver_seconds,
    study,
)
from tests.report.made_up import facts_of, study_of

TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture(scope="module")
def over_kernels() -> ScalingStudy:
    return study_of(study(noise=0.05))


@pytest.fixture(scope="module")
def over_both() -> ScalingStudy:
    return study_of(study((100, 300, 1000), (100, 200, 400), execution="shared"))


def texts_of(svg: str) -> set[str | None]:
    return {element.text for element in ET.fromstring(svg).iter(TEXT)}


def test_shares_are_of_the_build_once_and_the_runs_of_all_settings():
    row = Growth.of(study(), "n_kernels").of_runs.set_index("method").loc["silp"]
    solver = sum(solver_seconds("silp", 3000, 200, C) for C in SETTINGS)
    passes, build = len(SETTINGS) * pass_seconds(3000, 200), build_seconds(3000, 200)
    assert row[["build", "passes", "solver"]].to_numpy(float) == pytest.approx(
        np.array([build, passes, solver]) / (solver + passes + build)
    )


@pytest.mark.slow
def test_a_table_shows_exponents_with_intervals_and_shares(over_kernels):
    (growth,) = over_kernels.growths
    table = exponents_table(growth)
    assert [row[0].text for row in table.rows] == list(LAWS)
    fits = growth.fits.set_index(["method", "part"])
    for row in table.rows:
        fit = fits.loc[(row[0].text, "run")]
        assert row[1].text == "4: 100…3,000"
        assert row[2].text == f"{fit['exponent']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}]"
        assert row[3].text == f"{fits.loc[(row[0].text, 'cpu'), 'exponent']:.2f}"
        assert sum(float(cell.text) for cell in row[5:]) == pytest.approx(100, abs=1.5)
    assert len(table.headings) == len(table.numeric) == len(table.rows[0])


def test_a_build_that_is_not_recorded_is_a_dash_and_not_zero():
    (growth,) = study_of(study(build=False)).growths
    assert {row[5].text for row in exponents_table(growth).rows} == {"\u2013"}


def test_processor_time_that_is_not_recorded_is_a_dash():
    tree = study()
    for node in tree.subtree:
        if "pass_cpu_seconds" in node.variables:
            node.dataset = node.to_dataset().drop_vars("pass_cpu_seconds")
    (growth,) = study_of(tree).growths
    assert {row[3].text for row in exponents_table(growth).rows} == {"\u2013"}


@pytest.mark.slow
def test_over_both_sizes_each_fit_holds_the_other_fixed(over_both):
    assert [growth.over for growth in over_both.growths] == ["n_kernels", "n_train"]
    assert [growth.ends_of_other for growth in over_both.growths] == [[100, 400], [100, 1000]]
    for growth in over_both.growths:
        assert len(growth.of_runs) == len(LAWS) * 3
    assert over_both.fits["n_train"].isna().sum() == (over_both.fits["over"] == "n_train").sum()


def test_cautions_name_what_to_beware_of():
    tree = study((100, 1000), execution="shared")
    tree["ring/gaussians-1000/silp"]["stop_reason"][:, 0] = "time_limit"
    tree["ring/gaussians-1000/level"]["state"][0, 0] = "failed"
    said = {caution.title: caution.text for caution in study_of(tree).cautions}
    assert set(said) == {
        "Times shared, not isolated", "Fewer than three sizes", "Runs that stopped early",
        "Runs missing",
    }  # fmt: skip
    assert said["Runs that stopped early"].startswith("Runs of silp (3) stopped")
    assert said["Runs missing"].startswith("Of the runs, 1 failed and 0 wait.")


def test_a_clean_study_of_a_power_law_has_no_cautions(over_kernels):
    assert over_kernels.cautions == []


def test_a_time_that_bends_is_told():
    tree = study(noise=0.01)
    for size in N_KERNELS:
        node = tree[f"ring/gaussians-{size}/level"]
        node["seconds"] = node["seconds"] + 50.0
    (caution,) = study_of(tree).cautions
    assert caution.title == "No single power"
    assert re.search(r"two largest: level 0\.\d\d \(last 0\.\d\d\)\.$", caution.text)


@pytest.mark.slow
def test_the_figure_draws_marks_and_fits(over_kernels):
    (time,) = over_kernels.charts
    assert time.name == "time-n-kernels"
    fits = over_kernels.fits.set_index(["method", "part"])["exponent"]
    labels = {f"{method}: exponent {fits[method, 'run']:.2f}" for method in LAWS}
    assert {"kernels", "seconds of a run", "100", "3000", *labels} <= texts_of(time.svg())
    assert len(time.data) == len(LAWS) * len(N_KERNELS) * 3  # a mark for each split


@pytest.mark.slow
def test_a_figure_over_one_size_has_panels_for_the_ends_of_the_other(over_both):
    time = over_both.charts[0]
    assert {"100 training points", "400 training points"} <= texts_of(time.svg())
    assert sorted(time.data["n_train"].unique()) == [100, 400]


@pytest.mark.slow
def test_letters_of_the_figures_are_legible_in_print(over_both):
    for chart in over_both.charts:
        sizes = re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", chart.svg())
        assert sizes
        assert min(map(float, sizes)) >= 7.0  # points at the figure's width


@pytest.mark.slow
def test_a_study_is_written_as_tables_and_figures(over_kernels, tmp_path):
    over_kernels.write(tmp_path / "scaling", tmp_path)
    written = {path.name for path in (tmp_path / "scaling").iterdir()}
    assert written == {"scaling-times.csv", "scaling-fits.csv"} | {
        f"time-n-kernels.{suffix}" for suffix in ("csv", "pdf", "png", "svg")
    }
    fits = pd.read_csv(tmp_path / "scaling" / "scaling-fits.csv")
    pd.testing.assert_frame_equal(fits, over_kernels.fits, check_dtype=False)


def test_a_folder_that_cannot_be_made_is_told(over_kernels, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError, match="found a file where a folder is needed"):
        over_kernels.write(tmp_path / "taken" / "scaling", tmp_path)


@pytest.mark.slow
def test_without_matplotlib_there_are_tables_and_a_note(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    found = study_of(study())
    found.write(tmp_path, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv"}


@pytest.mark.parametrize(
    ("sizes", "over", "said"),
    [
        (((100,), (200,)), (), "one number of kernels and one of training points .*n_kernels = "),
        (((100, 300), (200,)), ("n_train",), r"one number of training points .*n_train = \[100"),
    ],
)
def test_results_in_which_nothing_grows_are_refused(monkeypatch, sizes, over, said):
    monkeypatch.setattr(module.Facts, "of", lambda path: facts_of(study(*sizes)))
    with pytest.raises(InputError, match=said):
        scaling_study(Path("results/ring"), over)


def test_a_study_without_a_second_size_yet_is_refused(monkeypatch):
    tree = study((100, 300))
    for method in LAWS:
        tree[f"ring/gaussians-300/{method}"]["state"][:] = "waiting"
    monkeypatch.setattr(module.Facts, "of", lambda path: facts_of(tree))
    with pytest.raises(InputError, match="Repeat the command when further runs are complete"):
        scaling_study(Path("results/ring"))


@pytest.mark.slow
def test_one_size_of_two_can_be_asked_for(monkeypatch):
    tree = study((100, 300, 1000), (100, 200, 400))
    monkeypatch.setattr(module.Facts, "of", lambda path: facts_of(tree))
    found = scaling_study(Path("results/ring"), ("n_train",))
    assert set(found.fits["over"]) == {"n_train"}
