"""Provenance: complete, and writable as JSON."""

from __future__ import annotations

import json

import numpy as np

from mkldist.worker.telemetry import provenance


def test_provenance_names_versions_and_inputs():
    facts = json.loads(json.dumps(provenance(seed=3, data="d", bank="b", split="s", threads=1)))
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["seed"] == 3
    assert facts["data_fingerprint"] == "d"
    assert facts["blas"]
