"""Documents of a bank: damaged ones are errors that name the file, and are written again."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.bank.store import FactorStore, GramStore, open_store
from mkldist.core.identity import content_id
from mkldist.errors import StoreError
from tests.bank import store_scripts as scripts

pytestmark = pytest.mark.usefixtures("small_blocks")
NAME = "zarr.json"


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(data=st.data())
def test_damaged_descriptions_are_errors_or_harmless(built, data):
    path = Path(built.location) / NAME
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
        outcome = (found.shape, found.attrs, found.missing()) == (built.shape, built.attrs, [])
        outcome &= np.array_equal(found.read(found.blocks[0]), built.read(built.blocks[0]))
    path.write_bytes(whole)
    assert outcome


@pytest.mark.parametrize("how", ["cut", "flip", "gone", "deep", "folder"])
def test_a_damaged_description_is_written_again_and_no_block_built_again(built, how):
    path, root = Path(built.location) / NAME, Path(built.location).parent
    whole = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how != "gone":
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 16
        deep = b'{"attributes": ' + b"[" * 100_000
        path.write_bytes({"cut": whole[:-9], "flip": flipped, "deep": deep}[how])
    with pytest.raises(StoreError) as caught:
        GramStore.open(root, scripts.BANK)
    assert caught.value.where == str(path)
    mended = scripts.create(root)
    assert (mended.shape, mended.missing(), mended.verify()) == (built.shape, [], [])
    assert len(path.read_bytes()) == len(whole)


def test_another_number_of_points_in_the_same_tiles_is_found(built):
    path = Path(built.location) / "zarr.json"
    path.write_bytes(path.read_bytes().replace(b'"n_points": 30', b'"n_points": 31'))
    with pytest.raises(StoreError, match="fail their checksum"):
        GramStore.open(Path(built.location).parent, scripts.BANK)


def test_a_bank_under_the_name_of_another_is_none(built):
    root = Path(built.location).parent
    Path(built.location).rename(root / "other")
    with pytest.raises(StoreError, match="of another bank"):
        GramStore.open(root, "other")
    renamed = GramStore.create(root, "other", 41, scripts.LAYOUT, "float64")
    assert renamed.verify() == renamed.blocks


def with_checksum(**facts):
    bank = {**facts, "checksum": content_id(facts=facts, attributes={})}
    document = {"zarr_format": 3, "node_type": "group", "attributes": {"bank": bank}}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "document",
    [
        b"[]",
        b"{}",
        b'{"zarr_format": 3, "node_type": "group"}',
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"bank": 3}}',
        with_checksum(version=99),
        with_checksum(version=2, n_kernels=1, n_points=3, tile=1, dtype="float64", kind="gram"),
    ],
)
def test_a_foreign_group_is_no_bank(built, document):
    root = Path(built.location).parent
    (Path(built.location) / "zarr.json").write_bytes(document)
    for opened in (GramStore.open, FactorStore.open, open_store):
        with pytest.raises(StoreError):
            opened(root, scripts.BANK)
        with pytest.raises(StoreError, match="no such file"):
            opened(root, "elsewhere")
