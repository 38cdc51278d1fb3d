"""Content hashes: those of b2sum, and new ones for new content.

Results and banks are found by these names, so that they must never change for the same content.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mkldist.core.identity import CommonParts, array_file_id, array_id, content_id, json_text


def test_names_are_those_of_b2sum():
    # printf '{"a":1,"b":"x"}' | b2sum -l 80
    assert content_id(b="x", a=1) == "1e731c514b762b86058d"
    # '<f8(2,);' and the 16 bytes of 1.0 and -2.5
    assert array_id(np.array([1.0, -2.5], dtype="<f8")) == "a5958e1d4de7e37fa297"


def test_names_of_contents_with_common_parts_are_those_of_b2sum_too():
    # printf '{"after":"0f","bank":"ä","params":{"C":10.0,"tol":1e-06}}' | b2sum -l 80, ä as \\u00e4
    common = CommonParts(bank="ä")
    params = json_text({"tol": 1e-6, "C": 10.0})
    assert common.id_with({"params": params, "after": json_text("0f")}) == "97013e88d6ef8b075578"


@pytest.mark.parametrize("order", list(itertools.permutations(["seed", "grid", "name"])))
def test_parts_may_come_in_any_order(order):
    parts = {"seed": 7, "grid": [1, 2.5, None], "name": "two moons"}
    # printf '{"grid":[1,2.5,null],"name":"two moons","seed":7}' | b2sum -l 80
    assert content_id(**{name: parts[name] for name in order}) == "618523b9297fdc689977"


def test_signs_of_percent_in_parts_count_as_they_stand():
    common, text = {"bank": "100 %(b)s %%"}, json_text("50 %s")
    assert CommonParts(**common).id_with({"b": text}) == content_id(**common, b="50 %s")


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
