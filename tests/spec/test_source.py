"""Tables that name the method from which a value comes."""

from __future__ import annotations

import pytest

from mkldist.spec.model import is_from_method


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"from": "a"}, True), ({"from": 1, "low": 2}, True), ({"start": 1}, False), ("from", False)],
)
def test_a_table_with_from_is_meant_to_name_a_method(value, expected):
    assert is_from_method(value) is expected
