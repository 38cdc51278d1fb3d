"""Tables as users have them, and small sweeps on them, run in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep

N = 72
SWEEP = """
name = "small"
tol = 1e-3
[[datasets]]
name = "mine"
file = "mine.csv"
label = "{label}"
id = "row"
ignore = ["note"]
categorical = ["size"]
impute = "{impute}"
{dataset}
[preprocessing]
scale = "{scale}"
fit = "{fit}"
target = "{target}"
{splits}
[[banks]]
normalisation = {normalisation}
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
features = ["all", "each"]
[[banks.kernels]]
function = "polynomial"
degrees = [2]
[outputs]
predictions = true
{methods}
"""
SPLITS = "[splits]\nrepeats = 2\ntrain_fraction = 0.6"
FEW_LABELS = (
    '[splits]\nkind = "semi-supervised"\nlabelled_per_class = 8\ntest_fraction = 0.25\n'
    "repeats = 2\n[graph]\nneighbours = 5"
)


def table() -> pd.DataFrame:
    """Return rows with names, missing values, categories, a constant column, and labels."""
    draw = np.random.default_rng(0)
    a, b, c = draw.normal(size=(3, N))
    size = draw.choice(["S", "M", "L"], N)
    value = a * b + (size == "S") + 0.1 * draw.normal(size=N)
    frame = pd.DataFrame(
        {
            "row": [f"r{i}" for i in range(N)], "a": a, "constant": 4.0, "b": b,
            "size": size, "c": 100.0 + 7.0 * c, "note": "x",
            "two": np.where(value > 0.3, "ill", "well"),
            "three": 10 * np.digitize(value, [0.0, 0.8]),
            "value": 50.0 + 20.0 * value,
        }
    )  # fmt: skip
    frame.loc[::7, "b"] = np.nan
    frame.loc[3::11, "c"] = np.nan
    return frame.round(6)


def rows() -> pd.DataFrame:
    """Return the rows as new ones would be: without labels, columns in another order."""
    return table().drop(columns=["two", "three", "value"]).iloc[:, ::-1]


def write_sweep(folder: Path, methods: str, label: str = "two", **changes: str) -> Path:
    """Write a table and a sweep file; return the file."""
    others = {"two", "three", "value"} - {label}
    table().drop(columns=sorted(others)).to_csv(folder / "mine.csv", index=False)
    settings = {
        "impute": "median", "scale": "zscore", "fit": "train", "target": "none",
        "normalisation": '"trace"', "dataset": "", "splits": SPLITS,
    } | changes  # fmt: skip
    file = folder / "small.toml"
    file.write_text(SWEEP.format(methods=methods, label=label, **settings))
    return file


def swept(folder: Path, methods: str, label: str = "two", **changes: str) -> Path:
    """Run a sweep on the table; return the folder of its results."""
    file = write_sweep(folder, methods, label, **changes)
    run_sweep(load_sweep(file), origin=file, output=folder / "results")
    return folder / "results"


def entry(name: str, **settings: Any) -> str:
    """Return an entry of ``[[methods]]``."""
    lines = [f"{key} = {value}" for key, value in settings.items()]
    return "\n".join(["[[methods]]", f'name = "{name}"', *lines, ""])


def recorded(results: Path) -> list[RunRecord]:
    """Return all records of a sweep."""
    store = Journal(results / "records.journal")
    return [record for run_id in store.states() if (record := store.read(run_id)) is not None]
