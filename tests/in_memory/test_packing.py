"""Packing by compiled code: entries as the layout packs them, and matrices that do not pass."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.bank import TileLayout
from mkldist.core.threads import has_cholesky_factor
from mkldist.fit.bank import AT_ONCE, pack_sound

LAYOUTS = [TileLayout(1, 1), TileLayout(13, 5), TileLayout(16, 4), TileLayout(7, 7)]
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def grams(n: int, m: int = 6) -> np.ndarray:
    half = np.random.default_rng(n).normal(size=(m, n, n + 2))
    return half @ half.swapaxes(1, 2) + 1e-3 * np.eye(n)


def packed_by(
    stack: np.ndarray,
    layout: TileLayout,
    factorised: bool = False,
    symmetric: bool = True,
    at_once: int = AT_ONCE,
) -> tuple[np.ndarray, list]:
    packed = np.full((len(stack), layout.n_entries), np.nan)
    wanted = {"symmetric": symmetric, "factorised": factorised, "at_once": at_once}
    return packed, pack_sound(stack, layout, packed, **wanted)


@every_layout
@pytest.mark.parametrize("factorised", [False, True])
@pytest.mark.parametrize("at_once", [1, 500, 10**6])
def test_entries_are_those_of_the_layout(layout, factorised, at_once):
    stack = grams(layout.n_points)
    packed, others = packed_by(stack, layout, factorised, at_once=at_once)
    assert others == []
    np.testing.assert_array_equal(packed, layout.pack(stack))


WRONG = {
    "nan": lambda a: a.__setitem__((2, 0), np.nan),
    "infinite": lambda a: a.__setitem__(([2, 0], [0, 2]), np.inf),
    "both signs": lambda a: a.__setitem__(
        ([2, 0, 4, 1], [0, 2, 1, 4]), [np.inf] * 2 + [-np.inf] * 2
    ),
    "asymmetric": lambda a: a.__setitem__((0, 4), np.nextafter(a[0, 4], 9.0)),
    "too large": lambda a: a.__setitem__((3, 3), 1e101),
    "negative": lambda a: a.__setitem__((3, 3), -1e-9),
}


@pytest.mark.parametrize("factorised", [False, True])
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("kernel", [0, 4])
def test_matrices_that_do_not_pass_are_named(factorised, what, kernel):
    layout = TileLayout(13, 5)
    stack = grams(13)
    WRONG[what](stack[kernel])
    assert packed_by(stack, layout, factorised)[1] == [kernel]


def test_matrices_need_not_be_symmetric_where_nothing_asks():
    layout, stack = TileLayout(13, 5), grams(13)
    stack[2, 9, 1] += 0.5
    packed, others = packed_by(stack, layout, symmetric=False)
    assert others == []
    np.testing.assert_array_equal(packed, layout.pack(stack))
    stack[3, 9, 1] = np.inf
    assert packed_by(stack, layout, symmetric=False)[1] == [3]


@pytest.mark.parametrize("below", [1e-3, 1e-13, 1e-15, 0.0])
def test_matrices_without_a_factor_are_those_of_numpy(below):
    layout, draw = TileLayout(60, 16), np.random.default_rng(0)
    half = draw.normal(size=(20, 60, 30))
    stack = half @ half.swapaxes(1, 2)
    stack = (stack + stack.swapaxes(1, 2)) / 2
    stack -= below * np.trace(stack[0]) * np.eye(60)
    ridge = 60 * np.finfo(float).eps
    expected = [
        m for m, one in enumerate(stack) if not has_cholesky_factor(one, ridge * one.trace())
    ]
    assert packed_by(stack, layout, factorised=True)[1] == expected
    assert packed_by(stack, layout, factorised=False)[1] == []


def test_zeros_have_no_factor():
    assert packed_by(np.zeros((2, 7, 7)), TileLayout(7, 7), factorised=True)[1] == [0, 1]
