"""Stacks of Gram matrices: checks, packing, and the work that they take."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mkldist.bank.bank import TileLayout
from mkldist.core.threads import has_cholesky_factor
from mkldist.data import grams as gram_checks
from mkldist.errors import GramError, SpecError
from mkldist.fit import bank as bank_module
from mkldist.fit.bank import AT_ONCE, Inspection, inspected_stack, pack_sound
from mkldist.fit.inputs import gram_stack

RNG = np.random.default_rng(0)


@pytest.fixture(params=["numpy", "compiled"])
def packed_bank(request):
    """Check matrices one by one, or several by compiled code."""
    many = 2**60 if request.param == "numpy" else 0
    return partial(bank_module.packed_bank, many_entries=many)


def grams(m=5, n=30, rank=4):
    factors = RNG.normal(size=(m, n, rank))
    return factors @ factors.swapaxes(1, 2)


def unpacked(bank):
    return np.array([bank.layout.unpack(values) for values in bank._values], dtype=np.float64)


@pytest.fixture
def factorisations(monkeypatch):
    """Count the factorisations of matrices."""
    calls = []
    for module, name in ((gram_checks, "has_cholesky_factor"), (bank_module, "factorise")):
        original = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, own=original: calls.append(1) or own(*given)
        )
    return calls


def slightly_negative(n=30):
    """Return a matrix with an eigenvalue of -5e-9 of the trace, and the nearest without it."""
    rotation = np.linalg.qr(RNG.normal(size=(n, n)))[0]
    values = RNG.random(n)
    values[0] = -5e-9 * values[1:].sum()
    matrix = (rotation * values) @ rotation.T
    return (matrix + matrix.T) / 2, (rotation * np.maximum(values, 0.0)) @ rotation.T


def test_numbers_keep_their_type_and_lists_become_arrays():
    for dtype in (np.float32, np.float64, np.int8, bool):
        stack = np.eye(3, dtype=dtype)[None]
        assert gram_stack(stack) is stack
    assert gram_stack([[[1, 0], [0, 1]]]).shape == (1, 2, 2)
    assert gram_stack(np.eye(2, dtype=object)[None]).dtype == np.float64


@pytest.mark.slow
@pytest.mark.parametrize("check", ["full", "active", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_packed_matrices_are_those_given(packed_bank, monkeypatch, check, dtype, threads):
    monkeypatch.setattr(bank_module, "n_processors", lambda: threads)
    stack = grams(n=500, rank=600).astype(dtype)  # large enough for parts of several threads
    bank = packed_bank(stack, Inspection.of(check, stack.dtype), dtype)
    assert bank.dtype == dtype
    np.testing.assert_array_equal(unpacked(bank), stack)


@pytest.mark.parametrize("form", [np.asfortranarray, lambda a: a[:, ::-1, ::-1], np.float32])
def test_matrices_in_other_orders_and_types_are_packed_too(packed_bank, form):
    stack = form(grams(rank=40))
    np.testing.assert_array_equal(
        unpacked(packed_bank(stack, Inspection.of("full", stack.dtype))), stack
    )


@pytest.mark.slow
@pytest.mark.parametrize(("check", "expected"), [("full", 5), ("active", 0), ("none", 0)])
def test_a_matrix_takes_one_factorisation_at_most(packed_bank, factorisations, check, expected):
    packed_bank(grams(), Inspection.of(check, np.dtype(float)))
    assert len(factorisations) == expected


@pytest.mark.parametrize(
    ("check", "order"), [("full", [30, "threads"]), ("active", ["threads"]), ("none", ["threads"])]
)
def test_what_factorises_is_loaded_before_threads_begin(packed_bank, monkeypatch, check, order):
    """A library that one of several threads loads does not always take the limit of threads."""
    told = []
    monkeypatch.setattr(bank_module, "load_for", told.append)
    monkeypatch.setattr(bank_module, "parallel_map", lambda *given: told.append("threads"))
    for function in (packed_bank, inspected_stack):
        told.clear()
        function(grams(), Inspection.of(check, np.dtype(float)))
        assert told == order


def test_a_full_check_sets_slightly_negative_eigenvalues_to_zero(packed_bank):
    matrix, nearest = slightly_negative()
    stack = np.stack([np.eye(30), matrix])
    given = stack.copy()
    full = Inspection.of("full", stack.dtype)
    for found in (unpacked(packed_bank(stack, full)), inspected_stack(stack, full)):
        np.testing.assert_array_equal(found[0], np.eye(30))
        np.testing.assert_allclose(found[1], nearest, atol=1e-14)
    np.testing.assert_array_equal(stack, given)
    assert inspected_stack(stack, Inspection.of("active", stack.dtype)) is stack


REFUSED = {
    "infinite": {"full", "active", "none"},
    "asymmetric": {"full", "active"},
    "negative diagonal": {"full", "active"},
    "indefinite": {"full"},
}


@pytest.mark.parametrize("check", ["full", "active", "none"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_each_check_refuses(packed_bank, what, check):
    stack = grams()
    if what == "infinite":
        stack[3, 1, 2] = stack[3, 2, 1] = np.inf
    elif what == "asymmetric":
        stack[3, 1, 2] += 0.1
    elif what == "negative diagonal":
        stack[3, 4, 4] = -0.1
    else:
        stack[3] -= 1e-3 * np.eye(30)
        assert (np.diagonal(stack[3]) > 0).all()
    inspection = Inspection.of(check, stack.dtype)
    for function in (packed_bank, inspected_stack):
        if check in REFUSED[what]:
            with pytest.raises(GramError, match="grams: kernel 3: "):
                function(stack, inspection)
        else:
            function(stack, inspection)


def test_a_kernel_of_positive_weight_must_need_no_change():
    inspection = Inspection.of("active", np.dtype(float))
    inspection.require_semidefinite(grams()[0], 0)
    with pytest.raises(
        GramError, match=r"kernel 7: found eigenvalues slightly below.*check='full'"
    ):
        inspection.require_semidefinite(slightly_negative()[0], 7)
    with pytest.raises(GramError, match="kernel 7: found a trace of -3"):
        inspection.require_semidefinite(-np.eye(3), 7)


def test_an_unknown_check_is_refused():
    with pytest.raises(SpecError, match="check: found 'some'; expected 'full', 'active' or 'none'"):
        Inspection.of("some", np.dtype(float))


def test_values_beyond_single_precision_are_refused(packed_bank):
    stack = np.stack([np.eye(3), 1e38 * np.eye(3)])
    with pytest.raises(GramError, match=r"kernel 1.*at most 1e\+37"):
        packed_bank(stack, Inspection.of("full", stack.dtype), np.float32)
    packed_bank(stack, Inspection.of("full", stack.dtype))


LAYOUTS = [TileLayout(1, 1), TileLayout(13, 5), TileLayout(16, 4), TileLayout(7, 7)]
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


def grams_packed(n: int, m: int = 6) -> np.ndarray:
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
    stack = grams_packed(layout.n_points)
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
    stack = grams_packed(13)
    WRONG[what](stack[kernel])
    assert packed_by(stack, layout, factorised)[1] == [kernel]


def test_matrices_need_not_be_symmetric_where_nothing_asks():
    layout, stack = TileLayout(13, 5), grams_packed(13)
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
