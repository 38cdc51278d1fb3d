"""Every sweep file of the project can be read and, where its data are here, planned."""

import runpy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import mkldist
from mkldist.data.catalogue import list_datasets, located
from mkldist.methods.registry import METHODS
from mkldist.planning.checks import resolve_methods
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.results.rows import method_nodes
from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep, shipped_sweeps
from mkldist.spec.model import SweepSpec

FOLDER = Path(__file__).parents[1] / "sweeps"
FILES = tuple(shipped_sweeps().values())


def test_there_are_sweeps():
    expected = {"quickstart", "level_table1", "wdbc_all_methods", "diabetes_regression",
                "semi_supervised", "digits"}  # fmt: skip
    assert expected <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sweep_file_is_right_and_says_what_it_is(file):
    spec = load_sweep(file)
    assert spec.name == file.stem
    assert spec.description
    assert file.read_text().startswith("#")
    for grids in resolve_methods(spec).values():
        assert set(grids) == {method.key for method in spec.methods}


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sweep_file_can_be_planned(file, data_dir):
    folders = [data_dir] if data_dir else []
    spec = load_sweep(file)
    known = {entry.name for entry in list_datasets(folders)}
    wanted = {entry.source or entry.name for entry in spec.datasets}
    if not wanted <= known:
        pytest.skip(f"no data set {', '.join(sorted(wanted - known))} here; see --data-dir")
    graphs = [graph for entry in spec.datasets if (graph := spec.graph_of(entry)) is not None]
    for name in sorted({graph.distances for graph in graphs} - {None}):
        if not located(name, folders, file.parent).exists():
            pytest.skip(f"no distances {name} here; the sweep file says how to make them")
    resolved = resolve(spec, folders, file.parent)
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 2, None)
    n_runs = sum(
        len(grid.points) * len(resolved.facts[name].known_sizes)
        for name, grids in resolved.grids.items()
        for grid in grids.values()
        if not grid.is_open
    )
    assert len(plan.runs) == n_runs * len(spec.sized_banks)


def test_the_quickstart_needs_nothing_but_scikit_learn():
    spec: SweepSpec = load_sweep(FOLDER / "quickstart.toml")
    resolved = resolve(spec, [], FOLDER)
    assert [bank.n_kernels for bank in resolved.banks.values()] == [13 * 31]
    assert set(resolved.grids["wdbc"]) == {
        "level",
        "spicymkl",
        "uniform",
        "best_single",
        "majority",
    }


# 20 kernels and a fifth of the data.
SMALL = ("banks.xu2008.family=do2009", 'splits={kind="holdout", repeats=1, train_fraction=0.2}')


def run_small(
    name: str,
    folder: Path,
    small: Sequence[str] = SMALL,
    data_dirs: Sequence[Path] = (),
    n_workers: int = 1,
) -> xr.DataTree:
    """Run a sweep with some values replaced; without workers a thread of this process does it."""
    file = shipped_sweeps()[name]
    outcome = run_sweep(
        load_sweep(file, small),
        origin=file,
        data_dirs=data_dirs,
        output=folder / name,
        connect_options=ConnectOptions(n_workers=n_workers),
    )
    assert outcome.computed == len(outcome.plan.runs)
    assert not outcome.failed
    return open_results(folder / name)


@pytest.mark.parametrize("name", ["comparison_all_methods", "wdbc_all_methods"])
def test_all_methods_are_in_the_sweeps_of_all_methods(name):
    spec = load_sweep(FOLDER / f"{name}.toml")
    wanted = {name for name, method in METHODS.items() if not method.needs_laplacian}
    found = {method.name for method in spec.methods}
    assert found == wanted, f"give the method an entry in sweeps/{name}.toml"


@pytest.mark.slow
def test_all_methods_run_side_by_side(tmp_path):
    with run_small("wdbc_all_methods", tmp_path) as tree:
        for node in method_nodes(tree):
            assert (node.state == "complete").all(), node.name
            assert (node.test_error < 0.4).all(), node.name
            assert np.isfinite(node.objective).all(), node.name
        simplex = ("level", "simplemkl", "silp", "hessianmkl", "skm")
        bounds = [tree[f"wdbc/{method}"].to_dataset() for method in simplex]
        upper = np.min([node.objective for node in bounds], axis=0)
        lower = np.max([node.dual_objective for node in bounds], axis=0)
        assert (lower <= upper * (1 + 1e-9)).all()
        assert (upper - lower <= 0.01 * upper).all()


@pytest.mark.slow
def test_views_of_several_sources_tell_more_than_one_table(tmp_path):
    with run_small("heterogeneous", tmp_path, ["splits.repeats=4"]) as tree:
        patients = tree["patients"]
        error = {
            bank: float(patients[f"{bank}/level"].test_error.mean("split").min())
            for bank in ("table", "views")
        }
        assert error["views"] < error["table"] - 0.05
        names = patients["views"].kernel.values.tolist()
        assert len(names) == 18
        assert names[-2:] == ["spectrum(2)[history]", "precomputed[sequences]"]
        for node in method_nodes(tree):
            assert (node.state == "complete").all(), node.name
            assert (node.gap <= 0.001).all(), node.name


@pytest.mark.slow
def test_the_patients_are_those_that_the_script_draws(tmp_path):
    folder = FOLDER / "patients"
    runpy.run_path(str(folder / "make_data.py"))["main"](tmp_path)
    written = sorted(file.name for file in folder.iterdir() if file.suffix != ".py")
    assert written == sorted(file.name for file in tmp_path.iterdir())
    for name in written:
        if name.endswith(".npz"):
            with np.load(folder / name) as found, np.load(tmp_path / name) as drawn:
                assert all((found[key] == drawn[key]).all() for key in ("grams", "ids"))
        else:
            assert (folder / name).read_text() == (tmp_path / name).read_text()


@pytest.mark.slow
def test_many_kernels_are_studied_in_small(tmp_path):
    sizes = [20, 50, 100]
    small = [f"banks.random.n_kernels={sizes}", "banks.random.kernels[0].features.count=20"]
    with run_small("large_kernel_count", tmp_path, small) as tree:
        joined = mkldist.concat(tree, "n_kernels")
        nodes = method_nodes(joined)
        assert len(nodes) == 5
        for node in nodes:
            assert node.n_kernels.values.tolist() == sizes
            assert (node.state == "complete").all(), node.name
            assert (node.gap <= 0.01).all(), node.name
            assert (node.build_seconds == 0).all()
            assert (node.pass_bytes > 0).all()
        level = joined["wdbc/level"].objective.squeeze()
        assert (level.diff("n_kernels") <= 0.01 * level.isel(n_kernels=0)).all()


@pytest.mark.slow
def test_regression_runs_side_by_side(tmp_path):
    with run_small("diabetes_regression", tmp_path) as tree:
        assert (tree["diabetes/spicymkl"].r2 > 0.2).any()
        for node in method_nodes(tree):
            assert (node.state == "complete").all(), node.name
            assert (node.rmse > node.mae).all(), node.name
            assert "test_error" not in node.ds
        gap = tree["diabetes/spicymkl/convergence"].gap
        assert set(gap.dims) == {"split", "C", "regularizer", "iteration"}
        assert (gap.min("iteration") <= 0.01).all()
        assert not tree["diabetes/primalmkl"].children


@pytest.mark.slow
def test_few_labels_are_learnt_from_side_by_side(tmp_path):
    small = ["splits.repeats=2", "splits.test_fraction=0.5"]
    with run_small("semi_supervised", tmp_path, small) as tree:
        for node in method_nodes(tree):
            assert (node.state == "complete").all(), node.name
            assert (node.unlabelled_error < 0.4).all(), node.name
            assert (node.test_error < 0.4).all(), node.name
        with_graph = tree["wdbc/laprls"].objective
        assert (with_graph.diff("gamma_i") > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_circles", "star"])
def test_no_kernel_is_chosen_by_hand(name, tmp_path):
    with run_small(name, tmp_path, ["splits.repeats=3"]) as tree:
        errors = {
            path: float(tree[f"{name}/{path}"].unlabelled_error.mean())
            for path in ("guo2011/mklsvm", "guo2011/lapmkl", "guo2011/svm", "width-0.35/lsvm")
        }
        assert errors["guo2011/mklsvm"] < 0.05
        assert errors["guo2011/lapmkl"] < 0.05
        assert errors["guo2011/mklsvm"] < errors["width-0.35/lsvm"]
        assert errors["guo2011/mklsvm"] < errors["guo2011/svm"] / 2


@pytest.mark.slow
def test_few_labels_of_the_papers(tmp_path, data_dir):
    if data_dir is None or not (data_dir / "wine.csv").exists():
        pytest.skip("no data set wine here; see --data-dir")
    few = ["datasets.usps.per_class=40", "datasets.usps.splits.repeats=2",
           "datasets.text.per_class=100", "datasets.text.splits.kind=semi-supervised",
           "datasets.text.splits.labelled=50", "datasets.text.splits.repeats=2",
           "datasets.wine.splits.repeats=3"]  # fmt: skip
    with run_small("mklsvm_table2", tmp_path, few, [data_dir]) as tree:
        for name in ("usps", "wine"):
            chosen = mkldist.selected(tree)[name]
            mean = {m: float(chosen[m].unlabelled_error.mean()) for m in ("svm", "mklsvm")}
            assert mean["mklsvm"] < mean["svm"]


@pytest.mark.slow
def test_more_labels_err_less(tmp_path):
    numbers, repeats = ("02", "16"), {"02": 2, "04": 1, "08": 1, "16": 2}
    few = [f"datasets.labels-{number}.splits.repeats={n}" for number, n in repeats.items()]
    with run_small("mklsvm_fig7", tmp_path, few) as tree:
        chosen = mkldist.selected(tree)
        for method in ("svm", "rls", "lsvm", "mklsvm"):
            errors = [
                float(chosen[f"labels-{number}/{method}"].unlabelled_error.mean())
                for number in numbers
            ]
            assert errors[-1] < errors[0] / 2, (method, errors)
        for number in numbers:
            mean = {
                method: float(chosen[f"labels-{number}/{method}"].unlabelled_error.mean())
                for method in ("svm", "mklsvm")
            }
            assert mean["mklsvm"] < mean["svm"]


@pytest.mark.slow
def test_a_fifth_of_the_labels(tmp_path, data_dir):
    spec = load_sweep(shipped_sweeps()["lapmkl_table4"])
    known = {entry.name for entry in list_datasets([data_dir] if data_dir else [])}
    missing = {entry.source or entry.name for entry in spec.datasets} - known
    if missing:
        pytest.skip(f"no data set {', '.join(sorted(missing))} here; see --data-dir")
    few = [f"datasets.{entry.name}.n_points=40" for entry in spec.datasets]
    few += ["splits.repeats=1", "selection.folds=2"]  # two labels of the rarest class
    few += [f"methods.{name}.gamma_{kind}=0.1"
            for name in ("lapsvm_single", "lapmkl") for kind in ("a", "i")]  # fmt: skip
    with run_small("lapmkl_table4", tmp_path, few, [data_dir]) as tree:
        assert len(tree.children) == 16
        for node in method_nodes(tree):
            assert (node.state == "complete").all(), node.name
            assert np.isfinite(node.validation_error).all(), node.name
            assert (node.unlabelled_error < 0.7).all(), node.name
