"""A figure of the report with its data, as SVG inside the page and as files."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.durable import replacing, write_file

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mkldist.report.palette import Look

WIDTH, HEIGHT = 3.5, 2.5  # inches: a column of a paper, in which no letter is below 7 points
LETTERS = 7.0  # points, of the smallest letters
KEY, LETTER = 4.5, 0.56  # widths of a key of a legend with its room, and of a letter, in letters
LINE = 0.15  # inches, height of a line of a legend
TICKS = {50.0: (1.0, 2.0, 5.0), 1000.0: (1.0, 3.0)}
"""Labels of each decade of a logarithmic axis, up to a ratio of its ends; beyond, powers of ten."""
INK, RULE = "#010203", "#010204"  # stand for the colours of text and rules, which the page sets
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": LETTERS,
    "xtick.labelsize": LETTERS,
    "ytick.labelsize": LETTERS,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}
_THEMED: dict[Any, Any] = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
) | {"grid.color": RULE, "axes.facecolor": "none", "figure.facecolor": "none"}
_PRINTED: dict[Any, Any] = {"grid.color": "#d9d9d9"}
FORMATS = ("pdf", "svg", "png")
UNITS = {"seconds": "s", "split_seconds": "s"}
"""Units of columns in all figures; other numbers have none, unless their figure says more."""
_ATTRIBUTE = re.compile(r'="[^"]*"')
_FONTS = re.compile(r"font-family: [^;\"]*;? ?")
_LONG = re.compile(r"-?\d+\.\d{3,}")
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r'(url\(#|xlink:href="#)([^")]+)')
_MARKS = re.compile(
    r'<g([^>]*)>\n((?:<use [^>]*(?P<style> style="[^"]*")/>\n)(?:<use [^>]*(?P=style)/>\n)*)</g>'
)
_UNTURNED = re.compile(r' transform="rotate\(-?0 [^"]*"')


def printed(name: str) -> dict[Any, Any]:
    """Return the style of a file of a figure, whose content depends on nothing else."""
    return {**STYLE, **_PRINTED, "svg.hashsalt": name}


@dataclass(frozen=True, eq=False)
class Chart:
    """One figure."""

    name: str  # Name of its files, in lower case with hyphens
    title: str  # What it shows, as a heading
    # How to read it, in whole sentences; screen readers read it as the text of the picture
    caption: str
    data: pd.DataFrame  # What is drawn
    draw: Callable[[], Figure]  # Function that returns the figure
    # Units of columns of `data` that depend on the figure
    units: Mapping[str, str] = field(default_factory=dict)

    def svg(self) -> str:
        """Return the figure as an ``<svg>`` element whose text and rules take the page's colours.

        Its ids begin with the figure's name, so that they stay apart from those of others.
        """
        import matplotlib as mpl

        buffer = io.StringIO()
        with mpl.rc_context({**STYLE, **_THEMED, "svg.hashsalt": self.name}):
            self.draw().savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        text = buffer.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = _with_ids_of(self.name, text)
        text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
        text = text.replace(INK, "currentColor").replace(RULE, "var(--rule)")
        fonts = _FONTS.search(text)
        style = f'style="{fonts[0].rstrip("; ")}" ' if fonts else ""
        label = f'role="img" aria-labelledby="{self.name}-title" {style}'
        return _compact(text).replace("<svg ", f"<svg {label}", 1)

    def table(self) -> pd.DataFrame:
        """Return the data with the units of its numbers in the headings, as in ``seconds (s)``."""
        known = {**UNITS, **self.units}
        numbers = self.data.select_dtypes("number")
        return self.data.rename(
            columns={name: f"{name} ({known.get(str(name), '1')})" for name in numbers}
        )

    def files(self, folder: Path) -> list[Path]:
        """Return ``NAME.pdf``, ``.svg``, ``.png`` and ``.csv`` in a folder."""
        return [folder / f"{self.name}.{suffix}" for suffix in (*FORMATS, "csv")]

    def write(self, folder: Path) -> None:
        """Write the :meth:`files` to a folder, which is there."""
        import matplotlib as mpl

        with mpl.rc_context(printed(self.name)):
            figure = self.draw()
            *pictures, table = self.files(folder)
            for suffix, file in zip(FORMATS, pictures, strict=True):
                with replacing(file) as temporary:
                    figure.savefig(temporary, format=suffix, dpi=220, facecolor="white")
        write_file(table, [self.table().to_csv(index=False).encode()])


def _compact(svg: str) -> str:
    """Return an SVG with coordinates of two decimals, and marks of one series in one style.

    Its fonts, its indentation and rotations by nothing are left out.
    """
    plain = _UNTURNED.sub("", _FONTS.sub("", svg))
    rounded = _ATTRIBUTE.sub(lambda value: _LONG.sub(_shorter, value[0]), plain)
    flat = re.sub(r"\n\s+", "\n", rounded)
    return _MARKS.sub(lambda m: f"<g{m[1]}{m['style']}>\n{m[2].replace(m['style'], '')}</g>", flat)


def _with_ids_of(name: str, svg: str) -> str:
    """Return an SVG whose ids are a name and a number, without those that nothing refers to."""
    referred = dict.fromkeys(found[2] for found in _REFERENCE.finditer(svg))
    ids = {old: f"{name}-{number}" for number, old in enumerate(referred)}
    told = _ID.sub(lambda m: f' id="{ids[m[1]]}"' if m[1] in ids else "", svg)
    return _REFERENCE.sub(lambda m: m[1] + ids[m[2]], told)


def _shorter(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) >= 1.0 else f"{value:.4g}"


def new_figure(
    n_rows: int = 1, n_columns: int = 1, height: float = HEIGHT, *, shared: bool = False
) -> tuple[Figure, Any]:
    """Return a figure of the report's width, and its axes as an array (n_rows, n_columns).

    With `shared`, axes in a column share their x, and those in a row their y.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex="col" if shared else "none",
                           sharey="row" if shared else "none")  # fmt: skip
    return figure, axes


def legend_below(figure: Figure, handles: Sequence[Artist] = (), most: int = 3) -> None:
    """Add a legend below the axes, in as many columns as have room, and make room for its rows."""
    shown = list(handles) or figure.axes[0].get_legend_handles_labels()[0]
    if not shown:
        return
    longest = max(len(str(handle.get_label())) for handle in shown)
    width = LETTERS * (KEY + LETTER * longest) / 72
    columns = min(most, max(1, int(figure.get_figwidth() / width)), len(shown))
    rows = -(-len(shown) // columns)
    figure.set_figheight(figure.get_figheight() + LINE * (rows - 1))
    figure.legend(handles=shown, loc="outside lower center", ncols=columns)


def line_with_band(ax: Axes, look: Look, name: str, x: Any, mean: Any, low: Any, high: Any) -> None:
    """Draw the line of one method, and a band between two series where they are known."""
    ax.plot(x, mean, color=look.colour, marker=look.marker, linestyle=look.line, label=name)
    if np.isfinite(low).any():
        ax.fill_between(x, low, high, color=look.colour, alpha=0.12, linewidth=0)


def logarithmic(axes: Axes, *names: str) -> None:
    """Make the axes ``"x"`` or ``"y"`` logarithmic, with labels such as 0.01 of one size.

    Exponents as superscripts would be too small to read in print.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for name in names:
        getattr(axes, f"set_{name}scale")("log")
        axis = axes.xaxis if name == "x" else axes.yaxis
        low, high = getattr(axes, f"get_{name}lim")()
        subs = next((some for most, some in TICKS.items() if high <= most * low), (1.0,))
        axis.set_major_locator(LogLocator(subs=subs, numticks=7))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def slug(text: str) -> str:
    """Return a name in small letters, digits and hyphens."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())
