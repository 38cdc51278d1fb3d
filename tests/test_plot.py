"""Drawings: Axes in, the same Axes out, with the data that were given."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import mkldist
from mkldist import analysis, plot
from mkldist.analysis.growth import Growth
from mkldist.errors import InputError
from tests.analysis.made_up import learnt, traced
from tests.analysis.studies import LAWS, study
from tests.report.made_up import explanation, made_up, share
from tests.report.test_charts import sized

LOSSES = pd.DataFrame({"a": [0.1, 0.2, 0.2], "b": [0.2, 0.3, 0.4], "c": [0.3, 0.4, 0.5]})
RATES = pd.DataFrame({"x": [0.0, 0.5, 1.0], "y": [0.0, 0.8, 1.0], "sd": [0.0, 0.3, 0.0]})


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return made_up(tmp_path_factory.mktemp("sweep"), damaged=False).tree


def drawn(ax: Axes) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each labelled line."""
    named = {str(line.get_label()): line.get_xydata().tolist() for line in ax.lines}
    return {name: list(map(tuple, xy)) for name, xy in named.items() if name[0] != "_"}


def points(table: pd.DataFrame, x: str, y: str) -> list[tuple[float, float]]:
    return list(table[[x, y]].astype(float).itertuples(index=False, name=None))


def held_to(ax: Axes, table: pd.DataFrame, x: str, y: str, by: str = "method") -> bool:
    """Return True if each line draws its rows of a table."""
    return drawn(ax) == {name: points(some, x, y) for name, some in table.groupby(by)}


@pytest.mark.parametrize("y", ["mean", "objective"])
def test_a_path_has_a_line_for_each_method_and_a_band(tree, ax, y):
    table = analysis.objective_path(tree).query("dataset == 'heart'")
    assert plot.path(table, y=y, ax=ax) is ax
    assert held_to(ax, table, "C", y)
    assert ax.get_xscale() == "log"
    level = table[table["method"] == "level"]
    sd = level["sd" if y == "mean" else "objective_sd"]
    ends = ax.collections[0].get_datalim(ax.transData)
    assert [ends.y0, ends.y1] == pytest.approx([min(level[y] - sd), max(level[y] + sd)])


def test_results_of_several_data_sets_have_a_line_each(tree, ax):
    plot.path(tree, ax=ax)
    assert set(drawn(ax)) == {
        f"{dataset}, {method}" for dataset in ("heart", "wdbc") for method in ("level", "simplemkl")
    }


@pytest.mark.parametrize("against", ["passes", "seconds"])
def test_convergence_draws_the_median_gaps(ax, against):
    results = traced({"level": [([1.0, 0.1], [1, 2], [0.5, 1.0])]})
    assert plot.convergence(results, against, ax=ax) is ax
    assert held_to(ax, analysis.convergence_curves(results, against), against, "gap")
    assert ax.get_yscale() == "log"


def test_runs_without_a_gap_have_no_line(ax):
    table = pd.DataFrame({"method": "majority", "passes": [1, 2], "gap": 0.0})
    assert not plot.convergence(table, "passes", ax=ax).lines


@pytest.mark.parametrize(
    ("against", "results", "read"),
    [
        ("n_train", learnt("level", {50: 0.3, 100: 0.2}), analysis.learning_curve),
        ("n_kernels", sized().tree, analysis.loss_by_bank_size),
    ],
)
def test_losses_are_drawn_against_sizes(against, results, read, ax):
    assert plot.loss(results, against, ax=ax) is ax
    assert held_to(ax, read(results), against, "mean")
    assert ax.get_ylabel() == "test error"


def test_losses_against_active_kernels_are_marks(tree, ax):
    table = analysis.loss_by_active_kernels(tree).query("dataset == 'heart'")
    assert held_to(plot.loss(table, "active_kernels", ax=ax), table, "active_kernels", "mean")
    assert {line.get_linestyle() for line in ax.lines} == {"None"}


@pytest.mark.parametrize("y", ["share", "frequency"])
def test_weights_are_drawn_by_width(tree, ax, y):
    table = analysis.selection_frequency(tree, "width").query("dataset == 'heart'")
    assert plot.weights(table, y=y, ax=ax) is ax
    assert held_to(ax, table, "width", y)


def test_weights_of_named_sets_are_bars(ax):
    table = pd.DataFrame(
        {"method": ["a", "a", "b"], "view": ["rna", "dna", "rna"], "share": [0.7, 0.3, 1.0]}
    )
    assert plot.weights(table, "view", ax=ax) is ax
    assert [text.get_text() for text in ax.get_yticklabels()] == ["rna", "dna"]
    widths = np.nan_to_num([bar.get_width() for bar in ax.patches]).tolist()
    assert widths == [0.7, 0.3, 1.0, 0.0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_a_name_with_dollars_is_drawn_letter_by_letter(ax):
    names = ["cost in $", r"US$ and $\frac{1}{0$"]
    table = pd.DataFrame({"method": names, "view": names, "share": [0.7, 0.3]})
    plot.weights(table, "view", ax=ax)
    written = [*ax.get_yticklabels(), *ax.get_legend().get_texts()]
    assert {text.get_text().replace(r"\$", "$") for text in written} == {*names}
    ax.figure.canvas.draw()  # raises where a name is taken for a formula


def test_a_comparison_draws_mean_ranks_and_the_critical_difference(ax):
    ranks = analysis.friedman(LOSSES)
    assert plot.comparison(ranks, ax=ax) is ax
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
    assert [float(line.get_xdata()[0]) for line in ax.lines] == ranks.mean_ranks.tolist()
    ((start, end),) = ax.collections[0].get_segments()
    assert end[0] - start[0] == pytest.approx(ranks.critical_difference)


@pytest.mark.parametrize(
    ("draw", "x", "y"),
    [
        (plot.roc, "false_positive_rate", "true_positive_rate"),
        (plot.precision_recall, "recall", "precision"),
        (plot.calibration, "probability", "frequency"),
    ],
)
def test_rates_of_one_or_more_methods_are_drawn(draw, x, y, ax):
    one = RATES.set_axis([x, y, "sd"], axis=1)
    two = pd.concat([one.assign(method=name) for name in ("a", "b")])
    assert draw(two, ax=ax) is ax
    assert held_to(ax, two, x, y)
    assert ax.collections[0].get_datalim(ax.transData).y1 <= 1.0
    alone = draw(one, ax=Figure().subplots())
    assert alone.lines[0].get_ydata().tolist() == one[y].tolist()
    assert alone.get_legend() is None


def test_predicted_values_are_drawn_against_true_ones(ax):
    table = pd.DataFrame({"true": [1.0, 2.0], "predicted": [1.5, 1.0]})
    assert plot.predicted(table, ax=ax) is ax
    assert list(map(tuple, ax.lines[0].get_xydata())) == points(table, "true", "predicted")


def test_scaling_draws_marks_and_fits(ax):
    results = study(noise=0.05)
    growth = Growth.of(results, "n_kernels")
    assert plot.scaling(results, ax=ax) is ax
    marks = np.concatenate([line.get_xydata() for line in ax.lines if line.get_marker() != "None"])
    times = growth.times[growth.times["counted"] > 0]
    assert {*times["seconds"]} <= {*marks[:, 1]}
    fits = growth.of_runs.set_index("method")["exponent"]
    assert set(drawn(ax)) == {f"{method}: exponent {fits[method]:.2f}" for method in LAWS}


def test_shares_of_a_decision_are_bars_and_those_of_the_weights_marks(ax):
    found = explanation()
    assert plot.shares(found, ax=ax) is ax
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([60, 40, 70, 30])
    assert [y for y, _ in drawn(ax)["weights"]] == pytest.approx([20, 80, 40, 60])
    other = plot.left_out(found, ax=Figure().subplots())
    assert [bar.get_width() for bar in other.patches] == pytest.approx([5.0] * 4)
    unknown = share("kernel", "a", np.nan, np.nan)  # of leave-one-out
    assert plot.shown_rows(explanation(shares=(unknown,)))[1:] == [unknown]


def test_looks_are_those_that_were_given(tree, ax):
    given = {"level": plot.Look("#123456", "x", ":"), "simplemkl": plot.Look("#654321", "+", "-")}
    plot.path(analysis.objective_path(tree).query("dataset == 'heart'"), looks=given, ax=ax)
    assert {
        (line.get_label(), line.get_color(), line.get_marker(), line.get_linestyle())
        for line in ax.lines
    } == {(name, *look) for name, look in given.items()}


@pytest.mark.parametrize(
    ("draw", "found"),
    [
        (lambda tree: plot.path(tree, y="loss"), '^y: found "loss"'),
        (lambda tree: plot.path(tree, "lam"), "analysis.objective_path has rows"),
        (lambda tree: plot.convergence(tree), "analysis.convergence_curves has rows"),
        (lambda tree: plot.convergence(tree, "second"), "Did you mean 'seconds'"),
        (lambda tree: plot.loss(tree), "analysis.learning_curve has rows"),
        (lambda tree: plot.scaling(tree), "no times at two sizes"),
        (lambda tree: plot.comparison(tree["heart"]), "no ranks"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, found, tree):
    with pytest.raises(InputError, match=found):
        draw(tree)


def test_every_drawing_is_public():
    assert mkldist.plot is plot
    assert {"path", "weights", "convergence", "comparison", "scaling", "calibration"} <= {
        *plot.__all__
    }
    assert Path(plot.__file__).name == "plot.py"
