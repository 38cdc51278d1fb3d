"""Reruns from Python."""

from __future__ import annotations

import pytest

import mkldist
from mkldist.errors import OutputError, SpecError
from tests.run.sweeps import run_here, sweep_text


@pytest.mark.slow
def test_a_rerun_agrees_to_the_bit_and_lies_beside(tmp_path):
    run_here(sweep_text({"uniform": [1.0, 10.0]}), tmp_path / "r", None)
    found = mkldist.rerun(tmp_path / "r", workers=0, progress=False)
    assert found.holds
    assert found.n_runs == found.n_equal == 4
    assert (tmp_path / "r-rerun" / "tree.layout").is_file()


@pytest.mark.slow
def test_a_rerun_into_the_same_folder_and_wrong_workers_are_refused(tmp_path):
    run_here(sweep_text({"uniform": [1.0]}), tmp_path / "r", None)
    with pytest.raises(OutputError, match="another folder"):
        mkldist.rerun(tmp_path / "r", output=tmp_path / "r")
    with pytest.raises(SpecError, match="workers"):
        mkldist.rerun(tmp_path / "r", workers=-1)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("results", {"results": 3}),
        ("output", {"results": ".", "output": 3}),
        ("data_dirs", {"results": ".", "data_dirs": [None]}),
        ("cluster", {"results": ".", "cluster": 3.5}),
    ],
)
def test_what_is_no_path_is_refused_by_its_argument(argument, given, tmp_path):
    run_folder = {"results": tmp_path} | {k: v for k, v in given.items() if v != "."}
    with pytest.raises(SpecError, match=rf"^{argument}: found .*; expected a path"):
        mkldist.rerun(**run_folder)
