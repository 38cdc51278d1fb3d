"""Small sweeps over data of two features, with pictures."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.data.dataset import Dataset, Split
from mkldist.planning.model import BankPlan
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import SweepOutcome, run_sweep
from mkldist.run.sweep_setup import planned
from mkldist.spec.model import SweepSpec

MOONS = 'name = "two_moons"\noptions = { n = 60, noise = 0.2 }'
THREE = 'name = "three"\nfile = "three.npz"'
SUPERVISED = """
name = "pictures"
[[datasets]]
{dataset}
[preprocessing]
fit = "{fit}"
[[banks]]
normalisation = {normalisation}
[[banks.kernels]]
function = "gaussian"
widths = [0.3, 1.0]
[[banks.kernels]]
function = "polynomial"
degrees = 2
features = ["all", "each"]
[outputs]
predictions = true
figures = {figures}
[[methods]]
name = "level"
kernel_weights = "{kernel_weights}"
C = [1, 100]
[[methods]]
name = "majority"
"""
SEMI_SUPERVISED = """
[splits]
kind = "semi-supervised"
labelled_per_class = 4
test_fraction = 0.3
[graph]
neighbours = 5
[[methods]]
name = "lapmkl"
form = "deformed"
gamma_a = 0.01
gamma_i = 0.1
"""


def pictured(
    *,
    fit: str = "train",
    normalisation: str = '"trace"',
    figures: str = '["decision-boundary"]',
    few_labels: bool = False,
    dataset: str = MOONS,
    kernel_weights: str = "per-class",
) -> SweepSpec:
    text = SUPERVISED.format(
        fit=fit,
        normalisation=normalisation,
        figures=figures,
        dataset=dataset,
        kernel_weights=kernel_weights,
    )
    return SweepSpec.model_validate(tomllib.loads(text + SEMI_SUPERVISED * few_labels))


def write_three_classes(folder: Path) -> None:
    """Write the data set of THREE: three clouds of twenty points."""
    rng = np.random.default_rng(0)
    y = np.repeat(["north", "east", "west"], 20)
    centres = {"north": (0.0, 2.0), "east": (1.5, 0.0), "west": (-1.5, 0.0)}
    x = np.array([centres[name] for name in y]) + 0.6 * rng.standard_normal((60, 2))
    np.savez(folder / "three.npz", x=x, y=y)


def run(spec: SweepSpec, output: Path, scheduler: str, **options: Any) -> SweepOutcome:
    return run_sweep(
        spec,
        origin=output.parent / "sweep.toml",
        output=output,
        connect_options=ConnectOptions(scheduler),
        **options,
    )


def recorded(
    spec: SweepSpec, output: Path
) -> Iterator[tuple[BankPlan, Dataset, tuple[Split, ...], RunRecord]]:
    """Yield every run with what its decision function is made of."""
    plan, resolved = planned(spec, output.parent / "sweep.toml", [], ConnectOptions(n_workers=1))
    banks = {bank.id: bank for bank in plan.banks}
    for one in plan.runs:
        record = Journal(output / "records.journal").read(one.id)
        assert record is not None
        yield banks[one.bank], *resolved.datasets[one.dataset], record
