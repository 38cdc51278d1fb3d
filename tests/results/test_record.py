"""Fields of a record from solutions that are made up: one, or one for each class."""

import json
import math
import os
import platform
import shutil
import socket
import subprocess
import sys

import numba
import numpy as np
import psutil
import pytest
import scipy

from mkldist.results.journal import (
    environment,
    processor_name,
    provenance,
    solution_fields,
    source_commit,
)
from mkldist.solvers.base import Counters, Solution
from mkldist.solvers.progress import StopReason


def solution(weights: list[float], objective: float, dual: float, **words) -> Solution:
    found = {
        "coefficients": np.array([1.0, -2.0]),
        "bias": 0.5,
        "dual_variables": np.array([1.0, 2.0]),
        "stop_reason": StopReason.CONVERGED,
    } | words
    return Solution(
        kernel_weights=np.array(weights), objective=objective, dual_objective=dual, **found
    )


def test_one_solution_keeps_kernels_of_non_zero_weight():
    fields = solution_fields([solution([0.0, 0.75, 0.0, 0.25], 10.0, 9.0, extra={"margin": 2.0})])
    assert (fields["n_kernels"], fields["kernels"].tolist()) == (4, [1, 3])
    assert fields["weights"].tolist() == [0.75, 0.25]
    assert fields["coefficients"].tolist() == [1.0, -2.0]
    assert (fields["objective"], fields["dual_objective"], fields["bias"]) == (10.0, 9.0, 0.5)
    assert fields["gap"] == pytest.approx(0.1)
    assert fields["stop_reason"] == "converged"
    assert fields["extra"] == {"margin": 2.0}
    assert "of_classes" not in fields


def test_classes_that_share_weights_have_rows_of_coefficients_and_biases():
    columns = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    shared = solution([1.0], 1.0, 1.0, coefficients=columns, bias=np.array([0.0, 0.5, 1.0]))
    fields = solution_fields([shared])
    assert fields["coefficients"].tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert math.isnan(fields["bias"])
    assert fields["of_classes"]["class_bias"].tolist() == [0.0, 0.5, 1.0]


def test_of_solutions_without_a_gap_the_largest_stationarity_counts():
    first = solution([1.0, 0.0], 10.0, 2.0, extra={"stationarity": 1e-3})
    second = solution([1.0, 0.0], 10.0, 1.0, extra={"stationarity": 4e-3})
    alone, both = solution_fields([first]), solution_fields([first, second])
    assert np.isnan([alone["gap"], both["gap"]]).all()
    assert alone["extra"] == {"stationarity": 1e-3}
    assert both["extra"] == {"stationarity": 4e-3}
    assert (both["objective"], both["dual_objective"]) == (20.0, 3.0)


def test_solutions_of_classes_are_summed_and_kept_side_by_side():
    fields = solution_fields(
        [
            solution([0.0, 1.0, 0.0], 10.0, 9.0, counters=Counters(passes=2)),
            solution(
                [0.5, 0.5, 0.0], 30.0, 27.0, bias=-1.0,
                counters=Counters(passes=3, svm_solves=1), stop_reason=StopReason.MAX_ITER,
                extra={"margin": 2.0},
            ),
            solution([0.0, 1.0, 0.0], 60.0, 54.0, stop_reason=StopReason.STALLED),
        ]
    )  # fmt: skip
    assert fields["kernels"].tolist() == [0, 1]
    assert fields["weights"].tolist() == [[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]
    assert fields["coefficients"].shape == (3, 2)
    assert (fields["objective"], fields["dual_objective"]) == (100.0, 90.0)
    assert fields["gap"] == pytest.approx(0.1)
    assert fields["stop_reason"] == "max_iter"
    assert (fields["counters"]["passes"], fields["counters"]["svm_solves"]) == (5, 1)
    assert fields["of_classes"]["class_bias"].tolist() == [0.5, -1.0, 0.5]
    assert fields["of_classes"]["class_objective"].tolist() == [10.0, 30.0, 60.0]
    assert fields["of_classes"]["class_dual_objective"].tolist() == [9.0, 27.0, 54.0]
    np.testing.assert_array_equal(fields["of_classes"]["class_margin"], [np.nan, 2.0, np.nan])


def test_bounds_for_kernels_that_factors_stand_for_are_kept_and_summed():
    first = solution([1.0], 10.0, 9.9, exact_dual_objective=9.0)
    second = solution([1.0], 30.0, 29.9, exact_dual_objective=29.0)
    alone, both = solution_fields([first]), solution_fields([first, second])
    assert alone["extra"] == {"exact_gap": 0.1, "exact_dual_objective": 9.0}
    assert both["extra"] == {"exact_gap": 0.05, "exact_dual_objective": 38.0}
    assert both["of_classes"]["class_exact_gap"] == pytest.approx([0.1, 1 / 30])
    assert "exact_gap" not in solution_fields([solution([1.0], 10.0, 9.9)])["extra"]


def test_traces_of_classes_are_filled_up_to_the_longest():
    long = {"gap": np.array([3.0, 2.0, 1.0]), "largest": np.ones((3, 2))}
    short = {"gap": np.array([5.0]), "largest": np.full((1, 2), 2.0)}
    fields = solution_fields(
        [solution([1.0], 1.0, 1.0, trace=trace) for trace in (long, {}, short)]
    )
    nan = np.nan
    gaps = [[3.0, 2.0, 1.0], [nan, nan, nan], [5.0, nan, nan]]
    np.testing.assert_array_equal(fields["trace"]["gap"], gaps)
    assert fields["trace"]["largest"].shape == (3, 3, 2)
    np.testing.assert_array_equal(fields["trace"]["largest"][2], [[2, 2], [nan, nan], [nan, nan]])


def test_provenance_names_versions_and_inputs():
    facts = json.loads(json.dumps(provenance(seed=3, data="d", bank="b", split="s", threads=1)))
    modules = {"numpy": np, "scipy": scipy, "numba": numba}
    for name, module in modules.items():
        assert facts["versions"][name] == module.__version__
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert (facts["host"], facts["pid"]) == (socket.gethostname(), os.getpid())
    assert (facts["seed"], facts["blas_threads"]) == (3, 1)
    fingerprints = facts["data_fingerprint"], facts["bank"], facts["split_fingerprint"]
    assert fingerprints == ("d", "b", "s")
    assert facts["blas"]
    assert facts["memory_bytes"] == psutil.virtual_memory().total


@pytest.mark.slow
def test_the_linear_algebra_is_that_of_a_process_that_did_runs():
    said = "from mkldist.results.journal import environment; print(environment()['blas'])"
    after = f"import scipy.linalg, sklearn.svm; {said}"
    fresh, used = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        for code in (said, after)
    )
    assert fresh == used


def test_the_inputs_of_one_run_do_not_reach_the_next():
    provenance(seed=3, data="d", bank="b", split="s", threads=1)
    assert not environment().keys() & {"seed", "bank", "pid"}


def test_the_processor_is_named_by_its_model(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Example 9000 @ 3 GHz: fast\n\nprocessor: 1\n")
    assert processor_name(cpuinfo) == "Example 9000 @ 3 GHz: fast"
    assert processor_name(tmp_path / "absent") == platform.processor()


pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def package(tmp_path):
    """Return a package in a folder that is no checkout yet."""
    folder = tmp_path / "project" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    source_commit.cache_clear()
    return folder


def git(package, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *arguments], cwd=package.parent, capture_output=True,
                          text=True, check=True)  # fmt: skip
    return done.stdout.strip()


def committed(package) -> str:
    git(package, "init")
    git(package, "add", ".")
    git(package, "commit", "-m", "Begin")
    return git(package, "rev-parse", "HEAD")


def test_a_checkout_has_its_commit_whatever_its_tags(package):
    commit = committed(package)
    git(package, "tag", "-a", "v1", "-m", "One")
    assert source_commit(package) == commit
    assert len(commit) == 40


def test_a_changed_checkout_says_so(package):
    commit = committed(package)
    (package / "__init__.py").write_text("changed = True")
    assert source_commit(package) == f"{commit}-dirty"


def test_a_package_installed_inside_of_another_checkout_has_no_commit(package):
    assert source_commit(package) == ""
    committed(package)
    inside = package.parent / "venv" / "package"
    inside.mkdir(parents=True)
    assert source_commit(inside) == ""


def test_without_git_there_is_no_commit(package, monkeypatch):
    committed(package)
    monkeypatch.setenv("PATH", "")
    assert source_commit(package) == ""
