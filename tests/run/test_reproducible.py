"""The same `sweep` gives the same results: with any workers, in every execution, after a kill."""

from __future__ import annotations

import itertools

import pytest
import xarray as xr
from mkldist.analysis.repeated_runs import agreement

import mkldist
from tests.run.damage import values_of
from tests.run.sweeps import kill_after, run_process, sweep_text

METHODS = {"level": [1.0, 10.0, 100.0], "silp": [10.0], "best_single": [1.0], "uniform": [1.0]}
REPEATS = 3
N_RUNS = REPEATS * sum(map(len, METHODS.values()))
WORKERS = {"shared": (0, 1, 4), "isolated": (1, 4), "path": (0, 2)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the results of each execution, each with several numbers of workers."""
    found: dict[str, list] = {execution: [] for execution in WORKERS}
    for execution, numbers in WORKERS.items():
        for n_workers in numbers:
            folder = tmp_path_factory.mktemp(execution)
            file = folder / "small.toml"
            file.write_text(sweep_text(METHODS, execution=execution, repeats=REPEATS))
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("MKLDIST_CACHE", str(folder / "cache"))
                output = folder / "small"
                mkldist.sweep(file, output=output, workers=n_workers, progress=False)
            found[execution].append(output)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("execution", WORKERS)
def test_results_are_equal_to_the_bit_for_any_number_of_workers(folders, execution):
    first, *others = folders[execution]
    for other in others:
        assert_equal(other, first)


def assert_equal(folder, other):
    """Hold all results, without times, to those of another folder, bit for bit."""
    found, expected = (values_of(one, timed=False) for one in (folder, other))
    assert found.keys() == expected.keys()
    for node, data in expected.items():
        xr.testing.assert_equal(found[node], data)


@pytest.mark.slow
@pytest.mark.parametrize("execution", WORKERS)
def test_results_are_equal_after_a_kill(folders, tmp_path, monkeypatch, execution):
    """To the bit, or to the certificate where a kill cuts a path: its next solver starts anew."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    text, output = sweep_text(METHODS, execution=execution, repeats=REPEATS), tmp_path / "small"
    assert 3 <= len(kill_after(3, text, output)) < N_RUNS
    code, said = run_process(text, output)
    assert code == 0, said
    if execution == "path":
        found = agreement(*map(mkldist.open_results, (output, folders[execution][0])))
        assert found.n_runs == N_RUNS
        assert found.holds
    else:
        assert_equal(output, folders[execution][0])


@pytest.mark.slow
@pytest.mark.parametrize(("one", "two"), [*itertools.combinations(WORKERS, 2)])
def test_certificates_of_different_executions_agree(folders, one, two):
    trees = [mkldist.open_results(folders[execution][0]) for execution in (one, two)]
    found = agreement(*trees)
    assert found.n_runs == N_RUNS
    assert found.holds
    assert found.objective_difference <= 0.01  # the tolerance of the runs
