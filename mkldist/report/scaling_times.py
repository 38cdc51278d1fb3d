"""Times of a sweep over a size that grows, as the report and ``mkldist scale`` show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from mkldist.analysis.growth import PARTS as ALL_PARTS
from mkldist.analysis.growth import SIZES, fits_of, means_of, split_times

if TYPE_CHECKING:
    import xarray as xr

PARTS = {part: ALL_PARTS[part] for part in ("build", "passes", "solver")}
"""Parts that add up to the time of a split, with the columns that hold them."""
"""Column of each part of the time of a split."""


@dataclass(frozen=True, eq=False)
class Growth:
    """Times of a sweep over one size.

    Parameters
    ----------
    over : {"n_kernels", "n_train"}
        The size.
    times, means, fits : DataFrame
        As of :func:`mkldist.analysis.growth.split_times`, ``means_of`` and ``fits_of``.
    """

    over: str
    times: pd.DataFrame
    means: pd.DataFrame
    fits: pd.DataFrame

    @classmethod
    def of(cls, tree: xr.DataTree, over: str) -> Growth:
        """Read the times from a tree of results."""
        times = split_times(tree, over)
        return cls(over, times, means_of(times), fits_of(times, over))

    @property
    def other(self) -> str:
        """The size that each fit holds fixed."""
        return next(name for name in SIZES if name != self.over)

    @property
    def ends_of_other(self) -> list[int]:
        """Least and largest value of the other size that has a fit; one if they are equal."""
        values = self.fits[self.other]
        return sorted({int(values.min()), int(values.max())})

    @property
    def of_runs(self) -> pd.DataFrame:
        """The fits of the time of a run, without those of its parts."""
        return self.fits[self.fits["part"] == "run"]

    def on(self, dataset: str, bank: str) -> Growth:
        """Return the same on one data set and bank."""
        times, means, fits = (
            table[(table["dataset"] == dataset) & (table["bank"] == bank)]
            for table in (self.times, self.means, self.fits)
        )
        return Growth(self.over, times, means, fits)


def growths_of(tree: xr.DataTree) -> list[Growth]:
    """Return the times over each size of which some method has runs at several values."""
    return [growth for name in SIZES if not (growth := Growth.of(tree, name)).times.empty]


def part_shares(means: pd.DataFrame) -> pd.DataFrame:
    """Return rows of ``scaling`` with the share of each part, and the seconds of a split.

    A part that the results do not hold has no share.  Sizes without counted runs have no row.
    """
    known = means[means["counted"] > 0]
    seconds = pd.DataFrame({part: known[name].fillna(0.0) for part, name in PARTS.items()})
    seconds[["passes", "solver"]] = seconds[["passes", "solver"]].mul(known["settings"], axis=0)
    total = seconds.sum(axis=1)
    shares = seconds.div(total.where(total > 0.0), axis=0)
    return known.assign(**{part: shares[part] for part in PARTS}, split_seconds=total)


def overview(growth: Growth) -> pd.DataFrame:
    """Return a row for each fit of the time of a run, with the shares at its largest size.

    ``cpu_exponent`` is that of its processor time, and ``has_build`` tells if the time of the build
    is known.
    """
    fits = growth.of_runs
    place = ["dataset", "bank", "method", growth.other]
    shares = part_shares(growth.means).rename(columns={growth.over: "largest"})
    shares["has_build"] = shares["build_seconds"].notna()
    cpu = growth.fits[growth.fits["part"] == "cpu"].rename(columns={"exponent": "cpu_exponent"})
    fits = fits.merge(cpu[[*place, "cpu_exponent"]], how="left", on=place)
    return fits.merge(shares[[*place, "largest", *PARTS, "has_build"]], on=[*place, "largest"])


def seconds_text(value: float) -> str:
    """Return seconds with three digits, and whole ones from a hundred on.

    Examples
    --------
    >>> [seconds_text(value) for value in (0.01234, 12.34, 1234.5)]
    ['0.0123', '12.3', '1,234']
    """
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
