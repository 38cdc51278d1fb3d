"""Values of sweep files and of functions' arguments: TOML, paths, flags, numbers, tables."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mkldist
from mkldist.errors import SpecError
from mkldist.spec import kinds
from mkldist.spec.datasets import ViewSpec
from mkldist.spec.kinds import as_path, check_fits, check_flags, spelled, toml_text

WORDS = st.text("abc äß'\"\\\t#=", max_size=4)
PLAIN = st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | WORDS
NESTED = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    ),
    max_leaves=3,
)


@pytest.mark.slow
@given(NESTED)
def test_toml_reads_what_is_spelled(value):
    text = spelled(value)
    assert len(text) == 60 or tomllib.loads(f"value = {text}")["value"] == value


@pytest.mark.parametrize(("length", "ending"), [(58, 'a"'), (59, "a...")])
def test_long_values_are_cut(length, ending):
    text = spelled("a" * length)
    assert len(text) == 60
    assert text.endswith(ending)


TABLE = st.dictionaries(WORDS, NESTED | st.lists(st.dictionaries(WORDS, NESTED, max_size=2)))


@pytest.mark.slow
@given(st.dictionaries(WORDS, NESTED | TABLE | st.lists(TABLE, max_size=2), max_size=4))
def test_toml_reads_a_document_that_is_written(document):
    assert tomllib.loads(toml_text(document)) == document


def test_a_number_of_more_digits_than_python_writes_is_told_by_its_bits():
    assert spelled([1 << 20_000]) == "[a whole number of 20001 bits]"


def test_half_of_the_memory_may_be_taken_and_no_more(monkeypatch):
    monkeypatch.setattr(kinds, "physical_memory", lambda: 2**31)
    check_fits(2**20, 2**10, "here", "things")
    with pytest.raises(SpecError) as caught:
        check_fits(2**20 + 1, 2**10, "here", "things", "Take fewer")
    assert str(caught.value) == (
        "here: found 1,048,577 things, which need 1.0 GiB of memory; expected at most 1.0 GiB, "
        "half of this machine's memory. Take fewer."
    )


def test_more_than_there_may_be_are_refused_with_what_they_need(monkeypatch):
    check_fits(1000, 1, "here", "things", most=1000)
    for memory in (2**10, 2**60):
        monkeypatch.setattr(kinds, "physical_memory", lambda memory=memory: memory)
        with pytest.raises(SpecError, match=r"2,147,483,648 things, which need 2\.0 GiB of memory"):
            check_fits(2**31, 1, "here", "things", most=1000)
        with pytest.raises(SpecError, match=r"expected at most 1,000$"):
            check_fits(2**31, 1, "here", "things", most=1000)


def test_numbers_of_thousands_of_digits_are_not_written_out():
    with pytest.raises(SpecError, match="found more than 1,000,000,000,000,000 things; expected"):
        check_fits(10**5000, 100, "here", "things")


SPEC = {
    "name": "s",
    "datasets": [{"name": "iris"}],
    "banks": [{"family": "do2009"}],
    "methods": [{"name": "majority"}],
}


class InBytes:
    """A path that is given as bytes."""

    def __fspath__(self) -> bytes:
        return b"a"


def test_paths_are_text_or_paths(tmp_path):
    assert as_path("output", "a/b") == as_path("output", Path("a/b")) == Path("a/b")
    (tmp_path / "file").touch()
    assert as_path("output", tmp_path / "file" / "under") == tmp_path / "file" / "under"


@pytest.mark.parametrize("value", [None, 5, b"a", InBytes(), ["a"], "a\0b", "x" * 300])
def test_what_no_system_has_as_a_path_is_refused(value):
    with pytest.raises(SpecError, match=r"^output: found .*; expected a path"):
        as_path("output", value)


def test_paths_are_refused_by_their_argument(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"^output: found .*; expected a path"):
        mkldist.sweep(SPEC, output=5, workers=0, progress=False)
    for function in (mkldist.open_results, mkldist.load_model):
        with pytest.raises(SpecError, match=r"^(path|results): found .*; expected a path"):
            function(b"a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["no", 0, None])
def test_flags_are_true_or_false(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_flags(progress=True, allow_code=False)
    calls = {
        "retry_failed": lambda given: mkldist.sweep(SPEC, workers=0, **given),
        "progress": lambda given: mkldist.sweep(SPEC, workers=0, **given),
        "allow_unencrypted": lambda given: mkldist.sweep(SPEC, workers=0, **given),
    }
    for name, call in calls.items():
        with pytest.raises(SpecError, match=f"^{name}: found {value!r}; expected True or False"):
            call({name: value})
    for call in (
        lambda given: mkldist.sweep(SPEC, **given),
        lambda given: mkldist.plan(SPEC, **given),
        lambda given: mkldist.load_model(tmp_path / "m.model", **given),
    ):
        with pytest.raises(SpecError, match=f"^allow_code: found {value!r}; expected True"):
            call({"allow_code": value})
    assert list(tmp_path.iterdir()) == []


def test_an_address_is_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"^scheduler: found 5; expected an address"):
        mkldist.sweep(SPEC, scheduler=5)
    assert list(tmp_path.iterdir()) == []


def test_a_list_of_numbers_of_neighbours_stands_for_a_graph_each():
    view = ViewSpec.model_validate(
        {"name": "v", "graphs": [{"neighbours": [1, 5], "weights": "heat"}, {"power": 2}]}
    )
    assert view.graphs is not None
    said = [(graph.neighbours, graph.weights, graph.power) for graph in view.graphs]
    assert said == [(1, "heat", 1), (5, "heat", 1), (10, "binary", 2)]
    assert ViewSpec.model_validate(view.model_dump()) == view
