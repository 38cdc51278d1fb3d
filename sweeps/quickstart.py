"""Draw ``quickstart.svg``, the picture of the README, from the results of ``quickstart.toml``.

Run in a clone of the repository::

    mkldist sweep quickstart --set methods.level.trace=true --set methods.spicymkl.trace=true
    python sweeps/quickstart.py results/quickstart sweeps/quickstart.svg
"""

from __future__ import annotations

import argparse

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import mkldist

COLOURS = {"level": "#c1272d", "spicymkl": "#0000a7", "best_single": "#008176", "uniform": "#888"}
C = 1.0
N_KERNELS = 8


def draw_errors(axes: Axes, results: xr.DataTree) -> None:
    """Draw the mean test error of each method against C, and its standard deviation."""
    for name, colour in COLOURS.items():
        error = 100 * results[name].test_error
        mean, spread = error.mean("split"), error.std("split", ddof=1)
        axes.errorbar(error.C, mean, spread, color=colour, marker="o", ms=3, capsize=2, label=name)
    axes.set(xscale="log", yscale="log", xlabel="C", ylabel="test error, %")
    axes.set_yticks([3, 4, 5, 6], ["3", "4", "5", "6"])
    axes.minorticks_off()
    axes.set_title("Which method?")
    axes.legend(frameon=False)


def draw_gaps(axes: Axes, results: xr.DataTree) -> None:
    """Draw the certified duality gap of each traced run against its seconds."""
    for name in ("level", "spicymkl"):
        traces = results[f"{name}/convergence"].to_dataset().sel(C=C)
        for split in traces.split.to_numpy():
            trace = traces.sel(split=split).dropna("iteration", subset=["gap"])
            label = name if split == 0 else None
            axes.plot(trace.seconds, trace.gap, color=COLOURS[name], lw=1, label=label)
    axes.axhline(0.01, color="black", lw=0.8, ls="--", label="tolerance")
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="relative duality gap")
    axes.minorticks_off()
    axes.set_title(f"How far from optimal?  (C = {C:g}, five splits)")
    axes.legend(frameon=False)


def draw_weights(axes: Axes, results: xr.DataTree) -> None:
    """Draw the mean weights of the kernels to which the Level method gives most."""
    weights = results["level"].kernel_weights.sel(C=C).mean("split")
    largest = weights.isel(kernel=np.argsort(-weights.to_numpy())[:N_KERNELS])[::-1]
    axes.barh(largest.kernel.to_numpy(), largest.to_numpy(), color=COLOURS["level"], height=0.7)
    axes.set(xlabel="kernel weight, mean over splits")
    axes.set_title(f"Which of {weights.sizes['kernel']} kernels?  (level)")


def draw(results: xr.DataTree) -> Figure:
    """Return the figure of the results of one data set."""
    figure = Figure(figsize=(10.5, 3.1), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    draw_errors(left, results)
    draw_gaps(middle, results)
    draw_weights(right, results)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Read the results and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", help="folder of the results of the quickstart")
    parser.add_argument("figure", help="file to write: .svg or .png")
    given = parser.parse_args()
    style = {"font.size": 8, "axes.titlesize": 9, "svg.hashsalt": "quickstart"}
    metadata = {"Date": None} if given.figure.endswith(".svg") else {}
    with mpl.rc_context(style):
        results = mkldist.open_results(given.results)["wdbc"]
        if "convergence" not in results["level"]:
            parser.error("these results have no traces; see the commands at the top of this file")
        figure = draw(results)
        figure.savefig(given.figure, dpi=150, facecolor="white", metadata=metadata)


if __name__ == "__main__":
    main()
