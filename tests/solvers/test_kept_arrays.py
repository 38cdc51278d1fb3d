"""Arrays that several solvers share."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mkldist.solvers.base import ArrayCache


def test_an_array_is_made_once_and_nobody_changes_it():
    kept, made = ArrayCache(1000), []

    def make():
        made.append(None)
        return np.arange(3.0)

    first = kept.get("a", make)
    assert kept.get("a", make) is first
    assert len(made) == 1
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0


def test_another_process_begins_without_arrays():
    kept = ArrayCache(80)
    kept.get("a", lambda: np.zeros(10))
    other = pickle.loads(pickle.dumps(kept))
    assert other.known("a") is None
    other.get("a", lambda: np.ones(10))
    assert other.known("a").all()
    assert not kept.known("a").any()
    other.get("b", lambda: np.ones(10))
    assert other.known("a") is None


def test_those_used_last_stay_within_the_limit():
    kept = ArrayCache(2 * 80)
    for name in ("a", "b", "a", "c"):  # c makes b leave, for a was used after it
        kept.get(name, lambda: np.zeros(10))
    remade = []
    for name in ("a", "c", "b"):
        kept.get(name, lambda name=name: remade.append(name) or np.zeros(10))
    assert remade == ["b"]


def test_an_array_beyond_the_limit_is_made_and_not_kept():
    kept, made = ArrayCache(8), []
    for _ in range(2):
        assert kept.get("a", lambda: made.append(None) or np.ones(5)).sum() == 5.0
    assert len(made) == 2


def test_an_array_beyond_the_limit_displaces_no_other():
    kept, made = ArrayCache(80), []
    for size in (10, 11, 10):
        kept.get(size, lambda size=size: made.append(size) or np.zeros(size))
    assert made == [10, 11]


def test_solvers_on_other_kernels_share_arrays_and_their_limit():
    kept = ArrayCache(2 * 80)
    first, second = kept.on("first"), kept.on("second")
    assert (kept.kernels_id, first.kernels_id, second.kernels_id) == ("", "first", "second")
    made = first.get("a", lambda: np.zeros(10))
    assert second.get("a", lambda: np.ones(10)) is made
    for name in ("b", "c"):
        second.get(name, lambda: np.zeros(10))
    assert first.get("a", lambda: np.ones(10)).all()  # was forgotten
