"""The first kernels in a drawn order: nested, of the listed ones, all equally likely."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import first_drawn
from mkldist.spec.banks import BankSpec

NAMES = tuple("abcdefg")


def listed(size: int | None = None, seed: int = 0):
    kernels = [
        {"function": "gaussian", "widths": [0.5, 1.0, 2.0],
         "features": ["all", "each", {"count": 20}]},
        {"function": "polynomial", "degrees": [1, 2], "features": ["all", {"count": 20}]},
    ]  # fmt: skip
    spec = BankSpec.model_validate({"name": "drawn", "kernels": kernels, "n_kernels": size})
    everything = kernel_list(spec, 7, NAMES, {}, seed)
    if size is None:
        return everything
    return first_drawn([everything], size, seed, "banks.drawn")[0]


def contents(kernels) -> list[tuple]:
    """Return every kernel as function, parameter, offset and the names of its features."""
    return [
        (int(kernels.function[m]), float(kernels.parameter[m]), float(kernels.offset[m]),
         tuple(NAMES[j] for j in kernels.features_of(m)))
        for m in range(len(kernels))
    ]  # fmt: skip


def test_smaller_banks_begin_larger_ones():
    everything, sizes = listed(), (1, 10, 50, len(listed()))
    drawn = [listed(size) for size in sizes]
    for smaller, larger in pairwise(drawn):
        n = len(smaller)
        assert contents(larger)[:n] == contents(smaller)
        assert larger.names(NAMES)[:n] == smaller.names(NAMES)
        assert larger.select(slice(n)).names(NAMES) == smaller.names(NAMES)
    assert [len(kernels) for kernels in drawn] == list(sizes)
    assert Counter(contents(drawn[-1])) == Counter(contents(everything))
    assert contents(drawn[-1]) != contents(everything)


def test_the_seed_draws_the_order_and_every_kernel_has_its_chance():
    first = Counter(listed(1, seed).names(NAMES)[0].split("[")[0] for seed in range(200))
    assert set(first) == {
        "gaussian(0.5)", "gaussian(1)", "gaussian(2)", "polynomial(1)", "polynomial(2)",
    }  # fmt: skip
    shares = np.array([first["gaussian(1)"], first["polynomial(2)"]]) / 200
    np.testing.assert_allclose(shares, [28 / 126, 21 / 126], atol=0.1)


def test_only_the_subsets_of_drawn_kernels_are_kept():
    few = listed(4)
    assert len(few.subset_indptr) - 1 == len(set(few.subset.tolist())) <= 4
    assert few.fingerprint == listed(4).fingerprint != listed(5).fingerprint


def test_more_kernels_than_are_listed_are_refused():
    with pytest.raises(SpecError, match=r"banks\.drawn\.n_kernels: found 127; expected at most 126"
                       r".*features = \{count"):  # fmt: skip
        listed(127)
