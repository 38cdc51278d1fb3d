"""What the package and its commands import, and exports that load nothing before their first use.

Imports are the cost of a command that computes nothing, so the heavy ones are held here.
"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import mkldist
from mkldist.results.tree import open_results
from tests.variants import quick

SCIPY = ("scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats")
HEAVY = {
    "array_api_compat", "bokeh", "dask", "distributed", "fsspec", "matplotlib", "netCDF4", "numba",
    "pandas", "pyarrow", "sklearn", "torch", "xarray", "zarr", *SCIPY,
}  # fmt: skip
LIGHT = {"numpy", "pydantic", "rich", "scipy"}  # half of the import of a package, or less
OF_DATA = {"pandas", "pyarrow", "sklearn", *SCIPY}  # which read tables and divide rows
SWEEP = """
name = "small"
[[datasets]]
name = "wdbc"
per_class = 15
[[banks]]
family = "xu2008"
[splits]
kind = "kfold"
repeats = 1
folds = 2
[[methods]]
name = "uniform"
"""


def modules_after(statement: str, cwd: Path | None = None) -> set[str]:
    code = f"{statement}\nimport sys\nprint('modules:', *sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )
    return set(run.stdout.rpartition("modules:")[2].split())


def modules_of(*words: str, cwd: Path | None = None) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    statement = f"""
from mkldist.cli import command
command.main({list(words)}, prog_name="mkldist", standalone_mode=False)"""
    return modules_after(statement, cwd)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a sweep file ``small.toml`` and its finished results."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.toml").write_text(SWEEP)
    command = [sys.executable, "-m", "mkldist", "sweep", "small.toml", "--quiet"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return folder


def test_importing_the_package_imports_nothing_heavy():
    assert not modules_after("import mkldist") & (HEAVY | LIGHT)


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    assert not modules_of("--help") & HEAVY
    assert not modules_of("scale", "--help") & HEAVY


@pytest.mark.slow
@pytest.mark.parametrize("listed", quick(["kernels", "methods", "sweeps", "datasets"]))
def test_lists_import_nothing_heavy(listed):
    assert not modules_of("list", listed) & (HEAVY | {"rich"})


@pytest.mark.slow
def test_a_plan_imports_only_what_reads_data(finished):
    assert modules_of("plan", "small.toml", cwd=finished) & HEAVY <= OF_DATA


@pytest.mark.slow
def test_a_finished_sweep_imports_only_what_reads_data(finished):
    loaded = modules_of("sweep", "small.toml", cwd=finished)
    assert loaded & HEAVY <= OF_DATA


@pytest.mark.slow
def test_cleaning_and_showing_imports_nothing_heavy(finished):
    assert not modules_of("clean", "small", cwd=finished) & (HEAVY | {"rich"})
    assert not modules_of("show", "level") & (HEAVY | {"rich"})


@pytest.mark.slow
def test_status_imports_only_what_reads_records(finished):
    loaded = modules_of("status", "small", cwd=finished)
    assert not loaded & {"distributed", "matplotlib", "numba", "scipy.stats", "sklearn", "zarr"}
    assert "mkldist.spec.model" not in loaded


@pytest.mark.slow
def test_looking_at_records_does_not_import_xarray():
    loaded = modules_after("from mkldist.results.journal import Journal")
    assert not loaded & (HEAVY | {"rich"})


@pytest.mark.slow
def test_workers_import_only_what_tasks_need():
    loaded = modules_after("import mkldist.run.tasks")
    assert not loaded & (HEAVY | {"rich"})


@pytest.mark.slow
def test_solving_on_gram_matrices_imports_no_heavy_package_but_those_that_solve():
    loaded = modules_after("""
import numpy as np, mkldist
grams = np.stack([np.eye(4), np.outer([1, 1, -1, -1], [1, 1, -1, -1])])
mkldist.solve("level", grams, [1, 1, -1, -1])
""")
    assert not loaded & (HEAVY - {"numba", "scipy.linalg"})


def test_exports_are_found_by_name():
    assert mkldist.open_results is open_results
    public = {name for name in dir(mkldist) if not name.startswith("_")}
    parts = {path.stem for path in Path(mkldist.__file__).parent.iterdir()}
    assert public - parts <= set(mkldist.__all__) <= public
    assert mkldist.__version__ == metadata.version("mkldist")
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        mkldist.nothing_of_this_name  # noqa: B018, the access is what is tested


@pytest.mark.slow
def test_estimators_import_neither_banks_nor_models_nor_readers_of_data_before_a_fit():
    loaded = modules_after("import mkldist; mkldist.MKLClassifier")
    own = {name for name in loaded if name.split(".")[0] == "mkldist"}
    assert len(own) <= 110
    assert not own & {
        "mkldist.fit.bank",
        "mkldist.fit.model",
        "mkldist.fit.new_rows",
        "mkldist.data.files",
    }
