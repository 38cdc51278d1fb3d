"""Calls side by side: in order, few at a time, and ended by the first error."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from mkldist.fit.model import in_order


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_are_in_order(n_threads):
    assert list(in_order(lambda x: x * x, range(40), n_threads)) == [x * x for x in range(40)]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_items_are_taken_when_they_are_needed(n_threads):
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(50):
            taken.append(item)
            yield item

    for done, _ in enumerate(in_order(lambda x: x, items(), n_threads), start=1):
        assert len(taken) <= done + n_threads


def test_calls_are_side_by_side():
    together = threading.Barrier(3, timeout=20)
    assert list(in_order(lambda x: together.wait() >= 0, range(3), 3)) == [True] * 3


def test_the_first_error_ends_all():
    def fail_at_three(x: int) -> int:
        if x >= 3:
            raise ValueError(f"item {x}")
        return x

    found = []
    with pytest.raises(ValueError, match="item 3"):
        found.extend(in_order(fail_at_three, range(1000), 2))
