"""Drawings of results.  Each function takes Axes of matplotlib, draws on them and returns them.

Without Axes it makes a new figure.  Most functions take results, as :func:`mkldist.open_results`
returns them, or a table of :mod:`mkldist.analysis`, of which you may leave out rows first: each row
is drawn as it stands.  Results in which there is nothing to draw, and other values of arguments,
are refused with :class:`mkldist.errors.InputError`.  ``pip install 'mkldist[figures]'`` installs
matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from mkldist.analysis.curves import (
    convergence_curves,
    learning_curve,
    loss_by_active_kernels,
    loss_by_bank_size,
    objective_path,
)
from mkldist.analysis.explanation import LEVELS, Explanation, Share, selection_frequency
from mkldist.analysis.growth import SIZES, Growth
from mkldist.analysis.losses import LABEL_UNITS, compare_over_data_sets, in_units
from mkldist.analysis.statistics import Friedman, Interval
from mkldist.core.metrics import loss_words
from mkldist.errors import InputError, nearest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    Results = xr.DataTree | pd.DataFrame

__all__ = [
    "calibration", "comparison", "convergence", "left_out", "loss", "path",
    "precision_recall", "predicted", "roc", "scaling", "shares", "weights",
]  # fmt: skip

# Okabe & Ito (2008) without black and yellow, which vanish on a page; Tol's olive, and a purple.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b3294", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES = ("-", "--", ":")


class Look(NamedTuple):
    """Colour, marker and line of a name in every picture."""

    colour: str
    marker: str
    line: str


Looks = Mapping[str, Look]


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each name.

    Up to eight names differ in colour and marker.  Further ones repeat the colours with another
    line and the next marker.
    """
    found = {}
    for number, name in enumerate(dict.fromkeys(names)):
        lap, place = divmod(number, len(COLOURS))
        marker = MARKERS[(place + lap) % len(MARKERS)]
        found[name] = Look(COLOURS[place], marker, DASHES[lap % len(DASHES)])
    return found


def _axes(ax: Axes | None) -> Axes:
    """Return the axes, by default those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError as error:
        error.add_note("pip install 'mkldist[figures]' installs it")
        raise
    return plt.subplots(layout="constrained")[1]


def _table(results: Results, read: Callable[..., pd.DataFrame], *arguments: Any) -> pd.DataFrame:
    """Return a table, or read it from results; refuse one that has nothing to draw."""
    table = results if isinstance(results, pd.DataFrame) else read(results, *arguments)
    if table.empty:
        words = f"mkldist.analysis.{read.__name__}"
        raise InputError("results", "nothing to draw", f"results of which {words} has rows")
    return table


def _one_of(name: str, value: str, known: Iterable[str]) -> None:
    """Refuse another value of an argument."""
    if value not in known:
        words = " or ".join(f'"{one}"' for one in known)
        raise InputError(name, f'"{value}"', words, nearest(value, [*known]))


def literal(name: object) -> str:
    """Return a name as matplotlib draws it letter by letter: text between two $ is no formula."""
    return str(name).replace("$", r"\$")


def _names(table: pd.DataFrame) -> pd.Series:
    """Return what each row belongs to: of method, bank and the like those that differ."""
    known = [name for name in ("dataset", "bank", "method", "feature_group") if name in table]
    varying = [name for name in known if table[name].nunique() > 1] or ["method"]
    first, *others = (column for _, column in table.reindex(columns=varying, fill_value="").items())
    names = first.astype(str)
    for other in others:
        names += ", " + other.astype(str)
    return names


def _curves(
    ax: Axes | None, table: pd.DataFrame, x: str, y: str, shown: Looks | None,
    band: tuple[str, str] = ("low", "high"), *, markers: bool = True, joined: bool = True,
) -> Axes:  # fmt: skip
    """Draw a line for each name, with a band between two columns."""
    ax, names = _axes(ax), _names(table)
    shown = shown or looks_of(names)
    for name, some in table.groupby(names, sort=False):
        look = shown[str(name)]
        ax.plot(some[x], some[y], color=look.colour, marker=look.marker if markers else "",
                linestyle=look.line if joined else "none", label=literal(name))  # fmt: skip
        if joined and band[0] in some and some[band[0]].notna().any():
            ax.fill_between(some[x], some[band[0]], some[band[1]], color=look.colour, alpha=0.12,
                            linewidth=0)  # fmt: skip
    if names.any():
        ax.legend()
    return ax


TICKS = {50.0: (1.0, 2.0, 5.0), 1000.0: (1.0, 3.0)}
"""Labels of each decade of a logarithmic axis, up to a ratio of its ends; beyond, powers of ten."""


def _logarithmic(ax: Axes, *names: str) -> None:
    """Make the axes ``"x"`` or ``"y"`` logarithmic, with labels such as 0.01 of one size."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in names:
        getattr(ax, f"set_{name}scale")("log")
        axis = ax.xaxis if name == "x" else ax.yaxis
        low, high = getattr(ax, f"get_{name}lim")()
        subs = next((some for most, some in TICKS.items() if high <= most * low), (1.0,))
        axis.set_major_locator(LogLocator(subs=subs, numticks=7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _spans_decades(values: pd.Series) -> bool:
    """Return True if an axis of these values is better logarithmic."""
    positive = values[values > 0]
    return len(positive) == len(values) and bool(positive.max() >= 10 * positive.min())


def _loss_label(table: pd.DataFrame) -> str:
    """Return the label of an axis of losses."""
    name = str(table["loss"].iloc[0])
    return loss_words(name) + f", {LABEL_UNITS}" * in_units(name)


def path(
    results: Results,
    along: str = "C",
    y: str = "mean",
    *,
    looks: Looks | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the loss, or the objective, of each method along a hyperparameter.

    The line is the mean over the splits, the band one standard deviation.

    Parameters
    ----------
    results : DataTree or DataFrame
        Results, or rows of :func:`mkldist.analysis.objective_path`.
    along : str
        The hyperparameter.
    y : {"mean", "objective"}
        The mean loss, or the objective.
    looks : mapping of str to Look, optional
        Colour, marker and line of each method.
    ax : Axes, optional
        Where to draw, by default on a new figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> table = pd.DataFrame({"method": "level", "loss": "test_error", "C": [1, 10]})
    >>> ax = plot.path(table.assign(mean=[0.3, 0.2], sd=0.01))
    >>> ax.get_ylabel()
    'test error'
    """
    _one_of("y", y, ("mean", "objective"))
    table = _table(results, objective_path, along)
    middle, sd = table[y], table["sd" if y == "mean" else "objective_sd"]
    table = table.assign(low=middle - sd, high=middle + sd)
    ax = _curves(ax, table, along, y, looks)
    of_y = y == "objective" and _spans_decades(middle)
    _logarithmic(ax, *["x"] * _spans_decades(table[along]), *["y"] * of_y)
    ax.set(xlabel=along, ylabel=y if y == "objective" else _loss_label(table))
    return ax


COST_WORDS = {"passes": "passes over the bank", "seconds": "seconds of a run"}


def convergence(
    results: Results,
    against: str = "seconds",
    *,
    looks: Looks | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the certified gap of each method against seconds, or passes over the bank.

    The line is the median over traced runs of the best gap so far; the band holds the middle half.

    Parameters
    ----------
    results : DataTree or DataFrame
        Results of a sweep with ``trace = true``, or rows of
        :func:`mkldist.analysis.convergence_curves`.
    against : {"seconds", "passes"}
        The cost.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> table = pd.DataFrame({"method": "level", "passes": [1, 2, 4], "gap": [1.0, 0.1, 0.01]})
    >>> plot.convergence(table, "passes").get_yscale()
    'log'
    """
    _one_of("against", against, COST_WORDS)
    table = _table(results, convergence_curves, against)
    table = table[table["gap"] > 0.0]
    ax = _curves(ax, table, against, "gap", looks, ("gap_low", "gap_high"), markers=False)
    _logarithmic(ax, "y", *["x"] * _spans_decades(table[against]))
    ax.set(xlabel=COST_WORDS[against], ylabel="relative duality gap")
    return ax


_LOSSES: dict[str, tuple[Callable[[xr.DataTree], pd.DataFrame], str]] = {
    "n_train": (learning_curve, "training points"),
    "active_kernels": (loss_by_active_kernels, "active kernels, mean over the splits"),
    "n_kernels": (loss_by_bank_size, "candidate kernels"),
}


def loss(
    results: Results,
    against: str = "n_train",
    *,
    looks: Looks | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean loss of each method against training points or kernels.

    The band is the 95 % interval corrected for overlapping training parts.  Against active kernels,
    each mark is a setting.

    Parameters
    ----------
    results : DataTree or DataFrame
        Results, or rows of :func:`mkldist.analysis.learning_curve`,
        :func:`~mkldist.analysis.loss_by_active_kernels` or
        :func:`~mkldist.analysis.loss_by_bank_size`.
    against : {"n_train", "active_kernels", "n_kernels"}
        Training points, kernels that the method selects, or kernels of the bank.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> table = pd.DataFrame({"method": "level", "loss": "test_error", "n_train": [50, 100]})
    >>> ax = plot.loss(table.assign(mean=[0.3, 0.2], low=[0.2, 0.1], high=[0.4, 0.3]))
    >>> ax.lines[0].get_ydata().tolist()
    [0.3, 0.2]
    """
    _one_of("against", against, _LOSSES)
    read, words = _LOSSES[against]
    table = _table(results, read)
    ax = _curves(ax, table, against, "mean", looks, joined=against != "active_kernels")
    _logarithmic(ax, "x")
    ax.set(xlabel=words, ylabel=_loss_label(table))
    return ax


_SHARES = {"share": "share of weights", "frequency": "share of splits"}


def weights(
    results: Results,
    by: str = "width",
    y: str = "share",
    *,
    looks: Looks | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the shares of kernels in the kernel weights, by width, view or another coordinate.

    Numbers have a line for each method, texts a bar.

    Parameters
    ----------
    results : DataTree or DataFrame
        Results, or rows of :func:`mkldist.analysis.selection_frequency`.
    by : str
        Coordinate of the kernels, such as ``"width"``, ``"view"`` or ``"feature_group"``.
    y : {"share", "frequency"}
        Share of the sum of kernel weights, or of the splits that select such a kernel.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> table = pd.DataFrame({"method": "level", "view": ["rna", "dna"], "share": [0.7, 0.3]})
    >>> [float(bar.get_width()) for bar in plot.weights(table, "view").patches]
    [0.7, 0.3]
    """
    _one_of("y", y, _SHARES)
    table = _table(results, selection_frequency, by)
    if table[by].dtype.kind in "fiu":
        ax = _curves(ax, table, by, y, looks)
        _logarithmic(ax, "x")
        ax.set(xlabel=f"{by} of the kernel", ylabel=_SHARES[y])
        if y == "frequency":
            ax.set_ylim(-0.08, 1.08)  # room for marks at its ends
        return ax
    ax, names = _axes(ax), _names(table.drop(columns=by))
    wide = table.pivot_table(y, by, names, sort=False)
    looks = looks or looks_of(map(str, wide))
    colours: list[Any] = [looks[str(name)].colour for name in wide]
    drawn = wide.rename(index=literal, columns=literal)
    drawn.plot.barh(ax=ax, color=colours, legend=names.any())
    ax.invert_yaxis()
    ax.set(xlabel=_SHARES[y], ylabel="")
    return ax


def _rows(ax: Axes, names: Iterable[str]) -> None:
    """Name rows from above."""
    labels = [literal(name) for name in names]
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)


def comparison(
    results: xr.DataTree | Friedman, *, looks: Looks | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the mean ranks of methods over data sets with Nemenyi's critical difference.

    Methods whose bars do not overlap differ (Demšar 2006).

    Parameters
    ----------
    results : DataTree or Friedman
        Results of three methods or more on several data sets, or what
        :func:`mkldist.analysis.friedman` returns.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import analysis, plot
    >>> losses = pd.DataFrame({"a": [0.1, 0.2, 0.2], "b": [0.2, 0.3, 0.4], "c": [0.3, 0.4, 0.5]})
    >>> ax = plot.comparison(analysis.friedman(losses))
    >>> [float(line.get_xdata()[0]) for line in ax.lines]
    [1.0, 2.0, 3.0]
    """
    ranks: Friedman | None
    if isinstance(results, Friedman):
        ranks = results
    else:
        ranks = getattr(compare_over_data_sets(results), "ranks", None)
    if ranks is None:
        raise InputError("results", "no ranks", "three methods or more on several data sets")
    ax, means = _axes(ax), ranks.mean_ranks.sort_values()
    looks = looks or looks_of(means.index)
    for place, (method, mean) in enumerate(means.items()):
        look = looks[str(method)]
        ax.errorbar(mean, place, xerr=0.5 * ranks.critical_difference, marker=look.marker,
                    color=look.colour)  # fmt: skip
    _rows(ax, means.index)
    ax.set_xlabel("mean rank over the data sets; 1 is best")
    return ax


UNIT = (-0.02, 1.02)  # limits of an axis of shares, with room for marks at its ends


def _rates(table: pd.DataFrame, x: str, y: str, shown: Looks | None, ax: Axes | None) -> Axes:
    """Draw one rate against another."""
    if "sd" in table:
        low, high = table[y] - table["sd"], table[y] + table["sd"]
        table = table.assign(low=low.clip(lower=0.0), high=high.clip(upper=1.0))
    ax = _curves(ax, table, x, y, shown, markers="n" in table)
    if y != "precision":
        ax.plot(UNIT, UNIT, color="0.5", linestyle=":", linewidth=1.0)
    ax.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "), xlim=UNIT, ylim=UNIT)
    return ax


def roc(table: pd.DataFrame, *, looks: Looks | None = None, ax: Axes | None = None) -> Axes:
    """Draw ROC curves: means over the splits, with one standard deviation.

    Parameters
    ----------
    table : DataFrame
        ``"roc"`` of :func:`mkldist.analysis.prediction_curves`; a column ``method`` tells the
        curves of several methods apart.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> rates = {"false_positive_rate": [0, 0.5, 1], "true_positive_rate": [0, 0.9, 1]}
    >>> plot.roc(pd.DataFrame(rates)).lines[0].get_ydata().tolist()
    [0.0, 0.9, 1.0]
    """
    return _rates(table, "false_positive_rate", "true_positive_rate", looks, ax)


def precision_recall(
    table: pd.DataFrame, *, looks: Looks | None = None, ax: Axes | None = None
) -> Axes:
    """Draw precision against recall: means over the splits, with one standard deviation.

    Parameters
    ----------
    table : DataFrame
        ``"precision_recall"`` of :func:`mkldist.analysis.prediction_curves`, as for :func:`roc`.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> table = pd.DataFrame({"recall": [0, 0.5, 1], "precision": [1, 0.9, 0.5]})
    >>> plot.precision_recall(table).get_ylabel()
    'precision'
    """
    return _rates(table, "recall", "precision", looks, ax)


def calibration(table: pd.DataFrame, *, looks: Looks | None = None, ax: Axes | None = None) -> Axes:
    """Draw how often rows of about equal probability are of a class; on the line they are right.

    Parameters
    ----------
    table : DataFrame
        ``"calibration"`` of :func:`mkldist.analysis.prediction_curves`, as for :func:`roc`.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> table = pd.DataFrame({"probability": [0.2, 0.8], "frequency": [0.1, 0.9], "n": [10, 10]})
    >>> plot.calibration(table).lines[0].get_ydata().tolist()
    [0.1, 0.9]
    """
    return _rates(table, "probability", "frequency", looks, ax)


def predicted(table: pd.DataFrame, *, look: Look | None = None, ax: Axes | None = None) -> Axes:
    """Draw predicted against true values; on the line both are equal.

    Parameters
    ----------
    table : DataFrame
        Columns ``true`` and ``predicted``.
    look : Look, optional
        Whose colour the marks have.
    ax : Axes, optional
        Where to draw, by default on a new figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import plot
    >>> ax = plot.predicted(pd.DataFrame({"true": [1.0, 2.0], "predicted": [1.1, 1.9]}))
    >>> ax.lines[0].get_ydata().tolist()
    [1.1, 1.9]
    """
    ax = _axes(ax)
    ax.plot(table["true"], table["predicted"], linestyle="none", marker=".", alpha=0.5,
            color=look.colour if look else COLOURS[0])  # fmt: skip
    ends = [table["true"].min(), table["true"].max()]
    ax.plot(ends, ends, color="0.5", linestyle=":", linewidth=1.0)
    ax.set(xlabel="true value", ylabel="predicted value")
    return ax


CLEAR = 1.25  # ratio of neighbouring sizes that leaves room for the label of each


def _growth(results: xr.DataTree | Growth, over: str) -> Growth:
    """Return the times over a size, or read them; refuse results without a fit."""
    growth = results if isinstance(results, Growth) else Growth.of(results, over)
    if growth.fits.empty:
        raise InputError("results", "no times at two sizes", f"several values of {over}")
    return growth


def scaling(
    results: xr.DataTree | Growth,
    over: str = "n_kernels",
    *,
    at: int | None = None,
    looks: Looks | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the seconds of a run of each method against a size, with fits ``seconds = a size^k``.

    A mark is the mean over the settings on one split, hollow where a run stopped before its
    tolerance.

    Parameters
    ----------
    results : DataTree
        Results of a sweep over several sizes.
    over : {"n_kernels", "n_train"}
        The size.
    at : int, optional
        Value of the other size, by default the largest.
    looks, ax
        As for :func:`path`.

    Examples
    --------
    >>> import mkldist
    >>> ax = mkldist.plot.scaling(mkldist.open_results("results/growth"))  # doctest: +SKIP
    >>> ax.get_xlabel()  # doctest: +SKIP
    'kernels'
    """
    growth = _growth(results, over)
    over, other = growth.over, growth.other
    value = growth.ends_of_other[-1] if at is None else at
    times = growth.times[(growth.times["counted"] > 0) & (growth.times[other] == value)]
    fits = growth.of_runs[growth.of_runs[other] == value]
    ax, names, alone = _axes(ax), _names(fits), len(growth.ends_of_other) == 1
    looks = looks or looks_of(names)
    for name, fit in zip(names, fits.to_dict("records"), strict=True):
        own = [times[column] == fit[column] for column in ("dataset", "bank", "method")]
        some, look = times[np.logical_and.reduce(own)], looks[name]
        early = some["counted_early"] > 0
        for marked, face in ((some[~early], look.colour), (some[early], "none")):
            ax.plot(marked[over], marked["seconds"], color=look.colour, marker=look.marker,
                    markerfacecolor=face, linestyle="none", markersize=4)  # fmt: skip
        ends = np.array([fit["smallest"], fit["largest"]])
        ax.plot(ends, fit["factor"] * ends ** fit["exponent"], color=look.colour,
                marker=look.marker, markevery=[], linestyle=look.line,
                label=literal(name) + f": exponent {fit['exponent']:.2f}" * alone)  # fmt: skip
    _logarithmic(ax, "x", "y")
    sizes = np.unique(times[over])
    if len(sizes) <= 6 and (sizes[1:] >= CLEAR * sizes[:-1]).all():
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
        ax.set_xticks([], minor=True)
    ax.set(xlabel=SIZES[over], ylabel="seconds of a run")
    ax.legend()
    return ax


LEAST_SHARE, MOST_BARS_OF_LEVEL, LONGEST_LABEL = 0.01, 8, 22
LETTERS_WIDE = 18  # of the label of the losses without a set
LIMITS = (-25.0, 125.0)
"""Shares in per cent beyond which an axis does not reach; intervals end there."""


def shares(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """Draw the share of each view, group and feature in the decision, and in the weights.

    Bars are shares of the decision with 95 % intervals, diamonds shares of the weights.  Sets with
    less than 1 % of both are left out.

    Parameters
    ----------
    explanation : Explanation
        One of those that :func:`mkldist.explain` returns.
    ax : Axes, optional
        Where to draw, by default on a new figure.

    Examples
    --------
    >>> import mkldist
    >>> [found] = mkldist.explain("results/quickstart")  # doctest: +SKIP
    >>> ax = mkldist.plot.shares(found)  # doctest: +SKIP
    """
    from matplotlib import rcParams

    ax, rows = _axes(ax), shown_rows(explanation)
    shown = {y: row for y, row in enumerate(rows) if isinstance(row, Share)}
    of_weights = {y: row.weight for y, row in shown.items()}
    decided = not explanation.no_decision
    _bars(ax, {y: row.decision for y, row in shown.items()} if decided else of_weights, 100.0,
          COLOURS[0])  # fmt: skip
    ax.set_xlabel(f"share of the {'decision' if decided else 'weights'}, %")
    if decided:
        means = [100.0 * one.mean for one in of_weights.values()]
        if not np.isnan(means).all():
            ax.plot(means, [*of_weights], linestyle="none", marker="D", label="weights",
                    markerfacecolor="white", markeredgecolor=rcParams["text.color"],
                    markeredgewidth=0.8)  # fmt: skip
            ax.legend()
        if explanation.n_permutations:
            null = [100.0 * row.null for row in shown.values()]
            ax.plot(null, [*shown], linestyle="none", marker="|", markersize=9, color="#767676",
                    markeredgewidth=1.6, label="permuted labels")  # fmt: skip
            ax.legend()
        ax.set_xlim(*np.clip(ax.get_xlim(), *LIMITS))
    _of_sets(ax, rows)
    return ax


def left_out(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """Draw how much worse the metric is without each view, group and feature.

    Parameters
    ----------
    explanation, ax
        As for :func:`shares`.

    Examples
    --------
    >>> import mkldist
    >>> [found] = mkldist.explain("results/quickstart")  # doctest: +SKIP
    >>> ax = mkldist.plot.left_out(found)  # doctest: +SKIP
    """
    ax, rows, metric = _axes(ax), shown_rows(explanation), explanation.metric
    scale, unit = (100.0, ", points") if metric.unit == "%" else (1.0, "")
    found = {y: row.left_out for y, row in enumerate(rows) if isinstance(row, Share)}
    _bars(ax, found, scale, COLOURS[1])
    ax.set_xlabel(fill(f"worse when left out: {metric.words}{unit}", LETTERS_WIDE))
    _of_sets(ax, rows)
    return ax


def shown_rows(explanation: Explanation) -> list[Share | str]:
    """Return what stands in the figure from above: headings and shares."""
    rows: list[Share | str] = []
    for level in ("view", "group", "feature"):
        matter, _ = explanation.shown(level)
        means = np.array([[one.decision.mean, one.weight.mean] for one in matter]).reshape(-1, 2)
        sizes = np.abs(np.nan_to_num(means)).max(axis=1)  # those of one test row have no spread
        tall = [one for one, size in zip(matter, sizes, strict=True) if size >= LEAST_SHARE]
        tall = tall[:MOST_BARS_OF_LEVEL] or matter[:1]
        rows += [LEVELS[level], *tall] if tall else []
    return rows or [LEVELS["kernel"], *explanation.shown("kernel")[0][:MOST_BARS_OF_LEVEL]]


def _of_sets(ax: Axes, rows: Iterable[Share | str]) -> None:
    """Name the rows, headings in bold."""
    from matplotlib import rcParams

    labels = [row if isinstance(row, str) else _label_of(row) for row in rows]
    _rows(ax, labels)
    for text, row in zip(ax.get_yticklabels(), rows, strict=False):  # beside others there are none
        text.set_fontweight("bold" if isinstance(row, str) else "normal")
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.axvline(0.0, color=rcParams["text.color"], linewidth=0.7)


def _bars(ax: Axes, found: dict[int, Interval], scale: float, colour: str) -> None:
    """Draw a bar for each mean, with its interval."""
    from matplotlib import rcParams

    means = scale * np.array([one.mean for one in found.values()])
    ends = scale * np.array([[one.low, one.high] for one in found.values()])
    ax.barh([*found], np.nan_to_num(means), height=0.62, color=colour, alpha=0.55)
    if not np.isnan(ends).all():
        errors = np.nan_to_num(np.abs(ends - means[:, None]).T)
        ax.errorbar(means, [*found], xerr=errors, linestyle="none", elinewidth=0.8, capsize=1.5,
                    capthick=0.8, color=rcParams["text.color"])  # fmt: skip


def _label_of(row: Share) -> str:
    text = f"{row.name:g}" if isinstance(row.name, float) else row.name
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
