"""Data sets and splits: known rows, class numbers, and fingerprints."""

from __future__ import annotations

import dataclasses

import numpy as np

from mkldist.core.identity import array_id
from mkldist.data.dataset import Dataset, Split

X = np.arange(6.0).reshape(3, 2)
TWO = Dataset("t", X, np.array([1.0, -1.0, 1.0]), ("no", "yes"), ("a", "b"))
THREE = Dataset("t", X, np.array([2.0, 0.0, 1.0]), ("a", "b", "c"), ("a", "b"))
REAL = Dataset("t", X, np.array([2.0, 0.0, 1.0]), None, ("a", "b"))


def test_class_numbers_are_positions_in_the_classes() -> None:
    assert TWO.class_numbers.tolist() == [1, 0, 1]
    assert THREE.class_numbers.tolist() == [2, 0, 1]


def test_more_than_two_classes_are_multiclass() -> None:
    assert (TWO.multiclass, THREE.multiclass, REAL.multiclass) == ((), ("a", "b", "c"), ())
    assert (TWO.task, REAL.task) == ("classification", "regression")


def test_sizes_with_and_without_features() -> None:
    assert (TWO.n_points, TWO.n_features) == (3, 2)
    grams = dataclasses.replace(TWO, x=None, grams=np.eye(3)[None])
    assert (grams.n_points, grams.n_features) == (3, 0)


def test_the_fingerprint_depends_on_content_and_task_but_not_on_names() -> None:
    renamed = dataclasses.replace(TWO, name="u", classes=("-", "+"), origin="elsewhere")
    assert renamed.fingerprint == TWO.fingerprint
    flipped = dataclasses.replace(TWO, y=-TWO.y)
    assert len({d.fingerprint for d in (TWO, THREE, REAL, flipped)}) == 4


def test_a_split_without_unlabelled_rows_is_known_by_its_two_parts_as_ever() -> None:
    train, test = np.array([3, 1], np.intp), np.array([0], np.intp)
    plain, few = Split(train, test), Split(train, test, np.array([2], np.intp))
    # What runs of supervised sweeps were recorded under must not change.
    assert plain.fingerprint == Split(train, test, np.zeros(0, np.intp)).fingerprint
    assert plain.fingerprint == array_id(train, test)
    assert plain.known is train
    assert few.known.tolist() == [1, 2, 3]
    assert few.fingerprint not in (plain.fingerprint, Split(train, few.unlabelled).fingerprint)
