"""Random divisions, against those of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import (
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedShuffleSplit,
)

from mkldist.data.random_splits import holdouts, repeated_folds

SEEDS = st.integers(0, 2**32 - 1)
REPEATS = st.integers(1, 3)


@st.composite
def labels(draw: st.DrawFn, least: int = 2) -> np.ndarray:
    """Draw labels of two to five classes in random order."""
    sizes = draw(st.lists(st.integers(least, 40), min_size=2, max_size=5))
    names = draw(st.permutations(["b", "a", "e", "d", "c"]))[: len(sizes)]
    order = np.random.default_rng(draw(SEEDS)).permutation(sum(sizes))
    return np.repeat(names, sizes)[order]


def sizes(n: int, share: float) -> tuple[int, int]:
    n_train = round(share * n)
    assume(0 < n_train < n)
    return n_train, n - n_train


@settings(deadline=None)
@given(labels(), st.floats(0.05, 0.95), SEEDS, REPEATS)
def test_stratified_holdouts_are_those_of_scikit_learn(y, share, seed, repeats):
    n_train, n_test = sizes(len(y), share)
    assume(min(n_train, n_test) >= len(np.unique(y)))
    theirs = StratifiedShuffleSplit(
        repeats, train_size=n_train, test_size=n_test, random_state=seed
    ).split(y[:, None], y)
    ours = list(holdouts(n_train, n_test, repeats, seed, y))
    assert len(ours) == repeats
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine[0], other[0])
        np.testing.assert_array_equal(mine[1], other[1])


@settings(deadline=None)
@given(st.integers(2, 200), st.floats(0.05, 0.95), SEEDS, REPEATS)
def test_holdouts_are_those_of_scikit_learn(n, share, seed, repeats):
    n_train, n_test = sizes(n, share)
    theirs = ShuffleSplit(
        repeats, train_size=n_train, test_size=n_test, random_state=seed
    ).split(np.zeros((n, 1)))  # fmt: skip
    for mine, other in zip(holdouts(n_train, n_test, repeats, seed), theirs, strict=True):
        np.testing.assert_array_equal(mine[0], other[0])
        np.testing.assert_array_equal(mine[1], other[1])


@settings(deadline=None)
@given(labels(least=6), st.integers(2, 6), SEEDS, REPEATS)
def test_folds_are_those_of_scikit_learn(y, n_folds, seed, repeats):
    for kind, given_labels in ((RepeatedStratifiedKFold, y), (RepeatedKFold, None)):
        theirs = kind(n_splits=n_folds, n_repeats=repeats, random_state=seed).split(y[:, None], y)
        ours = repeated_folds(n_folds, repeats, seed, len(y), given_labels)
        for mine, (_, other) in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("sizes", "y", "words"),
    [
        ((0, 2), None, "no training point"),
        ((2, 2), ["a", "a", "a", "b"], "a class of a single point"),
        ((5, 1), ["a", "a", "a", "b", "b", "b"], "parts of 5 and 1 points, and 2 classes"),
    ],
)
def test_impossible_divisions_say_why(sizes, y, words):
    with pytest.raises(ValueError, match=words):
        list(holdouts(*sizes, 1, 0, None if y is None else np.array(y)))
