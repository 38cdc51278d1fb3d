"""Reruns from Python, with `worker_choice`."""

from __future__ import annotations

import pytest

import mkldist
from mkldist.errors import OutputError, SpecError
from tests.run.sweeps import run_here, sweep_text


def test_a_rerun_agrees_to_the_bit_and_lies_beside(tmp_path):
    run_here(sweep_text({"uniform": [1.0, 10.0]}), tmp_path / "r", None)
    found = mkldist.rerun(tmp_path / "r", workers=0, progress=False)
    assert found.holds
    assert found.n_runs == found.n_equal == 4
    assert (tmp_path / "r-rerun" / "results.zarr").is_dir()


def test_a_rerun_into_the_same_folder_and_wrong_workers_are_refused(tmp_path):
    run_here(sweep_text({"uniform": [1.0]}), tmp_path / "r", None)
    with pytest.raises(OutputError, match="another folder"):
        mkldist.rerun(tmp_path / "r", output=tmp_path / "r")
    with pytest.raises(SpecError, match="workers"):
        mkldist.rerun(tmp_path / "r", workers=-1)
