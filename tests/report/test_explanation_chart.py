"""The figure of an explanation: its panels, its letters, its files."""

from __future__ import annotations

import math
import re

import matplotlib as mpl
import pytest

from mkldist.analysis.explanation import Grouping
from mkldist.analysis.resampling import Interval
from mkldist.errors import OutputError
from mkldist.report.explanation_chart import COLUMN, check_figure, draw, write_explanation
from tests.report.made_up_explanation import explanation, share

STABLE = Interval(0.8, 0.7, 0.9)


def test_shares_are_drawn_where_they_are():
    figure = draw(explanation())
    features, widths = figure.axes
    marks = [container.lines[0].get_xdata().tolist() for container in features.containers]
    assert marks == [[0.6, 0.4], [0.3, 0.7]]
    assert [label.get_text() for label in features.get_yticklabels()] == [
        "age", "a name of a feature that …",
    ]  # fmt: skip
    weights = widths.containers[0].lines[0]
    assert weights.get_xdata().tolist() == [0.5, 1.0, 2.0, 4.0]
    assert weights.get_ydata().tolist() == [0.05, 0.5, 0.3, 0.0]
    assert widths.get_xscale() == "log"


def test_without_parts_of_the_decision_weights_alone_are_drawn():
    shares = (share("age", 0.6, math.nan), share("sex", 0.4, math.nan))
    figure = draw(explanation(groupings=(Grouping("features", shares, STABLE),)))
    (axes,) = figure.axes
    assert len(axes.containers) == 1


def test_a_bank_of_one_kind_shows_its_kernels():
    (axes,) = draw(explanation(groupings=())).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["gaussian(1)[age]"]


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
    assert width == pytest.approx(COLUMN)
    assert mpl.rcParams["font.size"] == 10.0  # the style of others is as before


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(OutputError, match=r"ending in '\.gif'; expected a name ending in \.pdf"):
        check_figure(tmp_path / "why.gif", overwrite=False)
