"""Pictures of a sweep: the decision boundary of every method's best setting on the first split.

The plane is blue against red, deeper away from the boundary.  With more than two classes, each
class has a colour; its region is filled with a pale tint of it.  Files are drawn again only if
their content would differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.view import make_views
from mkldist.core.arrays import Floats, Ints
from mkldist.core.durable import remove_temporaries, replacing
from mkldist.core.identity import content_id
from mkldist.core.metrics import PARTS
from mkldist.core.wording import pluralize
from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import feature_scale, filled
from mkldist.fit.decision import BankFunctions, Expansion
from mkldist.fit.engine import BankInputs
from mkldist.planning.model import BankPlan, Plan, RunPlan
from mkldist.planning.resolved import Resolved
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


GRID = 240  # points along each side
MARGIN = 0.08  # of the spread of the points, around them
ALIKE = 3.0  # largest ratio of the spreads of two features that are drawn to one scale
CACHED_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class Boundary:
    """A decision function of two features and the points around it."""

    feature_names: tuple[str, str]  # on the horizontal and the vertical axis
    class_names: tuple[str, ...]  # of the k classes
    points: Floats  # (n, 2) float64: All points, in the units of the data, missing values filled
    numbers: Ints  # (n,) intp: Position of each point's class in `class_names`
    # Points by role: ``labelled`` (``training`` in supervised learning), ``unlabelled`` and
    # ``test``. Roles without points are left out
    roles: Mapping[str, Ints]
    # ((g,) float64, (g,) float64): Values of the features along the grid
    axes: tuple[Floats, Floats]
    # (1, g, g) or (k, g, g) float64: The decision function, or that of each of k > 2 classes;
    # rows follow the second feature
    values: Floats

    @property
    def to_scale(self) -> bool:
        """True if both features span about the same range, so that circles can look round."""
        spans = [float(axis[-1] - axis[0]) for axis in self.axes]
        return max(spans) <= ALIKE * min(spans)


def boundary(
    bank: BankPlan, dataset: Dataset, splits: Sequence[Split], record: RunRecord
) -> Boundary:
    """Evaluate a run's decision function around the points of its data set.

    Kernels are computed from the features again, so the bank need not be stored.
    """
    if dataset.x is None or dataset.classes is None:
        raise ValueError(f"{dataset.name}: a boundary needs features and classes")
    split = splits[record.split]
    points = filled(bank.preprocessing, dataset, split)
    axes = _axes(points)
    grid = np.column_stack([side.ravel() for side in np.meshgrid(*axes)])
    function = decision_function(bank, dataset, splits, record)
    first, second = dataset.feature_names
    return Boundary(
        feature_names=(first, second),
        class_names=dataset.classes,
        points=np.asarray(points),
        numbers=dataset.class_numbers,
        roles=_roles(split),
        axes=axes,
        values=function(grid).reshape(-1, len(axes[1]), len(axes[0])),
    )


def decision_function(
    bank: BankPlan, dataset: Dataset, splits: Sequence[Split], record: RunRecord
) -> Callable[[Floats], Floats]:
    """Return the decision function of a run; parameters as for :func:`boundary`.

    Takes points (r, 2) in the units of the data, and returns (k, r) values, or (1, r) for two
    classes.
    """
    inputs = BankInputs.of(bank.spec, bank.preprocessing, dataset, splits, bank.split, bank.seed)
    if inputs.points is None or inputs.kernels is None or inputs.kernels.of_features is None:
        raise ValueError(f"{dataset.name}: a boundary needs kernels of features")
    kernels, learnt = inputs.kernels.of_features, inputs.points[record.train_rows]
    recomputed = RecomputedBank(inputs.source(), CACHED_BYTES)
    try:
        (view,) = make_views(
            recomputed, [inputs.bank_points(record.train_rows)], inputs.view_normalisations
        )
        functions = [
            Expansion.of(kernels, inputs.cosine, learnt, BankFunctions.of(view, *terms))
            for terms in _terms(record)
        ]
    finally:
        recomputed.close()
    split = None if bank.split is None else splits[bank.split]
    points = filled(bank.preprocessing, dataset, split)
    scale = feature_scale(bank.preprocessing, np.asarray(points), split)

    def values(x: Floats) -> Floats:
        return np.concatenate([one.values(scale.scaled(x)).T for one in functions])

    return values


def _terms(record: RunRecord) -> list[tuple[Floats, Floats, float]]:
    """Return kernel weights, coefficients and bias, of each class if there are more than two."""
    own, weights = record.kernel_coefficients, record.kernel_weights
    if "class_bias" not in record.of_classes:
        return [(weights, own if own.size else record.coefficients, record.bias)]
    biases = record.of_classes["class_bias"].tolist()
    weights = np.broadcast_to(weights, (len(biases), record.n_kernels))
    ends = np.cumsum(np.count_nonzero(weights, axis=1))[:-1]
    coefficients = np.split(own, ends) if own.size else record.coefficients
    return list(zip(weights, coefficients, biases, strict=True))


def _axes(x: Floats) -> tuple[Floats, Floats]:
    """Return the axes of a grid that covers all points and a margin around them."""
    low, high = x.min(axis=0), x.max(axis=0)
    room = MARGIN * (high - low)
    first, second = np.linspace(low - room, high + room, GRID).T
    return first, second


def _roles(split: Split) -> dict[str, Ints]:
    """Return the points of a split by their role."""
    known = "labelled" if len(split.unlabelled) else "training"
    roles = {known: split.train, "unlabelled": split.unlabelled, "test": split.test}
    return {name: rows for name, rows in roles.items() if len(rows)}


WIDTH = 3.4  # inches, a column of a paper
BESIDE, BESIDES = 0.65, 1.25  # inches beside and above the plane, for labels and legend
LINE_HEIGHT = 0.15  # inches
FLATTEST, TALLEST = 0.4, 1.6  # ratio of the plane's sides
LEVELS = 14
SATURATION = 2.0  # value of |f| above which colours deepen no further
TWO_COLOURS = ("#2166ac", "#b2182b")
PALE = 0.28  # opacity of the colour of a class in the plane
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
GREY = "#5f5f5f"
LONG_NAME = 8  # letters of a class name that needs a wider column in the legend
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
# Size in points², opacity, edge and layer of the marks of each role.
MARKS: dict[str, dict[str, Any]] = {
    "test": {"s": 3, "alpha": 0.45, "linewidths": 0, "zorder": 3},
    "unlabelled": {"s": 7, "alpha": 0.75, "linewidths": 0, "zorder": 4},
    "training": {"s": 13, "linewidths": 0.4, "edgecolors": "white", "zorder": 5},
    "labelled": {"s": 44, "linewidths": 1.0, "edgecolors": "black", "zorder": 6},
}


def draw_boundary(shown: Boundary, title: str, subtitle: str) -> Figure:
    """Return the picture of a decision boundary."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        handles = _legend(shown)
        n_columns = 3 if max(map(len, shown.class_names)) < LONG_NAME else 2
        n_lines = subtitle.count("\n") + max(0, -(-len(handles) // n_columns) - 2)
        height = BESIDES + LINE_HEIGHT * n_lines + (WIDTH - BESIDE) * _ratio(shown)
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        draw_plane = _draw_function if len(shown.class_names) == 2 else _draw_regions
        draw_plane(axes, shown)
        for role, rows in shown.roles.items():
            _draw_points(axes, shown, role, rows)
        axes.set_xlabel(shown.feature_names[0])
        axes.set_ylabel(shown.feature_names[1])
        axes.set_xlim(shown.axes[0][0], shown.axes[0][-1])
        axes.set_ylim(shown.axes[1][0], shown.axes[1][-1])
        if shown.to_scale:
            axes.set_aspect("equal")
        figure.suptitle(title, fontsize=9, fontweight="bold")
        axes.set_title(subtitle, fontsize=7.5, color=GREY)
        figure.legend(
            handles=handles,
            loc="outside lower center",
            ncols=n_columns,
            fontsize=7,
            frameon=False,
            handletextpad=0.4,
            columnspacing=1.0,
        )
    return figure


def _ratio(shown: Boundary) -> float:
    """Return the height of the plane over its width."""
    if not shown.to_scale:
        return 0.85
    width, height = (float(axis[-1] - axis[0]) for axis in shown.axes)
    return min(max(height / width, FLATTEST), TALLEST)


def _draw_function(axes: Axes, shown: Boundary) -> None:
    """Colour the plane by the decision function, and draw its level lines at 0 and, if any, ±1."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list(
        "boundary", ["#6ba3d0", "#d6e6f2", "#f7f7f7", "#f9dccf", "#e58368"]
    )
    (values,) = shown.values
    deepest = min(SATURATION, float(np.abs(values).max())) or SATURATION
    levels = np.linspace(-deepest, deepest, LEVELS + 1)
    clipped = np.clip(values, -deepest, deepest)
    filled = axes.contourf(*shown.axes, clipped, levels=levels, cmap=colours, zorder=0)
    filled.set_rasterized(True)  # as curves, they would be most of a file
    for level, width, line in ((-1.0, 0.6, "--"), (0.0, 1.4, "-"), (1.0, 0.6, "--")):
        if values.min() < level < values.max():
            axes.contour(
                *shown.axes, values, levels=[level], colors="black", linewidths=width,
                linestyles=line, zorder=2,
            )  # fmt: skip


def _draw_regions(axes: Axes, shown: Boundary) -> None:
    """Colour the plane by the class of the greatest decision function; draw where two are equal."""
    from matplotlib.colors import to_rgb

    winner = shown.values.argmax(axis=0)
    pale = 1.0 - PALE * (1.0 - np.array([to_rgb(colour) for colour in _colours(shown)]))
    extent = (*shown.axes[0][[0, -1]], *shown.axes[1][[0, -1]])
    axes.imshow(pale[winner], extent=extent, origin="lower", aspect="auto", zorder=0)
    for number in np.unique(winner):
        others = np.delete(shown.values, number, axis=0).max(axis=0)
        lead = shown.values[number] - others
        if lead.min() < 0.0 < lead.max():
            axes.contour(*shown.axes, lead, levels=[0.0], colors="black", linewidths=0.9, zorder=2)


def _colours(shown: Boundary) -> list[Any]:
    """Return a colour for each class."""
    if len(shown.class_names) == 2:
        return list(TWO_COLOURS)
    import matplotlib as mpl

    palette = mpl.color_sequences["tab10"]
    return [palette[number % len(palette)] for number in range(len(shown.class_names))]


def _draw_points(axes: Axes, shown: Boundary, role: str, rows: Any) -> None:
    """Draw the points of one role in the colours of their classes, or in grey if unlabelled."""
    for number in range(len(shown.class_names)):
        some = rows[shown.numbers[rows] == number]
        colour = GREY if role == "unlabelled" else _colours(shown)[number]
        marker = "o" if role == "unlabelled" else MARKERS[number % len(MARKERS)]
        x, y = shown.points[some].T
        axes.scatter(x, y, color=colour, marker=marker, **MARKS[role])


def _legend(shown: Boundary) -> list[Any]:
    """Return the entries of the legend: a mark for each role and class, and the lines."""
    from matplotlib.lines import Line2D

    def mark(label: str, colour: str, marker: str, role: str) -> Line2D:
        style = MARKS[role]
        return Line2D(
            [], [], linestyle="none", marker=marker, label=label, color=colour,
            markersize=np.sqrt(style["s"]) * 0.85 + 0.8, alpha=style.get("alpha"),
            markeredgecolor=style.get("edgecolors", colour), markeredgewidth=style["linewidths"],
        )  # fmt: skip

    handles = []
    for role in shown.roles:
        if role == "unlabelled":
            handles.append(mark(role, GREY, "o", role))
            continue
        for number, name in enumerate(shown.class_names):
            called = f"class {name}" if name.lstrip("+-").isdigit() else name
            colour, marker = _colours(shown)[number], MARKERS[number % len(MARKERS)]
            handles.append(mark(f"{called}, {role}", colour, marker, role))
    handles.append(Line2D([], [], color="black", linewidth=1.4, label="boundary"))
    if len(shown.values) == 1 and (shown.values.min() < -1.0 or shown.values.max() > 1.0):
        handles.append(
            Line2D([], [], color="black", linewidth=0.6, linestyle="--", label="margins, f = ±1")
        )
    return handles


# Metadata field of each kind of file that holds the content id.
CARRIERS = {".png": "Source", ".svg": "Identifier"}
DOTS_PER_INCH = 220
VERSION = 1  # of the style of pictures
FIRST_SPLIT = 0
LINE_LETTERS = 46  # letters below a title


def keep_figure(folder: Path, name: str, content: str, draw: Callable[[], Figure]) -> bool:
    """Draw a picture and write it as ``NAME.png`` and ``NAME.svg``, unless both exist.

    The content id of the picture is written into the files.  True if the picture was drawn.
    """
    import matplotlib as mpl

    paths = [folder / f"{name}{suffix}" for suffix in CARRIERS]
    if all(path.exists() and content.encode() in path.read_bytes() for path in paths):
        return False
    figure = draw()
    for path in paths:
        metadata: dict[str, str | None] = {CARRIERS[path.suffix]: content}
        if path.suffix == ".svg":
            metadata["Date"] = None
        with replacing(path) as temporary, mpl.rc_context({"svg.hashsalt": content}):
            figure.savefig(temporary, format=path.suffix[1:], dpi=DOTS_PER_INCH, metadata=metadata)
    return True


def content_of(record: RunRecord, title: str, subtitle: str) -> str:
    """Return the content id of the picture of a run."""
    return content_id(version=VERSION, run=record.id, title=title, subtitle=subtitle)


def draw_figures(plan: Plan, resolved: Resolved, store: Journal, folder: Path) -> tuple[Path, ...]:
    """Draw the pictures that a sweep requests and whose runs are complete.

    There is one for every data set, bank and method, of its best setting on the first split.  An
    existing picture with the same content is not drawn again.  Paths are without their suffixes.
    """
    if not plan.spec.outputs.figures:
        return ()
    remove_temporaries(folder)
    banks = {(bank.id, bank.spec.label, bank.dataset): bank for bank in plan.banks}
    several_banks = len(plan.spec.sized_banks) > 1
    places: dict[tuple[str, str, str], list[RunPlan]] = {}
    for run in plan.runs:
        if run.split == FIRST_SPLIT:
            places.setdefault((run.dataset, run.bank_label, run.key), []).append(run)
    metric, paths = plan.spec.metric_of("classification"), []
    for (dataset, label, key), runs in places.items():
        complete = [
            (run, record)
            for run in runs
            if (record := store.read(run.id)) is not None and record.state is RunState.COMPLETE
        ]
        if not complete:
            continue
        scores = complete[0][1].scores
        score = next(name for name in map(metric.variable, PARTS) if name in scores)
        run, best = min(complete, key=lambda pair: metric.loss(pair[1].scores[score]))
        grid = resolved.grids[dataset][key]
        title = f"{dataset}: {key}" + f", {label}" * several_banks
        subtitle = subtitle_of(best, grid.run_parameters or grid.dims)
        name = "-".join([dataset, *[label] * several_banks, key])
        bank, (points, splits) = banks[run.bank, label, dataset], resolved.datasets[dataset]

        def draw(
            bank: BankPlan = bank,
            points: Dataset = points,
            splits: Any = splits,
            best: RunRecord = best,
            words: tuple[str, str] = (title, subtitle),
        ) -> Figure:
            return draw_boundary(boundary(bank, points, splits, best), *words)

        keep_figure(folder, name, content_of(best, title, subtitle), draw)
        paths.append(folder / name)
    return tuple(paths)


def undrawable_runs(plan: Plan, store: Journal) -> list[str]:
    """Return complete runs that a picture may need but whose coefficients were not kept."""
    if not plan.spec.outputs.figures:
        return []
    wanted = (store.read(run.id) for run in plan.runs if run.split == FIRST_SPLIT)
    return [
        record.id
        for record in wanted
        if record is not None and record.state is RunState.COMPLETE and not record.train_rows.size
    ]


def subtitle_of(record: RunRecord, dims: Iterable[str]) -> str:
    """Return a run's error and number of kernels, and below them its hyperparameters.

    Lines break between phrases alone.
    """
    values = {name: record.params.get(name) for name in dims}
    settings = [f"{name} = {f'{value:.6g}' if isinstance(value, float) else value}"
                for name, value in values.items()]  # fmt: skip
    words = [f"{part} error {100 * record.scores[name]:.3g} %"
             for part in ("test", "unlabelled")
             if (name := f"{part}_error") in record.scores]  # fmt: skip
    words.append(pluralize(record.n_active, "kernel"))
    lines = [
        wrap(", ".join(phrase.replace(" ", "\xa0") for phrase in phrases), LINE_LETTERS)
        for phrases in (words, settings)
    ]
    return "\n".join(line for some in lines for line in some).replace("\xa0", " ")
