"""Drawing of a decision boundary: blue against red, deeper away from the boundary.

With more than two classes, each class has a colour; its region is filled with a pale tint of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.figures.boundary import Boundary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.4  # inches, a column of a paper
BESIDE, BESIDES = 0.65, 1.25  # inches beside and above the plane, for labels and legend
LINE = 0.15  # inches
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
    """Return the picture of a decision boundary.

    Parameters
    ----------
    shown : Boundary
        Data of the picture.
    title, subtitle : str
        Text above the plane; the subtitle may have several lines.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        handles = _legend(shown)
        n_columns = 3 if max(map(len, shown.class_names)) < LONG_NAME else 2
        n_lines = subtitle.count("\n") + max(0, -(-len(handles) // n_columns) - 2)
        height = BESIDES + LINE * n_lines + (WIDTH - BESIDE) * _ratio(shown)
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
