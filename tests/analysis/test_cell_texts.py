"""Texts of the cells of tables."""

from __future__ import annotations

import math

import pytest

from mkldist.core.metrics import NOTHING, p_value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "< 0.001"), (9.9e-4, "< 0.001"), (1e-3, "0.001"), (1.0, "1.000"), (math.nan, NOTHING)],
)
def test_p_values_have_three_decimals(value, text):
    assert p_value_text(value) == text
