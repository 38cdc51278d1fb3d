"""Sweeps from Python: what they return, keep and say; and from where they can be called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import mkldist
from mkldist.cli import command
from mkldist.errors import FailedRunsWarning, SpecError, UnfitClusterError
from mkldist.results.journal import Journal
from mkldist.results.status import sweep_status
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import misbehaving_methods, record_times, wait_until

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.where(X[:, 0] * X[:, 1] > 0, "ill", "well")
SPEC = {
    "name": "mine",
    "splits": {"repeats": 2},
    "banks": [{"name": "b", "kernels": [mkldist.kernels.Gaussian(widths=np.array([0.5, 2.0]))]}],
    "methods": [{"name": "level", "C": np.array([1.0, 10.0])}, {"name": "majority"}],
}
PROGRAM = """
import numpy as np, mkldist
x = np.random.default_rng(0).normal(size=(60, 3))
spec = {"name": "mine", "banks": [{"family": "do2009"}], "methods": [{"name": "uniform"}]}
tree = mkldist.sweep(spec, {"mine": (x, x[:, 0] > 0)}, workers=1)
print("state", tree["mine/uniform"].state.item())
"""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def ids(folder: str = "results/mine") -> set[str]:
    return set(Journal(Path(folder) / "records.journal").states())


def test_a_sweep_returns_its_results_and_the_same_call_repeats_nothing(capsys):
    tree = mkldist.sweep(SPEC, {"mine": (X, Y)})
    assert isinstance(tree, xr.DataTree)
    assert tree["mine/level"].test_error.dims == ("split", "C")
    assert (tree["mine/level"].state == "complete").all()
    said = capsys.readouterr()
    assert said.out == ""
    assert "ill (32 rows) is -1, well (28 rows) is +1" in said.err
    assert "mine: 6 runs to do; output in results/mine" in said.err
    before = record_times(Path("results/mine"))
    again = mkldist.sweep(SPEC, {"mine": (X.copy(), Y.tolist())})
    assert record_times(Path("results/mine")) == before
    assert capsys.readouterr() == ("", "")
    assert again["mine/level"].identical(tree["mine/level"])


@pytest.mark.slow
def test_the_folder_keeps_words_and_data_for_the_commands():
    tree = mkldist.sweep(SPEC, {"mine": (X, Y)}, progress=False, workers=0)
    before = record_times(Path("results/mine"))
    for given in ("mine", "results/mine", "results/mine/sweep.toml"):
        command.main(["sweep", given, "--quiet"], standalone_mode=False)
    assert record_times(Path("results/mine")) == before
    assert mkldist.plan("results/mine").n_recorded == 6
    by_path = mkldist.sweep("results/mine", changes={"splits.repeats": 3}, progress=False)
    assert by_path["mine/level"].sizes["split"] == 3
    assert before.items() < record_times(Path("results/mine")).items()
    spec = SweepSpec.model_validate_json(tree.attrs["spec"])
    assert spec.methods[0].settings == {"C": [1.0, 10.0]}
    assert spec.banks[0].kernels[0].widths == [0.5, 2.0]


def test_the_sweep_file_in_a_folder_of_ones_choice_means_that_folder():
    mkldist.sweep(SPEC, {"mine": (X, Y)}, output="there", progress=False)
    before = record_times(Path("there"))
    for given in ("there", "there/sweep.toml"):
        assert mkldist.plan(given).n_recorded == 6
        command.main(["sweep", given, "--quiet"], standalone_mode=False)
    assert record_times(Path("there")) == before
    assert not Path("results").exists()


@pytest.mark.slow
def test_changed_data_are_told_and_computed_anew(capsys):
    mkldist.sweep(SPEC, {"mine": (X, Y)}, progress=False)
    old = ids()
    files = list(Path("results/mine/data").iterdir())
    mkldist.sweep(SPEC, {"mine": (-X, Y)})
    assert "mine: these data differ from those of the last call" in capsys.readouterr().err
    assert old < ids()
    assert len(ids()) == 12
    [file] = Path("results/mine/data").iterdir()
    assert file not in files
    assert sweep_status("results/mine").others == 6
    mkldist.sweep(SPEC, {"mine": (X, Y)})
    assert len(ids()) == 12


def test_grams_and_features_are_swept_side_by_side():
    grams = np.array([X @ X.T, (1 + X @ X.T) ** 2])
    one = {**SPEC, "banks": [{"family": "precomputed"}], "methods": [{"name": "uniform"}]}
    tree = mkldist.sweep({**one, "name": "grams"}, {"k": (grams, Y)}, progress=False)
    assert tree["k/uniform"].sizes["kernel"] == 2
    grouped = {**SPEC, "splits": {"kind": "kfold", "folds": 3}, "methods": [{"name": "majority"}]}
    given = {"a": (X, Y, np.repeat(range(12), 5)), "b": (X, Y)}
    tree = mkldist.sweep({**grouped, "name": "two"}, given, progress=False)
    assert {"a", "b"} <= set(tree.children)


def test_mistakes_are_raised_before_anything_is_written():
    with pytest.raises(
        ValueError, match=r"^methods\.levl\.name: found the unknown method 'levl'"
    ) as caught:
        mkldist.sweep({**SPEC, "methods": [{"name": "levl"}]}, {"mine": (X, Y)})
    assert caught.traceback[-1].path.name == "short_errors.py"
    assert len(caught.traceback) == 2
    with pytest.raises(
        SpecError, match=r"^workers: found -1; expected a whole number of at least 0"
    ):
        mkldist.sweep(SPEC, {"mine": (X, Y)}, workers=-1)
    assert not list(Path().iterdir())


def test_a_scheduler_that_others_can_listen_to_is_refused_before_anything_is_written():
    with pytest.raises(UnfitClusterError, match="without encryption"):
        mkldist.sweep("quickstart", scheduler="tcp://10.1.2.3:8786")
    assert not Path("results").exists()


def test_failed_runs_are_warned_of_and_can_be_repeated():
    spec = {**SPEC, "methods": [{"name": "raising", "C": 10.0}]}
    with misbehaving_methods():
        with pytest.warns(FailedRunsWarning, match="2 of 2 runs failed, such as mine/raising") as w:
            tree = mkldist.sweep(spec, {"mine": (X, Y)}, workers=0, progress=False)
        assert w[0].filename == __file__
        assert (tree["mine/raising"].state == "failed").all()
        before = record_times(Path("results/mine"))
        with pytest.warns(FailedRunsWarning):
            mkldist.sweep(spec, {"mine": (X, Y)}, workers=0, progress=False, retry_failed=True)
        assert all(at > before[name] for name, at in record_times(Path("results/mine")).items())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["standard input", "a script", "a thread"])
def test_workers_start_wherever_the_call_stands(how, tmp_path):
    """A script without ``if __name__ == "__main__"`` runs once, not in every worker."""
    program = PROGRAM
    if how == "a thread":
        lines = PROGRAM.replace("\n", "\n    ")
        program = f"def call():{lines}\nimport threading\nt = threading.Thread(target=call)\n"
        program += "t.start()\nt.join()\n"
    (tmp_path / "script.py").write_text(program)
    words = ["-"] if how == "standard input" else ["script.py"]
    done = subprocess.run(
        [sys.executable, *words], input=program, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "state complete\n", done.stderr
    assert "Traceback" not in done.stderr


# Python may be interrupted between the opening of a file and the `with` that would close it.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.slow
def test_an_interrupt_leaves_a_sweep_that_the_same_call_resumes():
    spec = {**SPEC, "splits": {"repeats": 60}, "methods": [{"name": "level", "C": [1, 10, 100]}]}
    records = Journal(Path("results/mine/records.journal"))

    def interrupt():
        wait_until(lambda: len(records.states()) > 5, "some runs are recorded")
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt, match=r"of 180 runs are recorded; resume with: the same"):
        mkldist.sweep(spec, {"mine": (X, Y)}, workers=0, progress=False)
    interrupting.join()
    before = record_times(Path("results/mine"))
    assert 5 < len(before) < 180
    tree = mkldist.sweep(spec, {"mine": (X, Y)}, workers=0, progress=False)
    assert (tree["mine/level"].state == "complete").all()
    after = record_times(Path("results/mine"))
    assert before.items() <= after.items()
    assert len(after) == 180


@pytest.mark.slow
def test_methods_run_on_their_own_banks_alone():
    linear = [mkldist.kernels.Linear(features=["all", "each"])]
    spec = SPEC | {
        "banks": [*SPEC["banks"], {"name": "linear", "n_kernels": [1, 2], "kernels": linear}],
        "methods": [
            {"name": "level", "banks": ["b"]},
            {"name": "silp", "banks": ["linear-2"]},
            {"name": "uniform"},
        ],
    }
    tree = mkldist.sweep(spec, {"mine": (X, Y)}, progress=False, workers=0)
    assert {node.path for node in tree.subtree if "test_error" in node} == {
        "/mine/b/level",
        "/mine/b/uniform",
        "/mine/linear-1/uniform",
        "/mine/linear-2/silp",
        "/mine/linear-2/uniform",
    }
    assert all(tree["mine/linear-2/silp"].state == "complete")
