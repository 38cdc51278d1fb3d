"""Tiles and diagonals of all functions, compiled ones among others, against `evaluate`."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.kernels import loops
from mkldist.kernels.evaluate import diagonals, evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import fill_tiles
from mkldist.spec.banks import BankSpec

POINTS = np.abs(np.random.default_rng(0).normal(size=(11, 3)))
POINTS[3] = 0.0
EDGE = 4


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left @ right.T


def mixed() -> KernelList:
    """Return kernels of compiled and other functions, in turn."""
    entries = [
        {"function": "gaussian", "widths": [0.5, 1], "features": ["all", "each"]},
        {"function": "matern", "widths": 1, "features": ["all", "each"]},
        {"function": "linear"},
        {"function": "jaccard", "features": ["each", "all"]},
        {"function": "intersection"},
        {"function": "periodic", "widths": 1, "period": [1, 2], "features": "all"},
        {"function": products},
        {"function": "polynomial", "degrees": 2, "features": "all"},
    ]
    return kernel_list(BankSpec(kernels=entries), 3, ["a", "b", "c"], {}, 0)


def filled(kernels: KernelList, dtype: type, *, cosine: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the tiles of the upper triangle and their places, (2, t)."""
    places = np.array(np.triu_indices(3))
    out = np.full((len(kernels), places.shape[1], EDGE, EDGE), np.nan, dtype)
    fill_tiles(kernels, np.ascontiguousarray(POINTS.T), *places, out, cosine=cosine)
    return out, places


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_are_parts_of_the_gram_matrices_and_end_in_zeros(dtype, cosine):
    kernels = mixed()
    expected = np.zeros((len(kernels), 12, 12))
    expected[:, :11, :11] = evaluate(kernels, POINTS, POINTS, cosine=cosine)
    found, places = filled(kernels, dtype, cosine=cosine)
    rounding = 1e-6 if dtype is np.float32 else 1e-12
    for tiles, (row, col) in zip(found.swapaxes(0, 1), places.T, strict=True):
        part = expected[:, row * EDGE :, col * EDGE :][:, :EDGE, :EDGE]
        np.testing.assert_allclose(tiles, part, rtol=rounding, atol=rounding)
        if row == col:
            np.testing.assert_array_equal(tiles, tiles.swapaxes(1, 2))


@pytest.mark.parametrize("cosine", [False, True])
def test_diagonals_are_those_of_the_gram_matrices(cosine):
    kernels = mixed()
    expected = np.einsum("mii->mi", evaluate(kernels, POINTS, POINTS, cosine=cosine))
    found = diagonals(kernels, np.ascontiguousarray(POINTS.T).T, cosine=cosine)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(diagonals(kernels, POINTS, cosine=cosine), expected, rtol=1e-12)


def test_kernels_of_compiled_functions_take_one_call_of_the_loop(monkeypatch):
    calls = []
    fill = loops._fill
    monkeypatch.setattr(loops, "_fill", lambda *args: calls.append(fill(*args)))
    family = kernel_list(BankSpec(family="xu2008"), 3, ["a", "b", "c"], {}, 0)
    filled(family, np.float64, cosine=True)
    assert len(calls) == 1


def test_the_codes_of_the_loop_are_those_of_its_functions():
    assert [function.code for function in loops.COMPILED] == [0, 1, 2, 3]
