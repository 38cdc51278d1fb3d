"""The same `sweep` gives the same results, for any number of workers and in every execution."""

from __future__ import annotations

import itertools

import pytest
import xarray as xr

import mkldist
from mkldist.analysis import agreement
from tests.run.damage import values_of
from tests.run.sweeps import sweep_text

METHODS = {"level": [1.0, 10.0, 100.0], "silp": [10.0], "best_single": [1.0], "uniform": [1.0]}
WORKERS = {"shared": (0, 1, 4), "isolated": (1, 1), "path": (0, 2)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the results of each execution, each with several numbers of workers."""
    found: dict[str, list] = {execution: [] for execution in WORKERS}
    for execution, numbers in WORKERS.items():
        for n_workers in numbers:
            folder = tmp_path_factory.mktemp(execution)
            file = folder / "small.toml"
            file.write_text(sweep_text(METHODS, execution=execution, repeats=3))
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("MKLDIST_CACHE", str(folder / "cache"))
                output = folder / "small"
                mkldist.sweep(file, output=output, workers=n_workers, progress=False)
            found[execution].append(output)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("execution", WORKERS)
def test_results_are_equal_to_the_bit_for_any_number_of_workers(folders, execution):
    first, *others = (values_of(folder, timed=False) for folder in folders[execution])
    for other in others:
        assert other.keys() == first.keys()
        for node, data in first.items():
            xr.testing.assert_equal(other[node], data)


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), [*itertools.combinations(WORKERS, 2)])
def test_certificates_of_different_executions_agree(folders, one, two):
    trees = [mkldist.open_results(folders[execution][0]) for execution in (one, two)]
    found = agreement(*trees)
    assert found.n_runs == 3 * sum(map(len, METHODS.values()))
    assert found.holds
    assert found.objective_difference <= 0.01  # the tolerance of the runs
