"""Sweeps and data sets for the tests of what precedes every run."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np

from mkldist.data.dataset import Dataset, Split
from mkldist.spec.model import SweepSpec

SWEEP = """
name = "s"
datasets = [{name = "a"}, {name = "b"}]
[[banks]]
family = "xu2008"
"""


def sweep(words: str) -> SweepSpec:
    """Return a sweep of two data sets and one bank, with further words at its end."""
    return SweepSpec.model_validate(tomllib.loads(SWEEP + words))


def dataset(y: list[float], **words: Any) -> Dataset:
    """Return a data set "a" of two features and classes "no" and "yes"; `words` replace these."""
    labels = np.array(y, dtype=np.float64)
    x = np.random.default_rng(0).normal(size=(len(labels), 2))
    return Dataset(**{"name": "a", "x": x, "y": labels, "classes": ("no", "yes")} | words)


def split(n_train: int, n_unlabelled: int = 0, n_test: int = 1) -> Split:
    """Return a split of as many rows, training rows first."""
    rows = np.arange(n_train + n_unlabelled + n_test)
    ends = n_train, n_train + n_unlabelled
    train, unlabelled, test = np.split(rows, ends)
    return Split(train, test, unlabelled)
