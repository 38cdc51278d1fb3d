"""A scaling study in words, tables and files: ``mkldist scale``, and the times of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkldist.analysis.growth import PARTS, SIZES, Growth, overview, seconds_text
from mkldist.core.durable import check_free, make_folder, remove_temporaries, write_file, writing
from mkldist.core.metrics import NOTHING
from mkldist.errors import InputError
from mkldist.report.charts import Chart
from mkldist.report.facts import Facts, records
from mkldist.report.page_target import origin_of
from mkldist.report.scaling_figures import charts_of
from mkldist.report.tables import Cell, Row, Table, numbers, text
from mkldist.report.words import Caution, shared_times

ENOUGH_SIZES = 3
NO_FIGURES = "No figures: pip install 'mkldist[figures]' installs what draws them."
MARK = ".results"  # file that tells of which results the files of a folder are
BENDS, BY = 0.01, 0.1  # p-value of a power law, and change of its exponent, that are told


def exponents_table(growth: Growth) -> Table:
    """Return the exponents of all methods, for the page."""
    rows, over = overview(growth), growth.over
    places = [name for name in ("dataset", "bank") if rows[name].nunique() > 1]
    columns = {name: text(name) for name in places}
    if rows[growth.other].nunique() > 1:
        columns[SIZES[growth.other]] = numbers(growth.other)
    columns |= {
        "method": text("method"),
        SIZES[over]: lambda row: Cell(sizes_text(row), row["n_sizes"]),
        "exponent": numbers("exponent", "{:.2f}"),
        "95 % interval": lambda row: Cell(interval_text(row), row["low"]),
        "of CPU time": numbers("cpu_exponent", "{:.2f}"),
        "seconds at the largest": lambda row: Cell(
            seconds_text(row["at_largest"]), row["at_largest"]
        ),
        **{f"{part} %": _share(part) for part in PARTS},
    }
    caption = "Rows with runs that stopped before their tolerance are marked."
    return Table(
        f"exponents-{over.replace('_', '-')}", rows, columns, lambda row: row["early"] > 0, caption
    )


def _share(part: str) -> Callable[[Row], Cell]:
    return lambda row: Cell(share_text(row, part), row[part])


def sizes_text(row: dict[str, Any]) -> str:
    """Return how many sizes a fit has, and which: ``4: 100…3,000``."""
    return f"{row['n_sizes']}: {row['smallest']:,}…{row['largest']:,}"


def interval_text(row: dict[str, Any]) -> str:
    """Return the interval of an exponent, a dash where there is none."""
    return f"[{row['low']:.2f}, {row['high']:.2f}]" if np.isfinite(row["low"]) else NOTHING


def share_text(row: dict[str, Any], part: str) -> str:
    """Return the share of a part in percent, a dash where the results do not hold it."""
    if part == "build" and not row["has_build"]:
        return NOTHING
    return f"{100.0 * row[part]:.0f}"


def growth_cautions(found: Sequence[Growth]) -> list[Caution]:
    """Return what a reader of a study has to beware of."""
    own = [caution for one in found for of in (_few_sizes, _early, _bent) for caution in of(one)]
    return [*own, *_missing(found)]


def _few_sizes(growth: Growth) -> Iterator[Caution]:
    if (growth.of_runs["n_sizes"] < ENOUGH_SIZES).any():
        yield Caution(
            "Fewer than three sizes",
            f"Two numbers of {SIZES[growth.over]} give an exponent, and cannot show whether the "
            f"time is a power of the size at all.",
        )


def _early(growth: Growth) -> Iterator[Caution]:
    runs = growth.of_runs
    early = runs[runs["early"] > 0].groupby("method", sort=False)["early"].sum()
    if len(early):
        counts = ", ".join(f"{method} ({count})" for method, count in early.items())
        yield Caution(
            "Runs that stopped early",
            f"Runs of {counts} stopped before their tolerance, and are marked. Their times, "
            f"against {SIZES[growth.over]}, are shorter than those to the solution.",
        )


def _bent(growth: Growth) -> Iterator[Caution]:
    runs, other = growth.of_runs, growth.other
    change = (runs["last_exponent"] - runs["exponent"]).abs()
    bent = runs[(runs["lack_of_fit"] < BENDS) & (change > BY)]
    several = runs[other].nunique() > 1
    said = [
        f"{row['method']} {row['exponent']:.2f} (last {row['last_exponent']:.2f})"
        + (f" at {row[other]:,} {SIZES[other]}" if several else "")
        for row in records(bent)
    ]
    if said:
        yield Caution(
            "No single power",
            f"Time against {SIZES[growth.over]} bends. Exponents over all sizes, and between the "
            f"two largest: {', '.join(said)}.",
        )


def _missing(found: Sequence[Growth]) -> Iterator[Caution]:
    """Yield the numbers of failed and waiting runs; studies over two sizes share their runs."""
    counts = [growth.means[["failed", "waiting"]].sum() for growth in found]
    failed, waiting = (
        max((one[name] for one in counts), default=0) for name in ("failed", "waiting")
    )
    if failed or waiting:
        yield Caution(
            "Runs missing",
            f"Of the runs, {failed} failed and {waiting} wait. Each method counts at settings that "
            f"are complete at all sizes, on splits that have them all.",
        )


@dataclass(frozen=True, eq=False)
class ScalingStudy:
    """Growth of the times of a sweep."""

    facts: Facts  # Of the sweep
    growths: list[Growth]  # The sizes that grow

    @cached_property
    def cautions(self) -> list[Caution]:
        """Warnings."""
        return [
            *shared_times(self.facts),
            *growth_cautions(self.growths),
        ]

    @cached_property
    def charts(self) -> list[Chart]:
        """The figures; none where matplotlib is not installed."""
        if find_spec("matplotlib") is None:
            return []
        return [chart for one in self.growths for chart in charts_of(one, self.facts.looks)]

    @property
    def note(self) -> str:
        """Advice on each thing that the study lacks."""
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
        """Write both tables as CSV, and each figure as PDF, SVG, PNG and CSV."""
        origin, mark = "" if results is None else origin_of(results), folder / MARK
        own = bool(origin) and _text(mark) == origin
        tables = {folder / f"scaling-{name}.csv": getattr(self, name) for name in ("times", "fits")}
        for file in (*tables, *(file for chart in self.charts for file in chart.files(folder))):
            check_free(file, overwrite=overwrite or own)
        with writing(folder):
            make_folder(folder)
            remove_temporaries(folder)
            if origin:
                write_file(mark, [origin.encode()])
            for file, table in tables.items():
                write_file(file, [table.to_csv(index=False).encode()])
            for chart in self.charts:
                chart.write(folder)


def _text(file: Path) -> str:
    """Return the text of a file; empty where it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _with_over_first(table: pd.DataFrame) -> pd.DataFrame:
    return table[["over", *(name for name in table if name != "over")]]


def scaling_study(results: Path, over: Sequence[str] = ()) -> ScalingStudy:
    """Return the growth of the times of a sweep, which may be running."""
    facts = Facts.of(results)
    names = [name for name in SIZES if name in over or not over]
    found = [growth for growth in facts.growths if growth.over in names]
    fitted = [growth for growth in found if not growth.fits.empty]
    if not fitted:
        raise _unfinished(results, found[0].over) if found else _no_growth(results, names)
    return ScalingStudy(facts, fitted)


def _unfinished(results: Path, over: str) -> InputError:
    """Return the refusal of a study that has not come to a second size yet."""
    return InputError(
        str(results),
        f"no method with complete runs at two numbers of {SIZES[over]}",
        "complete runs at two sizes at least",
        "Repeat the command when further runs are complete and written to the results",
    )


def _no_growth(results: Path, names: Sequence[str]) -> InputError:
    """Return the refusal of results in which no size grows."""
    found = " and one of ".join(SIZES[name] for name in names)
    ways = {
        "n_kernels": "n_kernels = [100, 300, 1000] in [[banks]]",
        "n_train": "n_train = [100, 200, 400] in [splits]",
    }
    return InputError(
        str(results),
        f"one number of {found} for each data set and bank",
        "several, to tell a growth",
        f"Write {' or '.join(ways[name] for name in names)}, and repeat the sweep",
    )
