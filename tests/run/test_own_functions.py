"""Sweeps over kernel functions of the user."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkldist
from tests.fit.sweeps import recorded

SWEEP = """
name = "own"
[[datasets]]
name = "table"
file = "table.csv"
[splits]
kind = "kfold"
folds = 2
[preprocessing]
scale = "none"
[[banks]]
name = "mine"
[[banks.kernels]]
function = "beside:hellinger"
parameters = { power = [0.5, 1] }
[[banks.kernels]]
function = "jaccard"
[outputs]
predictions = true
[[methods]]
name = "level"
C = 10
tol = 1e-6
"""
CODE = """
def hellinger(left, right, power=0.5):
    return left**power @ (right**power).T
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Return a sweep file with its table and its code beside it."""
    x = np.random.default_rng(0).integers(1, 9, size=(30, 3))
    rows = [f"{a},{b},{c},{'yes' if a > b else 'no'}" for a, b, c in x.tolist()]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,class", *rows]))
    (tmp_path / "beside.py").write_text(CODE)
    (tmp_path / "own.toml").write_text(SWEEP)
    return tmp_path / "own.toml"


def called(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of mkldist; in a folder other than that of the sweep file."""
    command = [sys.executable, "-m", "mkldist", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_code_runs_only_if_allowed_and_again_if_it_changes(sweep, tmp_path):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    for command in (("plan", sweep), ("sweep", sweep)):
        refused = called(*command, cwd=elsewhere)
        assert refused.returncode == 2
        assert (
            "kernels[0].function: found 'beside:hellinger', code that would run" in refused.stderr
        )
    assert not list(elsewhere.iterdir())

    planned = called("plan", sweep, "--allow-code", cwd=elsewhere)
    assert planned.returncode == 0, planned.stderr
    assert "runs code that is not mkldist's: beside:hellinger" in planned.stderr
    done = called("sweep", sweep, "--allow-code", "--workers", "1", cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    tree = mkldist.open_results(elsewhere / "results" / "own")
    node = tree["table/level"]
    assert node["kernel"].to_numpy().tolist() == [
        "beside:hellinger(power=0.5)[all]",
        "beside:hellinger(power=1)[all]",
        "jaccard[all]",
    ]
    again = called("sweep", sweep, "--allow-code", cwd=elsewhere)
    assert "Nothing to do" in again.stdout
    _fit_and_predict(sweep, elsewhere)

    (sweep.parent / "beside.py").write_text(CODE.replace("return", "return 0.5 *"))
    planned = called("plan", sweep, "--allow-code", cwd=elsewhere)
    assert "recorded:  0 of 2 runs" in planned.stdout


def _fit_and_predict(sweep: Path, cwd: Path) -> None:
    """Fit a model and predict with it; both call the function only where that is allowed."""
    refused = called("fit", "own", cwd=cwd)
    assert refused.returncode == 2
    assert "found 'beside:hellinger', code that would run" in refused.stderr
    fit = called("fit", "own", "--split", "0", "--allow-code", "-o", sweep.with_suffix(".model"),
                 cwd=cwd)  # fmt: skip
    assert fit.returncode == 0, fit.stderr
    assert fit.stdout.rstrip().endswith("DATA --allow-code -o predictions.csv")
    words = ("predict", sweep.with_suffix(".model"), sweep.parent / "table.csv", "-o", "out.csv")
    refused = called(*words, cwd=cwd)
    assert refused.returncode == 2
    assert "not mkldist's: 'beside:hellinger'" in refused.stderr
    done = called(*words, "--allow-code", cwd=cwd)
    assert done.returncode == 0, done.stderr
    [record] = [one for one in recorded(cwd / "results" / "own") if one.split == 0]
    found = pd.read_csv(cwd / "out.csv")["decision"].to_numpy()[record.test_rows]
    np.testing.assert_allclose(found, record.decision_values.ravel(), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_function_that_is_no_kernel_stops_the_command_before_any_run(sweep):
    (sweep.parent / "beside.py").write_text(CODE.replace("return", "return -1 *"))
    stopped = called("sweep", sweep, "--allow-code", cwd=sweep.parent)
    assert stopped.returncode == 2
    assert "kernel function beside:hellinger(power=0.5): found an eigenvalue of -" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not (sweep.parent / "results").exists()
