"""A scaling study in tables, warnings, figures and files, for ``mkldist scale`` and the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import mkldist.plot as plot
from mkldist.analysis.growth import PARTS, SIZES, Growth, overview, seconds_text
from mkldist.core.durable import check_free, make_folder, remove_temporaries, write_file, writing
from mkldist.core.metrics import NOTHING
from mkldist.errors import InputError
from mkldist.report.charts import HEIGHT, Chart, figure_of
from mkldist.report.facts import Facts, origin_of, records, slug
from mkldist.report.sentences import Caution, shared_times
from mkldist.report.tables import Table, keyed, numbers, text
from mkldist.results.folder import inputs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mkldist.plot import Look

ENOUGH_SIZES = 3
NO_FIGURES = "No figures: pip install 'mkldist[figures]' installs what draws them."
MARK = ".results"  # file that tells of which results the files of a folder are
BENT = 0.2  # change of an exponent towards the largest sizes that is told
Row = Mapping[str, Any]


# Tables and warnings.


def exponents_table(growth: Growth) -> Table:
    """Return the exponents of all methods, for the page."""
    rows, over = overview(growth), growth.over
    several = [name for name in ("dataset", "bank", growth.other) if rows[name].nunique() > 1]
    columns = {SIZES.get(name, name): numbers(name) if name in SIZES else text(name)
               for name in several}  # fmt: skip
    columns |= {
        "method": text("method"),
        SIZES[over]: keyed("n_sizes", sizes_text),
        "exponent": numbers("exponent", "{:.2f}"),
        "95 % interval": keyed("low", interval_text),
        "of CPU time": numbers("cpu_exponent", "{:.2f}"),
        "seconds at the largest": keyed("at_largest", lambda row: seconds_text(row["at_largest"])),
        **{f"{part} %": keyed(part, lambda row, part=part: share_text(row, part))  # type: ignore[misc]
           for part in PARTS},
    }  # fmt: skip
    caption = "Rows with runs that stopped before their tolerance are marked."
    name = f"exponents-{over.replace('_', '-')}"
    return Table(name, rows, columns, lambda row: row["early"] > 0, caption)


def sizes_text(row: Row) -> str:
    """Return how many sizes a fit has, and which: ``4: 100…3,000``."""
    return f"{row['n_sizes']}: {row['smallest']:,}…{row['largest']:,}"


def interval_text(row: Row) -> str:
    """Return the interval of an exponent, a dash where there is none."""
    return f"[{row['low']:.2f}, {row['high']:.2f}]" if np.isfinite(row["low"]) else NOTHING


def share_text(row: Row, part: str) -> str:
    """Return the share of a part in percent, a dash where the results do not hold it."""
    known = part != "build" or row["has_build"]
    return f"{100.0 * row[part]:.0f}" if known else NOTHING


def growth_cautions(found: Sequence[Growth]) -> list[Caution]:
    """Return what a reader of a study has to beware of."""
    # Studies over two sizes share their runs.
    missing = [growth.means[["failed", "waiting"]].sum() for growth in found]
    failed, waiting = (max((one[n] for one in missing), default=0) for n in ("failed", "waiting"))
    runs_missing = Caution(
        "Runs missing",
        f"Of the runs, {failed} failed and {waiting} wait. Each method counts at settings that are "
        "complete at all sizes, on splits that have them all.",
    )
    of_sizes = [caution for growth in found for caution in _of_growth(growth)]
    return [*of_sizes, *[runs_missing] * bool(failed or waiting)]


def _of_growth(growth: Growth) -> Iterator[Caution]:
    runs, other, over = growth.of_runs, growth.other, SIZES[growth.over]
    if (runs["n_sizes"] < ENOUGH_SIZES).any():
        yield Caution(
            "Fewer than three sizes",
            f"Two numbers of {over} give an exponent, and cannot show whether the time is a power "
            "of the size at all.",
        )
    early = runs[runs["early"] > 0].groupby("method", sort=False)["early"].sum()
    if len(early):
        counts = ", ".join(f"{method} ({count})" for method, count in early.items())
        yield Caution(
            "Runs that stopped early",
            f"Runs of {counts} stopped before their tolerance, and are marked. Their times, "
            f"against {over}, are shorter than those to the solution.",
        )
    change = (runs["last_exponent"] - runs["exponent"]).abs()
    bent = [
        f"{row['method']} {row['exponent']:.2f} (last {row['last_exponent']:.2f})"
        + f" at {row[other]:,} {SIZES[other]}" * (runs[other].nunique() > 1)
        for row in records(runs[change > BENT])
    ]
    if bent:
        yield Caution(
            "No single power",
            f"Time against {over} bends. Exponents over all sizes, and between the two largest: "
            f"{', '.join(bent)}.",
        )


# Figures.

ROW, FRAME = 0.19, 1.0  # inches: height of a bar or heading, and of axis and legend together


def charts_of(growth: Growth, looks: Mapping[str, Look], most: int | None = None) -> list[Chart]:
    """Return the figures of a study, two for each data set and bank, of the first `most`."""
    places = growth.fits[["dataset", "bank"]].drop_duplicates()
    several = [name for name in places if places[name].nunique() > 1]
    charts = []
    for place in records(places)[:most]:
        words = [place[str(name)] for name in several]
        ending = "-".join([growth.over.replace("_", "-"), *map(slug, words)])
        of = f" ({', '.join(words)})" if words else ""
        own = growth.on(place["dataset"], place["bank"])
        charts += [_time_chart(own, looks, f"time-{ending}", of)]
        charts += _parts_chart(own, looks, f"parts-{ending}", of)
    return charts


def _time_chart(growth: Growth, looks: Mapping[str, Look], name: str, of: str) -> Chart:
    """Return the time of a run against the size, a panel for the ends of the other size."""
    other, panels, fits = growth.other, growth.ends_of_other, growth.of_runs
    table = growth.times[(growth.times["counted"] > 0) & growth.times[other].isin(panels)]
    table = table[["method", *SIZES, "split", "seconds", "counted", "counted_early"]]
    alone = len(panels) == 1

    def panel(value: int, ax: Axes) -> None:
        plot.scaling(growth, at=value, looks=looks, ax=ax)
        if not alone:
            ax.set_title(f"{value:,} {SIZES[other]}")

    exponents = []
    for value in panels:
        rows = records(fits[fits[other] == value])
        found = [
            f"{row['method']} {row['exponent']:.2f}"
            + f" {interval_text(row)}" * bool(np.isfinite(row["low"]))
            for row in rows
        ]
        at = "" if alone else f"at {value:,} {SIZES[other]}: "
        exponents.append(at + "; ".join(found))
    return Chart(
        name,
        f"Time against the number of {SIZES[growth.over]}{of}",
        f"A mark is the mean over the settings on one split, hollow where a run stopped before its "
        f"tolerance. Lines are fits of seconds = a size^k; exponents k with 95 % intervals "
        f"{'are ' * alone}{', and '.join(exponents)}.",
        table,
        partial(
            figure_of,
            *(partial(panel, value) for value in panels),
            height=HEIGHT * (1 + 0.75 * (len(panels) - 1)),
            shared="y",
            most=2,
        ),
    )


def _parts_chart(growth: Growth, looks: Mapping[str, Look], name: str, of: str) -> Iterator[Chart]:
    """Yield the shares of build, passes and solver, a bar for each method and size."""
    over, other, value = growth.over, growth.other, growth.ends_of_other[-1]
    table = plot.part_table(growth)
    if table.empty:
        return
    shown = plot.shown_parts(table, over)
    height = FRAME + ROW * (len(shown) + shown["method"].nunique())
    at = f", at {value:,} {SIZES[other]}" * (len(growth.ends_of_other) > 1)
    missing = "" if shown["build"].any() else " The results hold no times of builds."
    yield Chart(
        name,
        f"Parts of the time by the number of {SIZES[over]}{of}",
        f"Shares of the build of the bank, which counts once a split, and of the passes and the "
        f"solvers of all settings of a method{at}. At the right are the seconds of a split in "
        f"all.{missing}",
        table,
        partial(figure_of, partial(plot.time_parts, growth, looks=looks), height=height),
    )


# The study.


@dataclass(frozen=True, eq=False)
class ScalingStudy:
    """Growth of the times of a sweep over the sizes that grow."""

    facts: Facts
    growths: list[Growth]

    @cached_property
    def cautions(self) -> list[Caution]:
        """Warnings."""
        return [*shared_times(self.facts), *growth_cautions(self.growths)]

    @cached_property
    def charts(self) -> list[Chart]:
        """The figures; none where matplotlib is not installed."""
        if find_spec("matplotlib") is None:
            return []
        return [chart for one in self.growths for chart in charts_of(one, self.facts.looks)]

    @property
    def note(self) -> str:
        """Advice on what the study lacks."""
        return "" if self.charts else NO_FIGURES

    @cached_property
    def times(self) -> pd.DataFrame:
        """The table of ``mkldist.analysis.scaling`` over each size."""
        tables = [one.means.assign(over=one.over) for one in self.growths]
        return _with_over_first(pd.concat(tables, ignore_index=True))

    @cached_property
    def fits(self) -> pd.DataFrame:
        """The table of ``mkldist.analysis.scaling_fits`` over each size."""
        tables = pd.concat([one.fits for one in self.growths], ignore_index=True)
        held = {name: "Int64" for name in SIZES if name in tables}
        return _with_over_first(tables.astype(held))

    def write(self, folder: Path, results: Path | None = None, *, overwrite: bool = False) -> None:
        """Write both tables as CSV, and each figure as PDF, SVG, PNG and CSV.

        Files that an earlier call wrote for the same results are replaced, others with `overwrite`;
        if one may not be replaced, an error says so and nothing is written.
        """
        origin, mark = "" if results is None else origin_of(results), folder / MARK
        try:
            own = bool(origin) and mark.read_text(errors="replace") == origin
        except OSError:
            own = False
        inputs = [] if results is None else inputs_of(results)
        tables = {folder / f"scaling-{name}.csv": getattr(self, name) for name in ("times", "fits")}
        for file in (*tables, *(file for chart in self.charts for file in chart.files(folder))):
            check_free(file, overwrite=overwrite or own, inputs=inputs)
        with writing(folder):
            make_folder(folder)
            remove_temporaries(folder)
            if origin:
                write_file(mark, [origin.encode()])
            for file, table in tables.items():
                write_file(file, [table.to_csv(index=False).encode()])
            for chart in self.charts:
                chart.write(folder)


def _with_over_first(table: pd.DataFrame) -> pd.DataFrame:
    return table[["over", *(name for name in table if name != "over")]]


def scaling_study(results: Path, over: Sequence[str] = ()) -> ScalingStudy:
    """Return the growth of the times of a sweep, which may be running, over sizes, by default all.

    Results in which no method has complete runs at two sizes are refused.
    """
    facts = Facts.of(results)
    names = [name for name in SIZES if name in over or not over]
    found = [growth for growth in facts.growths if growth.over in names]
    fitted = [growth for growth in found if not growth.fits.empty]
    if fitted:
        return ScalingStudy(facts, fitted)
    if found:
        raise InputError(
            str(results),
            f"no method with complete runs at two numbers of {SIZES[found[0].over]}",
            "complete runs at two sizes at least",
            "Repeat the command when further runs are complete and written to the results",
        )
    ways = {
        "n_kernels": "n_kernels = [100, 300, 1000] in [[banks]]",
        "n_train": "n_train = [100, 200, 400] in [splits]",
    }
    raise InputError(
        str(results),
        f"one number of {' and one of '.join(SIZES[name] for name in names)} for each data set and "
        "bank",
        "several, to tell a growth",
        f"Write {' or '.join(ways[name] for name in names)}, and repeat the sweep",
    )
