"""Stacks of Gram matrices: checks, packing, and the work that they take."""

import numpy as np
import pytest

from mkldist.data import grams as gram_checks
from mkldist.errors import GramError, SpecError
from mkldist.fit import bank as bank_module
from mkldist.fit.bank import Inspection, inspected_stack, packed_bank
from mkldist.fit.inputs import gram_stack

RNG = np.random.default_rng(0)


def grams(m=5, n=30, rank=4):
    factors = RNG.normal(size=(m, n, rank))
    return factors @ factors.swapaxes(1, 2)


def unpacked(bank):
    return np.array([bank.layout.unpack(values) for values in bank._values], dtype=np.float64)


@pytest.fixture
def factorisations(monkeypatch):
    """Count the factorisations of matrices."""
    calls, original = [], gram_checks.has_cholesky_factor
    monkeypatch.setattr(
        gram_checks, "has_cholesky_factor", lambda *given: calls.append(1) or original(*given)
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
@pytest.mark.parametrize("check", ["full", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_packed_matrices_are_those_given(monkeypatch, check, dtype, threads):
    monkeypatch.setattr(bank_module, "n_processors", lambda: threads)
    stack = grams(n=500, rank=600).astype(dtype)  # large enough for parts of several threads
    bank = packed_bank(stack, Inspection.of(check, stack.dtype), dtype)
    assert bank.dtype == dtype
    np.testing.assert_array_equal(unpacked(bank), stack)


@pytest.mark.parametrize("form", [np.asfortranarray, lambda a: a[:, ::-1, ::-1], np.float32])
def test_matrices_in_other_orders_and_types_are_packed_too(form):
    stack = form(grams(rank=40))
    np.testing.assert_array_equal(
        unpacked(packed_bank(stack, Inspection.of("full", stack.dtype))), stack
    )


@pytest.mark.slow
@pytest.mark.parametrize(("check", "expected"), [("full", 5), ("none", 0)])
def test_a_matrix_takes_one_factorisation_at_most(factorisations, check, expected):
    packed_bank(grams(), Inspection.of(check, np.dtype(float)))
    assert len(factorisations) == expected


@pytest.mark.parametrize(("check", "order"), [("full", [30, "threads"]), ("none", ["threads"])])
def test_what_factorises_is_loaded_before_threads_begin(monkeypatch, check, order):
    """A library that one of several threads loads does not always take the limit of threads."""
    told = []
    monkeypatch.setattr(bank_module, "load_for", told.append)
    monkeypatch.setattr(bank_module, "parallel_map", lambda *given: told.append("threads"))
    for function in (packed_bank, inspected_stack):
        told.clear()
        function(grams(), Inspection.of(check, np.dtype(float)))
        assert told == order


def test_a_full_check_sets_slightly_negative_eigenvalues_to_zero():
    matrix, nearest = slightly_negative()
    stack = np.stack([np.eye(30), matrix])
    given = stack.copy()
    full = Inspection.of("full", stack.dtype)
    for found in (unpacked(packed_bank(stack, full)), inspected_stack(stack, full)):
        np.testing.assert_array_equal(found[0], np.eye(30))
        np.testing.assert_allclose(found[1], nearest, atol=1e-14)
    np.testing.assert_array_equal(stack, given)


WRONG = {
    "nan": (lambda a: a.__setitem__((2, 0), np.nan), {"full", "none"}),
    "infinities": (
        lambda a: a.__setitem__(([2, 0, 4, 1], [0, 2, 1, 4]), [np.inf] * 2 + [-np.inf] * 2),
        {"full", "none"},
    ),
    "too large": (lambda a: a.__setitem__((3, 3), 1e101), {"full", "none"}),
    "asymmetric": (lambda a: a.__setitem__((1, 2), 10.0), {"full"}),
    "negative diagonal": (lambda a: a.__setitem__((4, 4), -0.1), {"full"}),
    "indefinite": (lambda a: a.__isub__(1e-3 * np.eye(30)), {"full"}),
}


@pytest.mark.parametrize("check", ["full", "none"])
@pytest.mark.parametrize("what", WRONG)
def test_what_each_check_refuses(what, check):
    stack, (spoil, refusing) = grams(), WRONG[what]
    spoil(stack[3])
    inspection = Inspection.of(check, stack.dtype)
    for function in (packed_bank, inspected_stack):
        if check in refusing:
            with pytest.raises(GramError, match="grams: kernel 3: "):
                function(stack, inspection)
        else:
            function(stack, inspection)


def test_a_difference_of_rounding_between_triangles_passes():
    stack = grams()
    stack[2, 0, 4] = np.nextafter(stack[2, 0, 4], 99.0)
    upper = np.triu(stack) + np.triu(stack, 1).swapaxes(1, 2)
    found = unpacked(packed_bank(stack, Inspection.of("full", stack.dtype)))
    np.testing.assert_allclose(found, upper, rtol=1e-14)


def test_an_unknown_check_is_refused():
    with pytest.raises(SpecError, match="check: found 'some'"):
        Inspection.of("some", np.dtype(float))


def test_values_beyond_single_precision_are_refused():
    stack = np.stack([np.eye(3), 1e38 * np.eye(3)])
    with pytest.raises(GramError, match=r"kernel 1.*at most 1e\+37"):
        packed_bank(stack, Inspection.of("full", stack.dtype), np.float32)
    packed_bank(stack, Inspection.of("full", stack.dtype))
