"""Documents of a bank: damage, contradictions and foreign content are errors that name the file."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.errors import StoreError
from mkldist.gram import metadata
from mkldist.gram.array_documents import GROUP
from mkldist.gram.store import GramStore
from mkldist.identity import content_id
from tests.gram import store_scripts as scripts

pytestmark = pytest.mark.usefixtures("small_blocks")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None
)
@given(data=st.data())
def test_damaged_descriptions_are_errors_or_harmless(built, data):
    names = [GROUP, metadata.GRAM, metadata.COMPLETE]
    path = Path(built.location) / data.draw(st.sampled_from(names))
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        damaged = bytearray(whole)
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    try:
        found = GramStore.open(Path(built.location).parent, scripts.BANK)
    except StoreError as error:
        outcome = scripts.BANK in error.where
    else:
        outcome = (found.shape, found.attrs) == (built.shape, built.attrs)
    path.write_bytes(whole)
    assert outcome


@pytest.mark.parametrize("name", [metadata.GRAM, metadata.COMPLETE])
def test_an_array_that_contradicts_the_bank_is_named(built, name):
    path = Path(built.location) / name
    path.write_bytes(path.read_bytes().replace(b'"shape": [\n    ', b'"shape": [\n    9'))
    with pytest.raises(StoreError, match=rf"{name}: found shape = \[9"):
        GramStore.open(Path(built.location).parent, scripts.BANK)


def test_another_number_of_points_in_the_same_tiles_is_found(built):
    path = Path(built.location) / GROUP
    path.write_bytes(path.read_bytes().replace(b'"n_points": 30', b'"n_points": 31'))
    with pytest.raises(StoreError, match="fail their checksum"):
        GramStore.open(Path(built.location).parent, scripts.BANK)


@pytest.mark.parametrize("name", [GROUP, metadata.GRAM, metadata.COMPLETE])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
def test_a_flipped_bit_in_a_description_is_mended_and_no_block_built_again(built, name, seed):
    path, rng = Path(built.location) / name, np.random.default_rng(seed)
    whole = path.read_bytes()
    damaged, place = bytearray(whole), rng.integers(8 * len(whole))
    damaged[place // 8] ^= 1 << place % 8
    path.write_bytes(damaged if seed else whole[:-9])
    mended = scripts.create(Path(built.location).parent)
    assert (mended.shape, mended.missing()) == (built.shape, [])
    assert GramStore.open(Path(built.location).parent, scripts.BANK).shape == built.shape


@pytest.mark.parametrize("name", [GROUP, metadata.GRAM, metadata.COMPLETE])
def test_a_description_that_is_nested_too_deep_is_mended(built, name):
    (Path(built.location) / name).write_text('{"attributes": ' + "[" * 100_000)
    with pytest.raises(StoreError, match="nested too deep"):
        GramStore.open(Path(built.location).parent, scripts.BANK)
    mended = scripts.create(Path(built.location).parent)
    assert (mended.shape, mended.missing()) == (built.shape, [])


def test_a_group_of_others_is_not_written_over(built):
    for name in (GROUP, metadata.GRAM):
        (Path(built.location) / name).write_text('{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(StoreError, match="describes no bank"):
        scripts.create(Path(built.location).parent)


def with_checksum(**facts):
    bank = {**facts, "checksum": content_id(facts=facts, attributes={})}
    return json.dumps({"attributes": {"bank": bank}}).encode()


FACTS = {"layout_version": 1, "n_kernels": 41, "n_points": 30, "tile": 4, "dtype": "float64"}


@pytest.mark.parametrize(
    ("document", "word"),
    [
        (b"[]", "list"),
        (b"{}", "describes no bank"),
        (with_checksum(layout_version=99), "layout version 99"),
        (with_checksum(**{**FACTS, "n_kernels": True}), "n_kernels"),
        (with_checksum(**{**FACTS, "dtype": "int8"}), "int8"),
    ],
)
def test_a_foreign_group_is_no_bank(built, document, word):
    (Path(built.location) / GROUP).write_bytes(document)
    with pytest.raises(StoreError, match=word):
        GramStore.open(Path(built.location).parent, scripts.BANK)
    with pytest.raises(StoreError, match="no such file"):
        GramStore.open(Path(built.location).parent, "elsewhere")
