"""The figure of an explanation: its panels, its letters, its files."""

from __future__ import annotations

import re

import matplotlib as mpl
import numpy as np
import pytest

from mkldist.errors import OutputError
from mkldist.report.charts import WIDTH
from mkldist.report.explanation_chart import (
    check_figure,
    draw,
    explanation_chart,
    write_explanation,
)
from tests.report.made_up_explanation import NAN, explanation, share


def bars(axes) -> list[float]:
    return [round(bar.get_width(), 6) for bar in axes.patches]


def test_shares_are_drawn_where_they_are():
    figure = draw(explanation(n_permutations=20))
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
    figure = draw(explanation(shares=tuple(shares), no_decision="no records"))
    (axes,) = figure.axes
    assert bars(axes) == [60.0, 40.0]


def test_a_bank_of_one_kind_shows_its_kernels():
    axes, _ = draw(explanation(shares=(share("kernel", "gaussian(1)[age]", 1.0, 1.0),))).axes
    assert axes.get_yticklabels()[1].get_text() == "gaussian(1)[age]"


def test_the_report_has_the_figure_with_the_table():
    chart = explanation_chart(explanation())
    assert chart.data["name"].tolist()[:2] == ["clinic", "rna"]
    assert chart.name == "explanation-heart"


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
