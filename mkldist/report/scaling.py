"""A scaling study as table, warnings, figure and files, for ``mkldist scale`` and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import mkldist.plot as plot
from mkldist.analysis.growth import PARTS, SIZES, Growth
from mkldist.core.durable import check_free, make_folder, write_file, writing
from mkldist.errors import InputError
from mkldist.plot import Look
from mkldist.report.charts import HEIGHT, Chart, figure_of
from mkldist.report.sentences import Caution, Facts, records, shared_times, slug
from mkldist.report.tables import Cell, Row, Table, keyed, numbers, text, with_ends
from mkldist.results.folder import inputs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ENOUGH_SIZES = 3
NO_FIGURES = "No figures: pip install 'mkldist[figures]' installs what draws them."
BENT = 0.2  # change of an exponent towards the largest sizes that is told


def exponents_table(growth: Growth) -> Table:
    """Return the exponents of all methods, with the shares of the parts at the largest size."""
    rows, over = growth.of_runs, growth.over
    rows = rows.replace({"low": {-np.inf: np.nan}})
    several = [name for name in ("dataset", "bank", growth.other) if rows[name].nunique() > 1]
    columns = {SIZES.get(name, name): numbers(name) if name in SIZES else text(name)
               for name in several}  # fmt: skip
    columns |= {
        "method": text("method"),
        SIZES[over]: keyed(
            "n_sizes", lambda row: f"{row['n_sizes']}: {row['smallest']:,}…{row['largest']:,}"
        ),
        "exponent [95 %]": with_ends("exponent", lambda _: "{:.2f}".format, "low", "high"),
        "of CPU": numbers("cpu_exponent", "{:.2f}"),
        "seconds, largest": numbers("at_largest", "{:.3g}"),
        **{f"{part} %": _percent(part) for part in PARTS},
    }
    caption = (
        "Fits of seconds = a size^k: the exponent k, and shares of the seconds of a split at the "
        "largest size. Rows with runs that stopped before their tolerance are marked."
    )
    name = f"exponents-{over.replace('_', '-')}"
    return Table(name, rows, columns, lambda row: row["early"] > 0, caption)


def _percent(part: str) -> Callable[[Row], Cell]:
    return keyed(part, lambda row: f"{100.0 * row[part]:.0f}")


def growth_cautions(found: Sequence[Growth]) -> list[Caution]:
    """Return what a reader of a study has to beware of."""
    cautions = []
    for growth in found:
        runs, other, over = growth.of_runs, growth.other, SIZES[growth.over]
        if (runs["n_sizes"] < ENOUGH_SIZES).any():
            cautions.append(Caution(
                "Fewer than three sizes",
                f"Two numbers of {over} give an exponent, and cannot show whether the time is a "
                "power of the size at all.",
            ))  # fmt: skip
        early = runs[runs["early"] > 0].groupby("method", sort=False)["early"].sum()
        if len(early):
            counts = ", ".join(f"{method} ({count})" for method, count in early.items())
            cautions.append(Caution(
                "Runs that stopped early",
                f"Runs of {counts} stopped before their tolerance, and are marked. Their times, "
                f"against {over}, are shorter than those to the solution.",
            ))  # fmt: skip
        bent = ", ".join(
            f"{row['method']} {row['exponent']:.2f} (last {row['last_exponent']:.2f})"
            + f" at {row[other]:,} {SIZES[other]}" * (runs[other].nunique() > 1)
            for row in records(runs[(runs["last_exponent"] - runs["exponent"]).abs() > BENT])
        )
        if bent:
            cautions.append(Caution(
                "No single power",
                f"Time against {over} bends. Exponents over all sizes, and between the two "
                f"largest: {bent}.",
            ))  # fmt: skip
    # Studies over two sizes share their runs.
    missing = [growth.means[["failed", "waiting"]].sum() for growth in found]
    failed, waiting = (max((one[n] for one in missing), default=0) for n in ("failed", "waiting"))
    if failed or waiting:
        cautions.append(Caution(
            "Runs missing",
            f"Of the runs, {failed} failed and {waiting} wait. Each method counts at settings that "
            "are complete at all sizes, on splits that have them all.",
        ))  # fmt: skip
    return cautions


def charts_of(growth: Growth, looks: Mapping[str, Look], most: int | None = None) -> list[Chart]:
    """Return the time of a run against the size, of the first `most` data sets and banks."""
    places = growth.fits[["dataset", "bank"]].drop_duplicates()
    several = [name for name in places if places[name].nunique() > 1]
    charts = []
    for place in records(places)[:most]:
        words = [place[str(name)] for name in several]
        ending = "-".join([growth.over.replace("_", "-"), *map(slug, words)])
        own = growth.on(place["dataset"], place["bank"])
        other, panels = own.other, own.ends_of_other
        table = own.times[(own.times["counted"] > 0) & own.times[other].isin(panels)]

        def panel(value: int, ax: Axes, own: Growth = own) -> None:
            plot.scaling(own, at=value, looks=looks, ax=ax)
            if len(own.ends_of_other) > 1:
                ax.set_title(f"{value:,} {SIZES[own.other]}")

        charts.append(Chart(
            f"time-{ending}",
            f"Time against the number of {SIZES[growth.over]}"
            + f" ({', '.join(words)})" * bool(words),
            "A mark is the mean over the settings on one split, hollow where a run stopped before "
            "its tolerance. Lines are fits of seconds = a size^k, of the exponents in the table.",
            table[["method", *SIZES, "split", "seconds", "counted", "counted_early"]],
            partial(
                figure_of,
                *(partial(panel, value) for value in panels),
                height=HEIGHT * (1 + 0.75 * (len(panels) - 1)),
                shared="y",
                most=2,
            ),
        ))  # fmt: skip
    return charts


@dataclass(frozen=True, eq=False)
class ScalingStudy:
    """Growth of the times of a sweep over the sizes that grow."""

    growths: Sequence[Growth]
    tables: list[Table]  # The exponents over each size
    cautions: list[Caution]
    charts: list[Chart]  # none where matplotlib is not installed
    times: pd.DataFrame  # The table of ``mkldist.analysis.scaling`` over each size
    fits: pd.DataFrame  # That of ``mkldist.analysis.scaling_fits``

    @classmethod
    def of(cls, facts: Facts, growths: Sequence[Growth]) -> ScalingStudy:
        """Return the study of some growths."""
        drawn = growths if find_spec("matplotlib") is not None else ()
        fits = _one_table([one.fits for one in growths])
        return cls(
            growths,
            [exponents_table(growth) for growth in growths],
            [*shared_times(facts), *growth_cautions(growths)],
            [chart for one in drawn for chart in charts_of(one, facts.looks)],
            _one_table([one.means.assign(over=one.over) for one in growths]),
            fits.astype({name: "Int64" for name in SIZES if name in fits}),
        )

    def write(self, folder: Path, results: Path, *, overwrite: bool = False) -> None:
        """Write both tables as CSV, and each figure as PDF, SVG, PNG and CSV."""
        inputs = inputs_of(results)
        tables = {folder / f"scaling-{name}.csv": getattr(self, name) for name in ("times", "fits")}
        for file in (*tables, *(file for chart in self.charts for file in chart.files(folder))):
            check_free(file, overwrite=overwrite, inputs=inputs)
        with writing(folder):
            make_folder(folder)
            for file, table in tables.items():
                write_file(file, [table.to_csv(index=False).encode()])
            for chart in self.charts:
                chart.write(folder)


def _one_table(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables below each other, the size that grows first."""
    table = pd.concat(tables, ignore_index=True)
    return table[["over", *(name for name in table if name != "over")]]


def scaling_study(results: Path, over: Sequence[str] = ()) -> ScalingStudy:
    """Return the growth of the times of a sweep, perhaps running, over sizes, by default all."""
    facts = Facts.of(results)
    names = [name for name in SIZES if name in over or not over]
    found = [growth for growth in facts.growths if growth.over in names]
    fitted = [growth for growth in found if not growth.fits.empty]
    if fitted:
        return ScalingStudy.of(facts, fitted)
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
