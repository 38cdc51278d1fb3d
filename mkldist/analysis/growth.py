"""Growth of time with the number of kernels or of training points, and the parts of that time.

A *run* takes the time of its passes over the bank and of the solver's own code.  A *split* of one
method takes the build of its bank once, and the runs of all its settings.

Tables compare like with like.  They count the settings of a method that are complete at every size,
and the splits on which all of these are complete; so neither a run that failed nor one that waits
shifts a mean from one size to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy

from mkldist.errors import InputError, nearest
from mkldist.results.rows import hyperparameters, method_nodes, place_of, to_frame
from mkldist.results.schema import BANK_SERIES, DATASET_SERIES, SPLIT, RunState
from mkldist.solvers.progress import StopReason

if TYPE_CHECKING:
    import xarray as xr


SIZES = {"n_kernels": "kernels", "n_train": "training points"}
"""Sizes that a study varies, in words."""
COLUMNS_OF_PARTS = {
    "build": "build_seconds",
    "passes": "pass_seconds",
    "solver": "own_seconds",
    "run": "seconds",
    "total": "total_seconds",
    "cpu": "run_cpu_seconds",
}
"""Column that holds each part of the time; the first three add up to the time of a split."""
PARTS = ("build", "passes", "solver")
SERIES = ["dataset", "bank", "method"]
_CELL = [*SERIES, *SIZES]
_OF_SPLITS = ["build_seconds", "build_cpu_seconds", "bank_bytes"]
_OF_RUNS = ["seconds", "own_seconds", "pass_seconds", "cpu_seconds", "pass_cpu_seconds", "passes",
            "combines", "svm_solves", "svm_iterations", "newton_steps", "outer_iterations",
            "pass_bytes"]  # fmt: skip
_COUNTS = ["complete", "failed", "waiting", "early", "counted", "counted_early"]


def scaling(tree: xr.DataTree, over: str = "n_kernels") -> pd.DataFrame:
    """Return the mean time of each method at each size, and the parts of that time.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it; the sweep may be running.
    over : {"n_kernels", "n_train"}
        The size that grows.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method and pair of sizes, of those that have several values
        of `over`.  Data sets and banks of a list of sizes have the name of the list, and so have
        banks whose names differ in a number at the end, such as ``m100`` and ``m1000``.

        ``dataset``, ``bank``, ``method``, ``n_kernels``, ``n_train``
            the place; ``n_train`` is the median over the splits, 0 if it is not known;
        ``planned``, ``complete``, ``failed``, ``waiting``, ``early``
            numbers of runs; ``early`` ones are complete but stopped before their tolerance;
        ``counted``, ``settings``, ``splits``
            runs that the means are of, and their settings and splits; see the module;
        ``seconds``, ``pass_seconds``, ``own_seconds``
            wall time of a run, and its parts: passes and solver;
        ``run_cpu_seconds``, ``cpu_seconds``, ``pass_cpu_seconds``
            processor time of a run, of its solver and of its share of the passes;
        ``build_seconds``, ``build_cpu_seconds``, ``bank_bytes``
            time to build the bank of one split, and its size; every method has the same;
        ``total_seconds``
            time of a split: the build, once, and the runs of all settings;
        ``passes``, ``combines``, ``svm_solves``, ``svm_iterations``, ``newton_steps``
            work of a run;
        ``outer_iterations``, ``pass_bytes``
            rounds of its solver, and the kernel values that its passes read or computed;
        ``gap_max``
            largest certified gap of a counted run.

        Means are over the counted runs.  What the results do not hold is NaN.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/growth")  # of several sizes  # doctest: +SKIP
    >>> table = mkldist.analysis.scaling(tree, over="n_kernels")  # doctest: +SKIP
    >>> table[["dataset", "method", "n_kernels", "complete"]].head(3)  # doctest: +SKIP
      dataset method  n_kernels  complete
    0    wdbc  level         10         2
    1    wdbc  level         30         2
    2    wdbc  level         90         2
    """
    return Growth.of(tree, over).means


def scaling_fits(tree: xr.DataTree, over: str = "n_kernels") -> pd.DataFrame:
    """Fit ``seconds = a size^k`` for each method, and each part of its time.

    The other size is held fixed: there is one fit for each of its values.  The least squares of
    logarithms have one value for each size, the geometric mean over the splits of the mean over the
    settings.  The interval is the wider of two: of the scatter of the sizes around the line, and of
    the exponents of the splits.  Where the time is no power of the size, an exponent is that of a
    mean growth; ``last_exponent`` tells.

    Parameters
    ----------
    tree, over
        As for :func:`scaling`.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method, value of the other size, and ``part``:

        ``build``, ``passes``, ``solver``
            the bank of a split; passes and solver of a run;
        ``run``, ``total``
            passes and solver of a run; the build and the runs of all settings on a split;
        ``cpu``
            processor time of a run.

        Its columns are ``over``; ``exponent``, ``low`` and ``high``, the ends of its 95 % interval,
        infinite where there are two sizes; ``factor``, the seconds at size 1; ``n_sizes``,
        ``n_values``, ``smallest`` and ``largest`` size; ``at_largest``, the mean seconds there, and
        ``share``, those of the first three parts in the time of a split; ``last_exponent``, the
        growth between the two largest sizes; ``early``, the number of counted runs that stopped
        before their tolerance.  Parts without time at two sizes have no row.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/growth")  # of several sizes  # doctest: +SKIP
    >>> fits = mkldist.analysis.scaling_fits(tree, over="n_kernels")  # doctest: +SKIP
    >>> fits.part.unique().tolist()  # doctest: +SKIP
    ['build', 'passes', 'solver', 'run', 'total', 'cpu']
    """
    return Growth.of(tree, over).fits


@dataclass(frozen=True, eq=False)
class Growth:
    """Times of a sweep over one size."""

    over: str  # The size
    times: pd.DataFrame  # The rows of ``means``, one for each split

    @classmethod
    def of(cls, tree: xr.DataTree, over: str) -> Growth:
        """Read the times from a tree of results."""
        if over not in SIZES:
            expected = " or ".join(f'"{name}"' for name in SIZES)
            raise InputError("scaling", f"over = {over!r}", expected, nearest(over, SIZES))
        runs = _runs(tree)
        runs["counted"] = _comparable(runs, over)
        runs["counted_early"] = runs["early"] & runs["counted"]
        averaged = [*_OF_RUNS, "run_cpu_seconds"]
        runs[[*averaged, "gap"]] = runs[[*averaged, "gap"]].where(runs["counted"])
        cells = runs.groupby([*_CELL, SPLIT], sort=False)
        table = cells[_COUNTS].sum().assign(planned=cells.size(), gap_max=cells["gap"].max())
        table = table.join([cells[averaged].mean(), cells[_OF_SPLITS].first()]).reset_index()
        table["total_seconds"] = table["build_seconds"] + table["counted"] * table["seconds"]
        group = [name for name in _CELL if name != over]
        several = table.groupby(group)[over].transform("nunique") > 1
        order = {name: {value: n for n, value in enumerate(table[name].unique())}
                 for name in SERIES}  # fmt: skip
        return cls(over, table[several].sort_values(
            [*group, over, SPLIT], ignore_index=True,
            key=lambda values: values.map(order[values.name]) if values.name in order else values,
        ))  # fmt: skip

    @cached_property
    def means(self) -> pd.DataFrame:
        """The table of :func:`scaling`."""
        times = self.times.assign(
            settings=self.times["counted"], splits=(self.times["counted"] > 0).astype(int)
        )
        how = dict.fromkeys(["planned", *_COUNTS, "splits"], "sum")
        how |= {"settings": "max", "gap_max": "max"}
        others = [name for name in times if name not in (*_CELL, SPLIT, *how)]
        return (
            times.groupby(_CELL, sort=False).agg(how | dict.fromkeys(others, "mean")).reset_index()
        )

    @cached_property
    def fits(self) -> pd.DataFrame:
        """The table of :func:`scaling_fits`."""
        group = [*SERIES, self.other]
        rows = [
            {**dict(zip(group, place, strict=True)), "over": self.over, **row}
            for place, some in self.times[self.times["counted"] > 0].groupby(group, sort=False)
            for row in _fits(some, self.over)
        ]
        columns = [*group, "over", "part", "exponent", "low", "high", "factor", "n_sizes",
                   "n_values", "smallest", "largest", "at_largest", "share", "last_exponent",
                   "early"]  # fmt: skip
        return pd.DataFrame(rows, columns=columns)

    @property
    def other(self) -> str:
        """The size that each fit holds fixed."""
        return next(name for name in SIZES if name != self.over)

    @property
    def ends_of_other(self) -> list[int]:
        """Least and largest value of the other size that has a fit; one if they are equal."""
        values = self.fits[self.other]
        return sorted({int(values.min()), int(values.max())})

    @cached_property
    def of_runs(self) -> pd.DataFrame:
        """The fits of the time of a run, with the share of each part and ``cpu_exponent``."""
        place = [*SERIES, self.other]
        found = self.fits[self.fits["part"] == "run"].drop(columns="share")
        shares = self.fits.pivot(index=place, columns="part", values="share").reindex(columns=PARTS)
        cpu = self.fits[self.fits["part"] == "cpu"].set_index(place)["exponent"]
        return found.join(shares, on=place).join(cpu.rename("cpu_exponent"), on=place)

    def on(self, dataset: str, bank: str) -> Growth:
        """Return the same on one data set and bank."""
        own = (self.times["dataset"] == dataset) & (self.times["bank"] == bank)
        return replace(self, times=self.times[own])


def _fits(some: pd.DataFrame, over: str) -> Iterator[dict[str, Any]]:
    """Yield the fit of each part of the time of one method that has some at two sizes."""
    at_end = some[some[over] == some[over].max()]
    each = {part: at_end[COLUMNS_OF_PARTS[part]].fillna(0.0) for part in PARTS}
    each |= {part: at_end["counted"] * each[part] for part in ("passes", "solver")}
    total = sum(one.sum() for one in each.values())
    for part, column in COLUMNS_OF_PARTS.items():
        known = some[some[column] > 0.0]
        by_split = known.pivot(index=over, columns=SPLIT, values=column).sort_index().map(np.log)
        if len(by_split) < 2:
            continue
        means, sizes = by_split.mean(axis=1), by_split.index.to_numpy(float)
        line = scipy.stats.linregress(np.log(sizes), means)
        freedom = len(sizes) - 2
        half = line.stderr * scipy.stats.t.ppf(0.975, freedom) if freedom else np.inf
        slopes = np.polyfit(np.log(sizes), by_split.dropna(axis=1).to_numpy(), 1)[0]
        if len(slopes) > 1:  # what a size has of its own, all splits share
            of_splits = scipy.stats.sem(slopes) * scipy.stats.t.ppf(0.975, len(slopes) - 1)
            half = max(half, of_splits)
        yield {
            "part": part,
            "exponent": line.slope,
            "low": line.slope - half,
            "high": line.slope + half,
            "factor": np.exp(line.intercept),
            "n_sizes": len(sizes),
            "n_values": len(known),
            "smallest": int(sizes[0]),
            "largest": int(sizes[-1]),
            "at_largest": float(known[column][known[over] == sizes[-1]].mean()),
            "share": each[part].sum() / total if part in each else np.nan,
            "last_exponent": float(np.diff(means)[-1] / np.log(sizes[-1] / sizes[-2])),
            "early": int(known["counted_early"].sum()),
        }


def _comparable(runs: pd.DataFrame, over: str) -> pd.Series:
    """Return which runs count: of settings complete at all sizes, on splits that have them all."""
    group = [name for name in _CELL if name != over]
    sizes = runs.assign(done=runs[over].where(runs["complete"]))
    n_sizes = sizes.groupby(group)["done"].transform("nunique")
    at_all = sizes.groupby([*group, "setting"])["done"].transform("nunique") == n_sizes
    kept = runs["complete"] & at_all
    wanted = runs.assign(setting=runs["setting"].where(kept)).groupby(group)["setting"]
    there = kept.groupby([runs[name] for name in [*_CELL, SPLIT]]).transform("sum")
    return kept & (there == wanted.transform("nunique"))


def _runs(tree: xr.DataTree) -> pd.DataFrame:
    """Return a row for each planned run: place, setting, state, times, counters and its bank."""
    nodes = method_nodes(tree)
    numbers = [*_OF_RUNS, "gap", *_OF_SPLITS, *SIZES]
    rows = to_frame(tree, ["state", "stop_reason", *numbers])
    # A hyperparameter of one method may be a number that follows from the split in another.
    having: dict[str, set[str]] = {}
    for node in nodes:
        for name in hyperparameters(node):
            having.setdefault(name, set()).add(str(node.name))
    own = {name: rows[name].where(rows["method"].isin(of)) for name, of in having.items()}
    settings = rows[["method"]].assign(**own)
    names = series_names(nodes)
    places = pd.DataFrame([place_of(node) for node in nodes], columns=SERIES)
    places[["series", "bank_series"]] = [names[node.path] for node in nodes] or None
    rows = rows.reindex(columns=[*SERIES, SPLIT, "state", "stop_reason", *numbers])
    rows[numbers] = rows[numbers].astype(float)
    sizes = rows.groupby(SERIES)[[*SIZES]].transform("median").fillna(0).astype(int)
    series = rows[SERIES].merge(places, how="left", on=SERIES)
    complete = (rows["state"] == RunState.COMPLETE.value) & rows["seconds"].notna()
    return rows.assign(
        **sizes,
        setting=settings.groupby([*settings], dropna=False, sort=False).ngroup(),
        dataset=series["series"],
        bank=series["bank_series"],
        complete=complete,
        failed=rows["state"] == RunState.FAILED.value,
        waiting=rows["state"] == RunState.WAITING.value,
        early=complete & (rows["stop_reason"] != StopReason.CONVERGED.value),
        run_cpu_seconds=rows["cpu_seconds"] + rows["pass_cpu_seconds"],
    )


def series_names(nodes: Sequence[xr.DataTree]) -> dict[str, tuple[str, str]]:
    """Return the names of the data sets and banks of each node without their sizes, by path."""
    found: dict[str, tuple[str, str]] = {}
    sizes: dict[str, set[tuple[str, int]]] = {}  # data sets and numbers of kernels of each bank
    for node in nodes:
        place, coords = place_of(node), node.ds.coords
        bank = str(node.attrs.get(BANK_SERIES, place["bank"]))
        found[node.path] = (str(node.attrs.get(DATASET_SERIES, place["dataset"])), bank)
        n_kernels = int(coords["n_kernels"].median()) if "n_kernels" in coords else 0
        sizes.setdefault(bank, set()).add((place["dataset"], n_kernels))
    stems: dict[str, list[str]] = {}
    for bank, there in sizes.items():
        if len(there) == len({dataset for dataset, _ in there}):
            stems.setdefault(re.sub(r"[-_. ]?\d+k?$", "", bank), []).append(bank)
    named: dict[str, str] = {}
    for stem, banks in stems.items():
        every = [one for bank in banks for one in sizes[bank]]
        if len(banks) > 1 and len(set(every)) == len(every):
            named |= dict.fromkeys(banks, stem or "banks")
    return {path: (dataset, named.get(bank, bank)) for path, (dataset, bank) in found.items()}
