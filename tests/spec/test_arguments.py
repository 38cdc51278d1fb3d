"""Paths and flags that arguments of functions give."""

from __future__ import annotations

from pathlib import Path

import pytest

import mkldist
from mkldist.errors import SpecError
from mkldist.spec.checks import check_flags, given_path

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
    assert given_path("output", "a/b") == given_path("output", Path("a/b")) == Path("a/b")
    (tmp_path / "file").touch()
    assert given_path("output", tmp_path / "file" / "under") == tmp_path / "file" / "under"


@pytest.mark.parametrize("value", [None, 5, b"a", InBytes(), ["a"], "a\0b", "x" * 300])
@pytest.mark.parametrize("function", ["open_results", "load_model", "output", "rerun"])
def test_what_no_system_has_as_a_path_is_refused_by_its_argument(
    function, value, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if function == "output":
        if value is None:
            return
        with pytest.raises(SpecError, match=r"^output: found .*; expected a path"):
            mkldist.sweep(SPEC, output=value, workers=0, progress=False)
    else:
        with pytest.raises(SpecError, match=r"^(path|results): found .*; expected a path"):
            getattr(mkldist, function)(value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["no", "", 0, 1, None])
def test_flags_are_true_or_false(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_flags(progress=True, allow_code=False)
    calls = {
        "retry_failed": lambda given: mkldist.sweep(SPEC, workers=0, **given),
        "progress": lambda given: mkldist.rerun(tmp_path, **given),
        "allow_unencrypted": lambda given: mkldist.sweep(SPEC, workers=0, **given),
    }
    for name, call in calls.items():
        with pytest.raises(SpecError, match=f"^{name}: found {value!r}; expected True or False"):
            call({name: value})
    for call in (
        lambda given: mkldist.sweep(SPEC, **given),
        lambda given: mkldist.plan(SPEC, **given),
        lambda given: mkldist.rerun(tmp_path, **given),
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
