"""Tables as users have them, and small sweeps on them, run in this process."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, random_array

from mkldist.fit.select import Choice
from mkldist.results.journal import Journal, RunRecord
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


def chosen(record: RunRecord) -> Choice:
    """Return the setting of a record."""
    return Choice(
        record.dataset, record.bank, record.key, dict(record.params), {}, (record.id,), 0.0, ""
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


N_PATIENTS = 60
VIEWS = """
name = "views"
tol = 1e-6
[[datasets]]
name = "patients"
file = "clinical.csv"
label = "ill"
id = "patient"
impute = "mean"
[[datasets.views]]
name = "clinical"
[[datasets.views]]
name = "genes"
file = "genes.csv"
missing = "zero"
[[datasets.views]]
name = "strings"
grams = "strings.npz"
missing = "zero"
[splits]
repeats = 2
[[banks]]
name = "mine"
normalisation = "{normalisation}"
backend = "{backend}"
[[banks.kernels]]
function = "gaussian"
widths = [1, 3]
features = "views"
[[banks.kernels]]
function = "precomputed"
features = "strings"
[[methods]]
name = "level"
C = {C}
[outputs]
predictions = true
coefficients = true
"""


def write_views(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write three views in different orders; return their values in the order of the patients.

    A quarter of the patients have no genes and another quarter no string; some cells are missing.
    """
    rng = np.random.default_rng(11)
    y = np.where(rng.random(N_PATIENTS) < 0.5, 1.0, -1.0)
    names = np.array([f"p{i:02d}" for i in range(N_PATIENTS)])
    clinical = np.round(rng.normal(size=(N_PATIENTS, 2)) + 0.5 * y[:, None], 2)
    clinical[[3, 30], 1] = np.nan
    genes = np.round(rng.normal(size=(N_PATIENTS, 5)), 2)
    genes[:, 0] += y
    genes[4, 2] = np.nan
    genes[rng.permutation(N_PATIENTS)[:15]] = np.nan
    factors = rng.normal(size=(N_PATIENTS, 3))
    factors[:, 0] += y
    has_string = np.ones(N_PATIENTS, dtype=bool)
    has_string[rng.permutation(N_PATIENTS)[:15]] = False
    strings = (factors @ factors.T) * np.outer(has_string, has_string)

    def line(*values: object) -> str:
        return ",".join("" if str(value) == "nan" else str(value) for value in values)

    words = np.where(y > 0, "yes", "no")
    lines = [line(*row) for row in zip(names, *clinical.T, words, strict=True)]
    (folder / "clinical.csv").write_text("\n".join(["patient,age,bmi,ill", *lines, ""]))
    order = [i for i in rng.permutation(N_PATIENTS) if not np.isnan(genes[i]).all()]
    lines = [line(names[i], *genes[i]) for i in order]
    (folder / "genes.csv").write_text(
        "\n".join(["patient,a,b,c,d,e", *lines, "other,1,2,3,4,5", ""])
    )
    own = rng.permutation(np.flatnonzero(has_string))
    np.savez(folder / "strings.npz", grams=strings[np.ix_(own, own)], ids=names[own])
    return clinical, genes, strings


POINTS = csr_array(random_array((60, 40), density=0.1, rng=np.random.default_rng(0)))
SPARSE_SWEEP = """
name = "sparse"
tol = 1e-6
[[datasets]]
name = "wide"
file = "wide.svm"
{sparse}
[preprocessing]
scale = "none"
[splits]
repeats = 2
[[banks]]
normalisation = "cosine"
kernels = [{{ function = "gaussian", widths = [1, 3], features = ["all", "f1"] }},
           {{ function = "polynomial", degrees = 2 }}, {{ function = "linear" }}]
[[methods]]
name = "level"
C = 1
[outputs]
predictions = true
"""
