"""The spectrum kernel of texts against counts of all substrings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mkldist
from mkldist.kernel_functions.spectrum import spectrum_diagonal, spectrum_gram

RNG = np.random.default_rng(0)
LEFT = ["".join(RNG.choice(list("acgt"), size=size)) for size in (0, 1, 2, 5, 12, 30)]
RIGHT = ["".join(RNG.choice(list("acgt"), size=size)) for size in (2, 9, 25)]


def counts(text: str, length: int) -> np.ndarray:
    """Count every word of the alphabet in a text, overlapping."""
    words = map("".join, itertools.product("acgt", repeat=length))
    return np.array(
        [sum(text.startswith(word, start) for start in range(len(text))) for word in words]
    )


@pytest.mark.parametrize("length", [1, 2, 3])
def test_values_are_products_of_counts(length):
    left, right = (np.array([counts(t, length) for t in texts]) for texts in (LEFT, RIGHT))
    np.testing.assert_array_equal(spectrum_gram(LEFT, RIGHT, length), left @ right.T)
    np.testing.assert_array_equal(spectrum_gram(LEFT, length=length), left @ left.T)
    np.testing.assert_array_equal(spectrum_diagonal(LEFT, length), (left**2).sum(axis=1))


def test_normalised_values_are_cosines():
    left, right = (np.array([counts(t, 2) for t in texts]) for texts in (LEFT, RIGHT))
    lengths = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    expected = np.divide(left @ right.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    found = spectrum_gram(LEFT, RIGHT, 2, normalised=True)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert not found[:2].any()


def test_texts_without_a_substring_are_zero():
    np.testing.assert_array_equal(spectrum_gram(["ab", ""], ["abc"], 4), [[0.0], [0.0]])
    assert spectrum_gram([], ["abc"]).shape == (0, 1)


def test_a_bank_of_texts_learns_from_their_gram_matrices():
    texts = ["aba" * (i + 1) for i in range(6)] + ["bcc" * (i + 1) for i in range(6)]
    y = np.repeat([1.0, -1.0], 6)
    lengths = (1, 2, 3)
    of = mkldist.kernels.spectrum_gram
    grams = np.array([of(texts, length=k, normalised=True) for k in lengths])
    bank = mkldist.KernelBank.from_grams(grams)
    solution = mkldist.solve("level", bank, y, C=10.0)
    new = ["abaaba", "ccbccb"]
    crossed = np.array([of(new, texts, k, normalised=True) for k in lengths])
    assert np.sign(solution.decision_function(bank.on(crossed))).tolist() == [1.0, -1.0]
