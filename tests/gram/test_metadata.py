"""Documents of a bank: damage, contradictions and foreign content are errors that name the file."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.errors import StoreError
from mkldist.gram import metadata
from mkldist.gram.store import GramStore
from tests.gram import store_scripts as scripts

pytestmark = pytest.mark.usefixtures("small_blocks")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None
)
@given(data=st.data())
def test_damaged_descriptions_are_errors_or_harmless(built, data):
    names = [metadata.GROUP, metadata.GRAM, metadata.COMPLETE]
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
    path = Path(built.location) / metadata.GROUP
    path.write_bytes(path.read_bytes().replace(b'"n_points": 30', b'"n_points": 31'))
    with pytest.raises(StoreError, match="fail their checksum"):
        scripts.create(Path(built.location).parent)


@pytest.mark.parametrize(
    ("document", "word"),
    [
        (b"[]", "list"),
        (b"{}", "describes no bank"),
        (b'{"attributes": {"bank": {"layout_version": 99}}}', "layout version 99"),
        (b'{"attributes": {"bank": {"layout_version": 1, "n_kernels": true}}}', "n_kernels"),
        (b'{"attributes": {"bank": {"layout_version": 1, "n_kernels": 41, "n_points": 30, '
         b'"tile": 4, "dtype": "int8"}}}', "int8"),
    ],
)  # fmt: skip
def test_a_foreign_group_is_no_bank(built, document, word):
    (Path(built.location) / metadata.GROUP).write_bytes(document)
    with pytest.raises(StoreError, match=word):
        scripts.create(Path(built.location).parent)
    with pytest.raises(StoreError, match="no such file"):
        GramStore.open(Path(built.location).parent, "elsewhere")
