"""Bytes and build times of the banks of a node, along its splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mkldist.results.layout import bank_coordinates
from tests.results.sweeps import made_up_plan


def test_a_bank_for_each_split_or_one_for_all():
    [one] = made_up_plan().banks
    found = bank_coordinates([one], 3)
    assert found["bank_bytes"].values.tolist() == [8 * 7 * 100] * 3
    assert np.isnan(found["build_seconds"].values).all()
    each = [replace(one, split=s, n_bytes=10 * s) for s in (0, 2, 5)]
    np.testing.assert_array_equal(bank_coordinates(each, 3)["bank_bytes"].values, [0, np.nan, 20])


def test_no_time_builds_a_bank_that_is_not_stored():
    [one] = made_up_plan().banks
    found = bank_coordinates([replace(one, backend="recompute")], 2)
    for name in ("build_seconds", "build_cpu_seconds"):
        assert found[name].values.tolist() == [0, 0]
        assert found[name].variable.units == "s"
