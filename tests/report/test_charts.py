"""Figures of the page, held to the data that they show."""

import itertools
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from mkldist.analysis import loss_by_bank_size
from mkldist.errors import OutputError
from mkldist.plot import COLOURS, looks_of
from mkldist.report.charts import (
    WIDTH,
    bank_size_charts,
    check_figure,
    convergence_charts,
    draw_explanation,
    explanation_chart,
    kernel_number_charts,
    learning_charts,
    write_explanation,
)
from tests.analysis.made_up import learnt, traced
from tests.analysis.studies import N_KERNELS, study
from tests.report.made_up import NAN, explanation, facts_of, share

# Viénot, Brettel & Mollon (1999): what a reader without L or M cones sees, in linear RGB.
TO_LMS = np.array(
    [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]]
)
MISSING = {
    "protan": np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]]),
    "deutan": np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]]),
}


def seen(colour: str, kind: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    lms = MISSING[kind] @ TO_LMS @ rgb**2.2
    return np.clip(np.linalg.solve(TO_LMS, lms), 0, 1) ** (1 / 2.2)


def test_colour_blind_readers_can_tell_colours_apart():
    for kind in MISSING:
        for one, two in itertools.combinations(COLOURS, 2):
            assert np.abs(seen(one, kind) - seen(two, kind)).max() > 0.08, (kind, one, two)


def test_many_methods_still_differ():
    names = [f"method{i}" for i in range(20)]
    assert len(set(looks_of(names).values())) == 20
    assert list(looks_of(["a", "b", "a"])) == ["a", "b"]


def bars(axes) -> list[float]:
    return [round(bar.get_width(), 6) for bar in axes.patches]


def test_shares_are_drawn_where_they_are():
    figure = draw_explanation(explanation(n_permutations=20))
    decision, left_out = figure.axes
    assert [label.get_text() for label in decision.get_yticklabels()] == [
        "views", "clinic", "rna", "features", "a name of a feature t…", "age",
    ]  # fmt: skip
    assert [bar.get_y() + bar.get_height() / 2 for bar in decision.patches] == [1, 2, 4, 5]
    assert bars(decision) == [60.0, 40.0, 70.0, 30.0]
    assert bars(left_out) == [5.0] * 4
    marks = {line.get_label(): line.get_xdata() for line in decision.lines}
    np.testing.assert_allclose(marks["weights"], [20.0, 80.0, 40.0, 60.0])
    np.testing.assert_allclose(marks["permuted labels"], [10.0] * 4)
    (segments, *_) = [one.get_segments() for one in decision.collections]
    np.testing.assert_allclose(segments[0], [[58.0, 1.0], [62.0, 1.0]])


def test_without_parts_of_the_decision_weights_alone_are_drawn():
    shares = [share("feature", name, weight, NAN) for name, weight in (("age", 0.6), ("sex", 0.4))]
    figure = draw_explanation(explanation(shares=tuple(shares), no_decision="no records"))
    (axes,) = figure.axes
    assert bars(axes) == [60.0, 40.0]


def test_a_bank_of_one_kind_shows_its_kernels():
    axes, _ = draw_explanation(
        explanation(shares=(share("kernel", "gaussian(1)[age]", 1.0, 1.0),))
    ).axes
    assert axes.get_yticklabels()[1].get_text() == "gaussian(1)[age]"


def test_the_report_has_the_figure_with_the_table():
    chart = explanation_chart(explanation())
    assert chart.data["name"].tolist()[:2] == ["clinic", "rna"]
    assert chart.name == "explanation-heart"


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_the_file_is_of_its_ending(ending, tmp_path):
    path = tmp_path / f"why{ending}"
    write_explanation(explanation(), path)
    start = {".svg": b"<?xml", ".pdf": b"%PDF", ".png": b"\x89PNG"}[ending]
    assert path.read_bytes().startswith(start)


def test_letters_are_legible_in_a_column_of_print(tmp_path):
    write_explanation(explanation(), tmp_path / "why.svg")
    text = (tmp_path / "why.svg").read_text()
    sizes = [float(size) for size in re.findall(r"font: (?:\w+ )*([\d.]+)px", text)]
    sizes += [float(size) for size in re.findall(r"font-size: ([\d.]+)px", text)]
    assert min(sizes) >= 7.0
    width = float(re.search(r'width="([\d.]+)pt"', text)[1]) / 72
    assert width == pytest.approx(WIDTH)
    assert mpl.rcParams["font.size"] == 10.0  # the style of others is as before


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(OutputError, match=r"ending in '\.gif'; expected a name ending in \.pdf"):
        check_figure(tmp_path / "why.gif", overwrite=False)


@pytest.mark.slow
def test_convergence_is_drawn_against_passes_and_seconds():
    tree = traced({"level": [([1.0, 0.1], [1, 2], [0.5, 1.0])]})
    charts = convergence_charts(facts_of(tree))
    assert [chart.name for chart in charts] == [
        "convergence-passes-ring",
        "convergence-seconds-ring",
    ]
    for chart in charts:
        assert chart.data["gap"].iloc[-1] == pytest.approx(0.1)
        assert "relative duality gap" in chart.svg()


def sized():
    """Return facts of a study over four sizes of a bank."""
    tree = study()
    for node in tree.leaves:
        parts = {name: ("split", np.full(node.sizes["split"], 50)) for name in
                 ("n_test", "n_unlabelled")}  # fmt: skip
        node.dataset = node.to_dataset().assign_coords(parts)
    return facts_of(tree)


def test_a_figure_of_active_kernels_draws_each_setting(finished):
    (chart,) = kernel_number_charts(finished)
    rows = finished.summary[finished.summary["active_mean"] > 0]
    pd.testing.assert_series_equal(
        chart.data.set_index(["method", "C"])["mean"].sort_index(),
        rows.set_index(["method", "C"])["test_error_mean"].sort_index(),
        check_names=False,
    )
    (axes,) = chart.draw().axes
    assert sum(len(marks.get_xdata()) for marks in axes.lines) == len(rows)


def test_a_bank_of_several_sizes_has_a_figure_of_candidates():
    facts = sized()
    (chart,) = bank_size_charts(facts)
    assert chart.name == "candidates-ring-gaussians"
    pd.testing.assert_frame_equal(chart.data, loss_by_bank_size(facts.tree))
    (axes,) = chart.draw().axes
    for line in axes.lines:
        assert line.get_xdata().tolist() == list(N_KERNELS)
        assert line.get_ydata() == pytest.approx(0.1)


def test_a_bank_of_one_size_has_none(finished):
    assert bank_size_charts(finished) == []


@pytest.mark.slow
def test_learning_curves_have_a_figure_for_a_data_set_of_several_sizes():
    losses = {50: 0.3, 100: 0.2, 200: 0.1}
    (chart,) = learning_charts(facts_of(learnt("level", losses)))
    assert chart.name == "learning-ring"
    assert chart.data["n_train"].tolist() == [50, 100, 200]
    assert chart.data["mean"].to_numpy() == pytest.approx([*losses.values()])
    assert "training points" in chart.svg()
