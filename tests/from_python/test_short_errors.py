"""Mistakes of the user are raised from the call itself."""

from __future__ import annotations

import inspect

import pytest

from mkldist.errors import SpecError
from mkldist.from_python.short_errors import with_short_errors


def deep(error):
    raise error


@with_short_errors
def called(error: BaseException, *, cause: bool = False) -> None:
    """Say something."""
    try:
        deep(KeyError("within"))
    except KeyError:
        deep(error)


@pytest.mark.parametrize("error", [SpecError("a", "b"), KeyboardInterrupt("said")])
def test_what_the_user_can_act_on_has_no_calls_within(error):
    with pytest.raises(type(error)) as caught:
        called(error)
    assert caught.value is error
    assert [entry.name for entry in caught.traceback][1:] == ["call"]
    assert error.__suppress_context__


def test_other_errors_and_debugging_keep_theirs(monkeypatch):
    with pytest.raises(TypeError) as caught:
        called(TypeError("a defect"))
    assert caught.traceback[-1].name == "deep"
    monkeypatch.setenv("MKLDIST_DEBUG", "1")
    with pytest.raises(SpecError) as caught:
        called(SpecError("a", "b"))
    assert caught.traceback[-1].name == "deep"


def test_the_function_keeps_its_name_and_signature():
    assert called.__doc__ == "Say something."
    assert list(inspect.signature(called).parameters) == ["error", "cause"]
