"""Every sweep file of the project can be read and, where its data are here, planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.data.catalogue import list_datasets
from mkldist.plan import make_plan
from mkldist.run.resolve import resolve, resolve_methods
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec

FOLDER = Path(__file__).parents[1] / "sweeps"
FILES = sorted(FOLDER.glob("*.toml"))


def test_there_are_sweeps():
    assert {"quickstart.toml", "level_table1.toml"} <= {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sweep_file_is_right_and_says_what_it_is(file):
    spec = load_sweep(file)
    assert spec.name == file.stem
    assert spec.description
    assert file.read_text().startswith("#")
    assert set(resolve_methods(spec)) == {method.key for method in spec.methods}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sweep_file_can_be_planned(file, data_dir):
    folders = [data_dir] if data_dir else []
    spec = load_sweep(file)
    known = {entry.name for entry in list_datasets(folders)}
    wanted = {entry.source or entry.name for entry in spec.datasets}
    if not wanted <= known:
        pytest.skip(f"no data set {', '.join(sorted(wanted - known))} here; see --data-dir")
    resolved = resolve(spec, folders, FOLDER)
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 2, None)
    points = sum(len(grid.points) for grid in resolved.grids.values())
    assert len(plan.runs) == points * sum(len(f.train_sizes) for f in resolved.facts.values())


def test_the_quickstart_needs_nothing_but_scikit_learn():
    spec: SweepSpec = load_sweep(FOLDER / "quickstart.toml")
    resolved = resolve(spec, [], FOLDER)
    assert [bank.n_kernels for bank in resolved.banks.values()] == [13 * 31]
    assert set(resolved.grids) == {"level", "simplemkl", "uniform", "best_single", "majority"}
