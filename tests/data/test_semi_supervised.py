"""Splits with few labelled points: sizes, classes, no overlap, and dependence on the seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mkldist.data.dataset import Dataset, Split
from mkldist.data.splits import make_splits
from mkldist.spec.datasets import SplitsSpec
from tests.data.mistakes import mistake


def dataset(*sizes: int) -> Dataset:
    y = np.repeat(np.arange(len(sizes)), sizes).astype(float)
    if len(sizes) == 2:
        y = 2 * y - 1
    y = np.random.default_rng(9).permutation(y)
    names = tuple(f"class {i}" for i in range(len(sizes)))
    return Dataset("t", np.arange(len(y))[:, None] * 1.0, y, names, ("f",))


def made(data: Dataset, seed: int = 0, **words: Any) -> tuple[Split, ...]:
    return make_splits(SplitsSpec(kind="semi-supervised", **words), data, seed)


def counts(data: Dataset, rows: np.ndarray) -> list[int]:
    return [int(np.count_nonzero(data.y[rows] == label)) for label in np.unique(data.y)]


AMOUNTS = st.one_of(
    st.fixed_dictionaries({"labelled_per_class": st.integers(1, 4)}),
    st.fixed_dictionaries({"labelled_fraction": st.floats(0.05, 0.4)}),
    st.fixed_dictionaries(
        {"labelled": st.integers(4, 12), "stratified": st.sampled_from([None, True, False])}
    ),
)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.integers(12, 30), min_size=2, max_size=4),
    AMOUNTS,
    st.sampled_from([0.0, 0.25]),
    st.integers(0, 2**40),
)
def test_the_three_parts_are_all_points_once(
    sizes: list[int], amount: dict[str, Any], test_fraction: float, seed: int
) -> None:
    data = dataset(*sizes)
    splits = made(data, seed, test_fraction=test_fraction, repeats=3, **amount)
    assert len(splits) == 3
    for split in splits:
        parts = (split.train, split.unlabelled, split.test)
        assert all(part.dtype == np.intp and (np.diff(part) > 0).all() for part in parts)
        assert np.sort(np.concatenate(parts)).tolist() == list(range(data.n_points))
        np.testing.assert_array_equal(split.known, np.setdiff1d(range(data.n_points), split.test))
        assert len(split.test) == np.ceil(test_fraction * data.n_points)
        assert len(split.unlabelled)
        labelled = counts(data, split.train)
        assert min(labelled) >= 1
        if "labelled_per_class" in amount:
            assert labelled == [amount["labelled_per_class"]] * len(sizes)
        elif "labelled_fraction" in amount:
            assert labelled == [max(1, round(amount["labelled_fraction"] * n)) for n in sizes]
        else:
            assert sum(labelled) == amount["labelled"]
        for n_test, size in zip(counts(data, split.test), sizes, strict=True):
            assert abs(n_test - len(split.test) * size / sum(sizes)) < 1 + 1e-9


def test_more_repeats_begin_with_those_of_fewer() -> None:
    data = dataset(20, 30)
    few = made(data, 3, labelled_per_class=4, test_fraction=0.2, repeats=2)
    many = made(data, 3, labelled_per_class=4, test_fraction=0.2, repeats=6)
    prints = [split.fingerprint for split in many]
    assert prints[:2] == [split.fingerprint for split in few]
    assert len(set(prints)) == 6
    other = made(data, 4, labelled_per_class=4, test_fraction=0.2, repeats=6)
    assert not set(prints) & {split.fingerprint for split in other}


def test_labelled_points_in_proportion_unless_the_sweep_says_otherwise() -> None:
    data = dataset(90, 30)
    drawn = made(data, labelled=20, repeats=20)
    assert {tuple(counts(data, split.train)) for split in drawn} == {(15, 5)}
    free = made(data, labelled=20, stratified=False, repeats=20)
    assert len({tuple(counts(data, split.train)) for split in free}) > 3
    rare = dataset(12, 30, 30, 30)
    drawn = made(rare, labelled=6, repeats=3)
    assert {(counts(rare, split.train)[0], len(split.train)) for split in drawn} == {(1, 6)}


@pytest.mark.parametrize(
    ("sizes", "words", "said"),
    [
        (
            (5, 9),
            {"labelled_per_class": 6},
            ("6 points to be labelled of 5 in class 'class 0'", "at most 5"),
        ),
        ((5, 5), {"labelled_per_class": 5}, ("all of 10 points labelled", "holdout")),
        ((9, 9), {"labelled": 30}, ("30 of 18 points", "2 to 17")),
        ((9, 9, 9), {"labelled": 2}, ("labelled", "2 of 27 points, of 3 classes", "3 to 26")),
        (
            (1, 9),
            {"labelled": 3, "test_fraction": 0.2},
            ("test_fraction", "2 of 10 points, of 2 classes, the smallest of 1", "two points"),
        ),
        ((9, 9, 9), {"labelled": 25}, ("labelled: found 25 of 27 points", "3 to 24 points")),
        ((1, 5000), {"labelled": 2, "stratified": False}, ("1000 draws", "stratified")),
    ],
)
def test_too_few_points(sizes: tuple[int, ...], words: dict[str, Any], said: list[str]) -> None:
    with mistake("data set 't'", *said):
        made(dataset(*sizes), **words)


def test_values_of_regression_have_no_classes_to_draw_of() -> None:
    data = Dataset("t", np.arange(9.0)[:, None], np.arange(9.0), None, ("f",))
    with mistake("regression", "classes", "splits = {...}"):
        made(data, labelled=4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "found no number of labelled rows; expected one of labelled_per_class"),
        ({"labelled": 4, "labelled_fraction": 0.5}, "found labelled_fraction and labelled"),
        ({"labelled": 4, "train_fraction": 0.5}, "found train_fraction with kind"),
        ({"labelled": 4, "folds": 3}, "found folds with kind"),
        ({"kind": "holdout", "labelled": 4}, 'expected kind = "semi-supervised"'),
        (
            {"kind": "holdout", "folds": 4},
            'found folds .* expected kind = "kfold" or "time", or no folds',
        ),
        ({"kind": "kfold", "train_fraction": 0.5}, 'expected kind = "holdout"'),
        ({"kind": "predefined", "train_fraction": 0.5}, "found train_fraction with kind"),
        ({"kind": "predefined", "folds": 5}, "found folds with kind"),
        ({"kind": "predefined", "repeats": 5}, "or no repeats"),
        ({"kind": "predefined", "stratified": True}, "found stratified with kind"),
        ({"kind": "kfold", "test_fraction": 0.2}, "found test_fraction with kind"),
        ({"labelled_per_class": 4, "stratified": False}, "found stratified = false"),
    ],
)
def test_words_that_do_not_fit_together(words: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SplitsSpec(**{"kind": "semi-supervised"} | words)
