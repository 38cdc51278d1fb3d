"""Arrays, their ids, and counts of a solver's work."""

import itertools
from typing import Any, get_args

import numpy as np
import pytest

from mkldist.core.arrays import LABELS, LEARNT, Array, Bools, Floating, Floats, Ints, Target
from mkldist.core.checksums import array_file_id, array_id, content_id
from mkldist.solvers.base import Counters

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


def test_names_are_those_of_b2sum():
    # printf '{"a":1,"b":"x"}' | b2sum -l 80
    assert content_id(b="x", a=1) == "1e731c514b762b86058d"
    # '<f8(2,);' and the 16 bytes of 1.0 and -2.5
    assert array_id(np.array([1.0, -2.5], dtype="<f8")) == "a5958e1d4de7e37fa297"


@pytest.mark.parametrize("order", list(itertools.permutations(["seed", "grid", "name"])))
def test_parts_may_come_in_any_order(order):
    parts = {"seed": 7, "grid": [1, 2.5, None], "name": "two moons"}
    # printf '{"grid":[1,2.5,null],"name":"two moons","seed":7}' | b2sum -l 80
    assert content_id(**{name: parts[name] for name in order}) == "618523b9297fdc689977"


def test_numbers_that_are_not_finite_have_no_name():
    with pytest.raises(ValueError, match="JSON"):
        content_id(tol=float("nan"))


def test_shape_type_and_place_of_arrays_count():
    row = np.arange(6.0)
    arrays = [
        (row,),
        (row.reshape(2, 3),),
        (row.reshape(3, 2),),
        (row.astype(np.float32),),
        (row, None),
        (None, row),
        (row[:3], row[3:]),
        (-row,),
    ]
    assert len({array_id(*some) for some in arrays}) == len(arrays)


def test_layout_in_memory_does_not_count():
    matrix = np.arange(6.0).reshape(2, 3)
    assert array_id(np.asfortranarray(matrix)) == array_id(matrix)
    assert array_id(np.repeat(matrix, 2, axis=0)[::2]) == array_id(matrix)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24, dtype=np.int32).reshape(2, 3, 4).T,
        np.zeros((0, 3)),
        np.array(7),
        np.array([True, False]),
    ],
)
def test_the_file_of_an_array_has_the_name_of_the_array(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    assert array_file_id(tmp_path / "a.npy") == array_id(array)


def test_a_file_that_is_no_array_has_no_name(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3))
    whole = path.read_bytes()
    for content in (b"", b"text", whole[:20], whole.replace(b"descr", b"desct"), b"\x93NUMPY\x09"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="no file of an array"):
            array_file_id(path)
    np.save(path, np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="no file of an array"):
        array_file_id(path)


def test_solves_of_a_machine_are_added_up():
    counters = Counters(svm_iterations=5, newton_steps=1)
    counters.count_svm(iterations=20, newton_steps=3)
    counters.count_svm(iterations=7, newton_steps=0)
    assert counters.as_dict() == {
        "outer_iterations": 0,
        "svm_solves": 2,
        "svm_iterations": 32,
        "newton_steps": 4,
        "cg_steps": 0,
        "passes": 0,
        "combines": 0,
    }


def test_work_of_another_count_leaves_iterations_and_passes_alone():
    counters = Counters(outer_iterations=1, passes=2, svm_solves=1)
    counters.count_work(Counters(9, 2, 3, 4, 5, 9, 9))
    assert counters == Counters(1, 3, 3, 4, 5, 2, 0)
