"""Wrong inputs of every kind: our errors or right values, no hang, no write elsewhere.

``python -m tests.fuzz --cases 20000 --seed 1`` reads more of them.
"""

import re
import socket
import time
import tomllib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.core.checksums import parsed, unframed
from mkldist.errors import DataError, SpecError
from mkldist.spec.kinds import toml_text
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec
from tests.fuzz.cases import faults, shares
from tests.fuzz.guard import HangsError, guarded
from tests.fuzz.inputs import NEW_ROWS, SOURCES, Kind, prepare
from tests.fuzz.mutations import NASTY, changed, damaged

FEW, MANY = 250, 5_000
RIGHT = [tomllib.loads(file.read_text()) for file in sorted(SOURCES.glob("*.toml"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    prepare(folder)
    return folder


def found(folder, n_cases, seed):
    return [
        fault for kind, numbers in shares(n_cases) for fault in faults(kind, numbers, seed, folder)
    ]


@pytest.mark.slow
def test_wrong_inputs_meet_our_errors_or_give_right_values(folder):
    assert found(folder, FEW, seed=0) == []


@pytest.mark.slow
def test_many_more_wrong_inputs_do_so_too(folder):
    assert found(folder, MANY, seed=1) == []


@pytest.mark.slow
def test_the_right_inputs_are_read(folder):
    right = Kind("", lambda folder, draw: (folder / "x", b""), lambda file: None)
    assert list(faults(right, range(2), 0, folder)) == []
    for kind, _ in shares(1):
        if kind.name == "sweep file":
            for file in folder.glob("right-*.toml"):
                kind.read(file)
        elif (folder / (name := kind.name.removeprefix(NEW_ROWS))).exists():
            kind.read(folder / name)


def _grows(file):
    np.ones(2**29)


def _hangs(file):
    time.sleep(60)


def _works(file):
    while True:
        pass


def _writes(file):
    (file.parents[2] / "elsewhere").write_text("x")


def _calls(file):
    with pytest.raises(PermissionError), socket.create_connection(("127.0.0.1", 9), 1):
        pass


def _crashes(file):
    raise KeyError("no error of mkldist")


def _refuses(file):
    raise DataError("x", "y")


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (_grows, "MemoryError"),
        (_hangs, "HangsError: no end after 0.2 seconds "),
        (_works, "HangsError: no end after 0.1 seconds of processor "),
        (_writes, "open .*elsewhere"),
        (_calls, "socket.connect"),
        (_crashes, "KeyError: 'no error of mkldist'"),
        (_refuses, None),
    ],
)
def test_what_a_case_must_not_do_is_seen(tmp_path, monkeypatch, read, said):
    monkeypatch.setattr("tests.fuzz.guard.CPU_SECONDS", 0.1)
    monkeypatch.setattr("tests.fuzz.guard.SECONDS", 0.2 if read is _hangs else 60.0)
    inside = tmp_path / "in" / "side"
    inside.mkdir(parents=True)
    kind = Kind("x", lambda folder, draw: (folder / "input", b"?"), read)
    got = list(faults(kind, range(1), 0, inside))
    assert len(got) == (said is not None)
    if said is not None:
        assert re.search(said, got[0].said)
        assert got[0].content == b"?"


def test_a_guard_ends_with_its_context(tmp_path):
    with guarded(tmp_path) as seen:
        (tmp_path / "a").write_text("inside")
    (tmp_path.parent / "b").write_text("elsewhere, later")
    assert seen == []
    with pytest.raises(HangsError), guarded(tmp_path):
        raise HangsError


def test_mistakes_are_those_of_the_seed():
    drawn = [
        [changed(RIGHT[0], np.random.default_rng(seed)) for _ in range(2)] for seed in (1, 1, 2)
    ]
    assert repr(drawn[0]) == repr(drawn[1]) != repr(drawn[2])
    text = toml_text(RIGHT[0]).encode()
    assert (
        damaged(text, np.random.default_rng(3)) == damaged(text, np.random.default_rng(3)) != text
    )


def keys_of(value):
    if isinstance(value, dict):
        yield from value
    for item in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from keys_of(item)


KEYS = sorted({key for document in RIGHT for key in keys_of(document)})
VALUES = st.recursive(
    st.sampled_from(NASTY) | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(RIGHT), st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=3)
)
def test_any_values_of_any_keys_are_a_sweep_or_one_mistake(document, others):
    words = {**document, **others}
    with suppress(SpecError):
        assert isinstance(load_sweep(words), SweepSpec)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_no_record_and_no_archive(content):
    assert unframed(content) is None
    with suppress(ValueError):
        assert isinstance(parsed(content), dict)
