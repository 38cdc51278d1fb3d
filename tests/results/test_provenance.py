"""Provenance of a run: its inputs, its machine and its software, writable as JSON."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys

import numba
import numpy as np
import psutil
import scipy

from mkldist.results.record import environment, processor_name, provenance


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


def test_the_linear_algebra_is_that_of_a_process_that_did_runs():
    said = "from mkldist.results.record import environment; print(environment()['blas'])"
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
