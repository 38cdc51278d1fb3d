"""Growth of time with the number of kernels or of training points, and the parts of that time.

A *run* takes the time of its passes over the bank and of the solver's own code.  A *split* of one
method takes the build of its bank once, and the runs of all its settings.

Tables compare like with like.  They count the settings of a method that are complete at every size,
and the splits on which all of these are complete; so neither a run that failed nor one that waits
shifts a mean from one size to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkldist.analysis.statistics import fit_repeated
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
"""Column that holds each part of the time."""
SERIES = ("dataset", "bank", "method")
_CELL = [*SERIES, *SIZES]
_OF_SPLITS = ("build_seconds", "build_cpu_seconds", "bank_bytes")
_TIMES = ("seconds", "own_seconds", "pass_seconds", "cpu_seconds", "pass_cpu_seconds",
          "run_cpu_seconds")  # fmt: skip
_COUNTERS = ("passes", "combines", "svm_solves", "svm_iterations", "newton_steps",
             "outer_iterations", "pass_bytes")  # fmt: skip
_RUNS = ("planned", "complete", "failed", "waiting", "early", "counted")
_MEANS = (*_TIMES, *_COUNTERS, "gap_max", *_OF_SPLITS, "total_seconds")


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

    Raises
    ------
    mkldist.errors.InputError
        For another `over`.

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
    return means_of(split_times(tree, over))


def scaling_fits(tree: xr.DataTree, over: str = "n_kernels", level: float = 0.95) -> pd.DataFrame:
    """Fit ``seconds = a size^k`` for each method, and each part of its time.

    The other size is held fixed: there is one fit for each of its values.  The least squares of
    logarithms have one value for each size, the geometric mean over the splits of the mean over the
    settings.  The interval is the wider of two: of the scatter of ``q`` sizes around the line, with
    ``q - 2`` degrees of freedom, and of the exponents of ``s`` splits, with ``s - 1``.  Splits
    share points, which neither counts.  Where the time is no power of the size, an exponent is that
    of a mean growth; ``last_exponent`` tells.

    Parameters
    ----------
    tree, over
        As for :func:`scaling`.
    level : float
        Confidence level, between 0 and 1.

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

        Its columns are ``over``; ``exponent``, ``low`` and ``high``, the ends of its interval,
        infinite where there are two sizes; ``factor``, the seconds at size 1;
        ``n_sizes``, ``n_values``, ``smallest`` and ``largest`` size; ``at_largest``, the mean
        seconds there; ``last_exponent``, the growth between the two largest sizes; ``early``, the
        number of counted runs that stopped before their tolerance.  Parts without time at two sizes
        have no row.

    Raises
    ------
    mkldist.errors.InputError
        For another `over`.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/growth")  # of several sizes  # doctest: +SKIP
    >>> fits = mkldist.analysis.scaling_fits(tree, over="n_kernels")  # doctest: +SKIP
    >>> fits.part.unique().tolist()  # doctest: +SKIP
    ['build', 'passes', 'solver', 'run', 'total', 'cpu']
    """
    return fits_of(split_times(tree, over), over, level)


def split_times(tree: xr.DataTree, over: str = "n_kernels") -> pd.DataFrame:
    """Return the table of :func:`scaling` with a row for each split, before it is averaged."""
    import pandas as pd

    if over not in SIZES:
        raise InputError(
            "scaling",
            f"over = {over!r}",
            " or ".join(f'"{n}"' for n in SIZES),
            nearest(over, SIZES),
        )
    sizes = {_sizes(node)[over] for node in method_nodes(tree)}
    runs = _runs(tree) if len(sizes) > 1 else pd.DataFrame()
    if runs.empty:
        return pd.DataFrame(columns=[*_CELL, SPLIT, *_RUNS, "settings", *_MEANS])
    runs["counted"] = _comparable(runs, over)
    counted = runs["counted"]
    for name in (*_TIMES, *_COUNTERS, "gap"):
        runs[name] = runs[name].where(counted)
    runs["counted_early"] = runs["early"] & counted
    cells = runs.groupby([*_CELL, SPLIT], sort=False)
    means = cells[[*_TIMES, *_COUNTERS]].mean()
    means["gap_max"] = cells["gap"].max()
    means[[*_OF_SPLITS]] = cells[[*_OF_SPLITS]].first()
    counts = cells[[*_RUNS[1:], "counted_early"]].sum()
    counts.insert(0, "planned", cells.size())
    counts["settings"] = counts["counted"]
    table = counts.join(means)
    table["total_seconds"] = table["build_seconds"] + table["settings"] * table["seconds"]
    table = table.reset_index()
    group = [name for name in _CELL if name != over]
    several = table.groupby(group)[over].transform("nunique") > 1
    order = {name: {value: n for n, value in enumerate(table[name].unique())} for name in SERIES}
    return table[several].sort_values(
        [*group, over, SPLIT],
        key=lambda values: values.map(order[values.name]) if values.name in order else values,
        ignore_index=True,
    )


def means_of(times: pd.DataFrame) -> pd.DataFrame:
    """Return the table of :func:`scaling` from that of :func:`split_times`."""
    cells = times.groupby(_CELL, sort=False)
    table = cells[[*_RUNS]].sum()
    table["settings"] = cells["settings"].max()
    table["splits"] = cells["counted"].agg(lambda counted: int((counted > 0).sum()))
    means = cells[[name for name in _MEANS if name != "gap_max"]].mean()
    means["gap_max"] = cells["gap_max"].max()
    return table.join(means).reset_index()


def fits_of(times: pd.DataFrame, over: str, level: float = 0.95) -> pd.DataFrame:
    """Return the table of :func:`scaling_fits` from that of :func:`split_times`."""
    import pandas as pd

    group = [name for name in _CELL if name != over]
    rows = [
        {**dict(zip(group, place, strict=True)), "over": over, **row}
        for place, some in times.groupby(group, sort=False)
        for row in _fits(some, over, level)
    ]
    columns = [*group, "over", "part", "exponent", "low", "high", "factor", "n_sizes", "n_values",
               "smallest", "largest", "at_largest", "last_exponent", "early"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _fits(some: pd.DataFrame, over: str, level: float) -> Iterator[dict[str, Any]]:
    """Yield the fit of each part of the time of one method that has some at two sizes."""
    some = some[some["counted"] > 0]
    for part, column in COLUMNS_OF_PARTS.items():
        known = some[some[column] > 0.0]
        if known[over].nunique() < 2:
            continue
        sizes, seconds = known[over].to_numpy(float), known[column].to_numpy(float)
        law = fit_repeated(sizes, known[SPLIT].to_numpy(), seconds, level)
        logarithms = known.assign(logarithm=np.log(seconds)).groupby(over)["logarithm"].mean()
        before, largest = logarithms.index[-2:]
        yield {
            "part": part,
            "exponent": law.exponent,
            "low": law.low,
            "high": law.high,
            "factor": law.factor,
            "n_sizes": law.n_sizes,
            "n_values": len(known),
            "smallest": int(sizes.min()),
            "largest": int(largest),
            "at_largest": float(seconds[sizes == largest].mean()),
            "last_exponent": float(
                (logarithms[largest] - logarithms[before]) / np.log(largest / before)
            ),
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
    import pandas as pd

    wanted = ["state", "stop_reason", "gap", *_TIMES, *_COUNTERS]
    rows = to_frame(tree, wanted)
    if rows.empty:
        return rows
    nodes = method_nodes(tree)
    rows["setting"] = _settings(rows, nodes)
    names = series_names(nodes)
    of_splits = pd.DataFrame(
        [
            {**place_of(node), "series": names[node.path], **row}
            for node in nodes
            for row in _split_rows(node)
        ]
    )
    rows = rows.reindex(columns=[*SERIES, SPLIT, "setting", *wanted])
    rows = rows.merge(of_splits, how="left", on=[*SERIES, SPLIT])
    state = rows["state"]
    complete = (state == RunState.COMPLETE.value) & rows["seconds"].notna()
    return rows.assign(
        dataset=rows["series"].str[0],
        bank=rows["series"].str[1],
        complete=complete,
        failed=state == RunState.FAILED.value,
        waiting=state == RunState.WAITING.value,
        early=complete & (rows["stop_reason"] != StopReason.CONVERGED.value),
        run_cpu_seconds=rows["cpu_seconds"] + rows["pass_cpu_seconds"],
    )


def _settings(rows: pd.DataFrame, nodes: Sequence[xr.DataTree]) -> pd.Series:
    """Return the number of each run's setting: of values of its method's own hyperparameters.

    A hyperparameter of one method may be a number that follows from the split in another, as C is
    where another method gives it.
    """
    having: dict[str, set[str]] = {}
    for node in nodes:
        for name in hyperparameters(node):
            having.setdefault(name, set()).add(str(node.name))
    own = {name: rows[name].where(rows["method"].isin(of)) for name, of in having.items()}
    return (
        rows[["method"]].assign(**own).groupby(["method", *own], dropna=False, sort=False).ngroup()
    )


def _split_rows(node: xr.DataTree) -> Iterator[dict[str, Any]]:
    """Yield the sizes of a node, and what is known of its bank on each split."""
    above = node.parent.ds if node.parent is not None else node.ds
    known = {
        name: place[name].broadcast_like(node.ds[SPLIT]).to_numpy()
        for name in _OF_SPLITS
        for place in (above, node.ds)
        if name in place.variables
    }
    sizes = _sizes(node)
    for number, split in enumerate(node.ds[SPLIT].to_numpy().tolist()):
        own = {name: float(known[name][number]) if name in known else np.nan for name in _OF_SPLITS}
        yield {SPLIT: split, **sizes, **own}


def _sizes(node: xr.DataTree) -> dict[str, int]:
    """Return the sizes of a node, 0 for one that it does not have; medians over its splits."""
    own = node.ds.coords
    return {name: int(own[name].median()) if name in own else 0 for name in SIZES}


def series_names(nodes: Sequence[xr.DataTree]) -> dict[str, tuple[str, str]]:
    """Return the names of the data sets and banks of each node without their sizes, by path."""
    found: dict[str, tuple[str, str]] = {}
    sizes: dict[str, dict[str, set[int]]] = {}
    for node in nodes:
        place = place_of(node)
        bank = str(node.attrs.get(BANK_SERIES, place["bank"]))
        found[node.path] = (str(node.attrs.get(DATASET_SERIES, place["dataset"])), bank)
        own = sizes.setdefault(bank, {}).setdefault(place["dataset"], set())
        own.add(_sizes(node)["n_kernels"])
    numbered = _numbered(sizes)
    return {path: (dataset, numbered.get(bank, bank)) for path, (dataset, bank) in found.items()}


def _numbered(sizes: Mapping[str, Mapping[str, set[int]]]) -> dict[str, str]:
    """Return the common names of banks that differ in a number at the end, and in their sizes.

    `sizes` has several numbers for a bank of a list of sizes, which has its common name already.
    """
    stems: dict[str, list[str]] = {}
    for bank, by_dataset in sizes.items():
        if all(len(own) == 1 for own in by_dataset.values()):
            stems.setdefault(re.sub(r"[-_. ]?\d+k?$", "", bank), []).append(bank)
    found: dict[str, str] = {}
    for stem, banks in stems.items():
        there = [(dataset, *own) for bank in banks for dataset, own in sizes[bank].items()]
        if len(banks) > 1 and len(set(there)) == len(there):
            found |= dict.fromkeys(banks, stem or "banks")
    return found


PARTS = {part: COLUMNS_OF_PARTS[part] for part in ("build", "passes", "solver")}
"""Parts that add up to the time of a split, with the columns that hold them."""
"""Column of each part of the time of a split."""


@dataclass(frozen=True, eq=False)
class Growth:
    """Times of a sweep over one size."""

    over: str  # The size
    times: pd.DataFrame  # As of split_times, ``means_of`` and ``fits_of``
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
    """Return seconds with three digits, and whole ones from a hundred on."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
