"""What is to be done about labels that a method does not learn."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mkldist
from mkldist.core.arrays import Target
from mkldist.errors import GramError
from mkldist.fit.inputs import label_hint
from mkldist.methods.registry import METHODS

X = np.random.default_rng(0).normal(size=(30, 2))
GRAMS = np.array([X @ X.T, (X @ X.T) ** 2])


@pytest.mark.parametrize(
    ("method", "y", "said"),
    [
        ("level", X[:, 0], 'call spicymkl, elastmkl or primalmkl, with loss="squared".'),
        ("level", np.arange(30) % 2, "Write np.where(y == 1, 1, -1)."),
        ("level", np.arange(30) % 2 + 1, "Write np.where(y == 2, 1, -1)."),
        ("level", np.arange(30) % 3 - 1, "If 0 marks points without a label, call lapmkl, lapsvm"),
        ("primalmkl", np.arange(30) % 3, "np.where(y == 2, 1, -1); for real values, call spicy"),
    ],
)
def test_labels_that_do_not_fit_are_met_with_what_to_do(method, y, said):
    with pytest.raises(GramError, match=r"^y: found labels .*" + re.escape(said)):
        mkldist.solve(method, GRAMS, y)


def test_the_loss_that_is_named_learns_real_values():
    for method in ("spicymkl", "elastmkl", "primalmkl"):
        assert mkldist.solve(method, GRAMS, X[:, 0], loss="squared", tol=0.1).gap <= 0.1


def test_more_labels_than_are_shown_are_told():
    with pytest.raises(GramError, match=r"found labels \{.*, \.\.\.\}; expected both classes"):
        mkldist.solve("level", GRAMS, X[:, 0])


def test_one_class_alone_has_no_remedy():
    assert label_hint(METHODS["level"], [1.0], Target.CLASSES) == ""
    assert label_hint(METHODS["primalmkl"], [0.5, 2.0], Target.ONE_CLASS) == ""
