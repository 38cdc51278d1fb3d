"""The rows of the call from Python run, in small."""

import pytest

from tests.benchmarks import python_call


@pytest.mark.slow
def test_rows_are_measured(monkeypatch, data_dir):
    monkeypatch.setattr(python_call, "N_KERNELS", 20)
    monkeypatch.setattr(python_call, "FEW", 5)
    rows = list(python_call.python_call(data_dir))
    assert len(rows) == 6
    assert all(row.ours > 0.0 for row in rows)
