"""Partitions of rows that come with the data, and indices that make none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.data.splits import partition_of_column, partitions_of, restricted
from tests.data.mistakes import mistake

N = 6


def pair(train: object, test: object) -> dict[str, np.ndarray]:
    return {"train": np.array(train), "test": np.array(test)}


def test_one_row_a_partition() -> None:
    found = partitions_of(pair([[0, 1], [2, 3]], [[5], [4]]), N, "t")
    assert [(s.train.tolist(), s.test.tolist()) for s in found] == [([0, 1], [5]), ([2, 3], [4])]
    single = partitions_of(pair([0, 1], [2]), N, "t")
    assert single[0].train.tolist() == [0, 1]
    labelled = {"idx_labs": np.array([[1]]), "idx_unls": np.array([[0, 2]])}
    (few,) = partitions_of(labelled, N, "t")
    assert (few.train.tolist(), few.unlabelled.tolist(), few.test.tolist()) == ([1], [0, 2], [])
    assert few.known.tolist() == [0, 1, 2]
    (three,) = partitions_of(pair([4, 0], [2]) | {"unlabelled": np.array([3])}, N, "t")
    assert (three.train.tolist(), three.test.tolist()) == ([4, 0], [2])
    assert three.known.tolist() == [0, 3, 4]
    assert partitions_of({}, N, "t") == ()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"train": np.array([[0]])}, ("'train' without 'test' or 'unlabelled'",)),
        ({"unlabelled": np.array([[0]])}, ("'unlabelled' without 'train'",)),
        (pair([[0]], [[1]]) | {"unlabelled": np.array([[1]])}, ("'unlabelled' and 'test'",)),
        (pair([[0]], [[1]]) | {"unlabelled": np.array([[7]])}, ("'unlabelled', row 0", "index 7")),
        (pair([[0]], [[1]]) | {"idx_labs": np.array([[0]])}, ("'train' and 'idx_labs'", "one set")),
        ({"idx_unls": np.array([[0]])}, ("'idx_unls' without 'idx_labs'",)),
        (pair([[1, 6]], [[2]]), ("index 6", "6 points", "0 to 5", "Subtract 1")),
        (pair([[0, 6]], [[2]]), ("index 6", "6 points", "belong to these data")),
        (pair([[0, -1]], [[1]]), ("index -1",)),
        (pair([[0, 0]], [[1]]), ("'train', row 0", "index 0 twice")),
        (pair([[0], [1]], [[1], [1]]), ("row 1", "1 point in both, such as 1")),
        (pair([[0], [1]], [[1]]), ("2 rows in 'train' but 1 in 'test'",)),
        (pair([[0.5]], [[1]]), ("float64", "integers")),
        (pair([[True, False]], [[1]]), ("bool", "flatnonzero")),
        (pair([[[0]]], [[1]]), ("shape (1, 1, 1)",)),
    ],
)
def test_wrong_indices(arrays: dict[str, np.ndarray], words: tuple[str, ...]) -> None:
    with mistake(*words):
        partitions_of(arrays, N, "t")


@settings(deadline=None)
@given(st.permutations(range(N)), st.integers(1, N - 1), st.sets(st.integers(0, N - 1)))
def test_rows_that_are_kept_stay_in_their_parts(order: list[int], cut: int, kept: set[int]) -> None:
    rows = np.array(sorted(kept), dtype=np.intp)
    (split,) = restricted(partitions_of(pair([order[:cut]], [order[cut:]]), N, "t"), rows, N)
    assert rows[split.train].tolist() == [i for i in order[:cut] if i in kept]
    assert rows[split.test].tolist() == [i for i in order[cut:] if i in kept]


def test_a_column_of_words_is_a_partition() -> None:
    words = np.array(["test", "Train", "unlabelled", "train", "TEST"])
    split = partition_of_column(words, "t")
    assert (split.train.tolist(), split.test.tolist()) == ([1, 3], [0, 4])
    assert split.unlabelled.tolist() == [2]


@pytest.mark.parametrize("words", [["train", "tset"], ["train", "train"], ["test", "unlabelled"]])
def test_a_column_of_other_words_is_none(words: list[str]) -> None:
    with mistake("t: split", repr(words[0]), "'train' in some rows"):
        partition_of_column(np.array(words), "t: split")
