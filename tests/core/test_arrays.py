"""Arrays that cannot be written to, and kinds of labels."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from mkldist.core.arrays import LABELS, LEARNT, Array, Bools, Floating, Floats, Ints, Target

VALUES = np.array([0.5, 0.0, 2.0])


def scalar_of(alias: Any) -> Any:
    """Return the type of the entries that an alias of ``numpy.ndarray`` states."""
    _, dtype = get_args(alias)
    [scalar] = get_args(dtype)
    return scalar


@pytest.mark.parametrize(
    ("alias", "array"),
    [
        (Floats, VALUES),
        (Floats, np.eye(2) @ np.ones(2)),
        (Ints, np.flatnonzero(VALUES)),
        (Ints, np.argsort(VALUES)),
        (Ints, np.triu_indices(3)[0]),
        (Bools, VALUES > 0.0),
        (Bools, np.isin(VALUES, [2.0])),
    ],
)
def test_results_of_numpy_have_the_stated_type(alias, array):
    assert array.dtype == np.dtype(scalar_of(alias))


def test_gram_matrices_are_of_either_precision_and_of_nothing_else():
    assert issubclass(np.float32, scalar_of(Floating))
    assert issubclass(np.float64, scalar_of(Floating))
    assert not issubclass(np.int64, scalar_of(Floating))
    assert scalar_of(Array) is Any


@pytest.mark.parametrize("words", [LEARNT, LABELS])
def test_every_kind_has_words_of_its_own(words):
    assert set(words) == set(Target)
    assert len(set(words.values())) == len(Target)


def test_kinds_are_read_back_from_their_values():
    assert [Target(str(kind)) for kind in Target] == list(Target)
    with pytest.raises(ValueError, match="three classes"):
        Target("three classes")
