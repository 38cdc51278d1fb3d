"""Code that is not mkldist's runs only if it is asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mkldist.errors import SpecError
from mkldist.planning.spec_checks import check_code, code_lines, code_of
from mkldist.spec.banks import BankSpec
from tests.planning.words import sweep

PLAIN = sweep('[[methods]]\nname = "level"')
OWN = PLAIN.model_copy(
    update={
        "banks": (
            PLAIN.banks[0],
            BankSpec(
                name="mine",
                kernels=[
                    {"function": "linear"},
                    {"function": max},
                    {"function": "mine:k", "parameters": {"a": 1}},
                    {"function": "mine:k"},
                ],
            ),
        )
    }
)


def test_code_is_told_by_place_and_said_once():
    places = [("banks.mine.kernels[2]", "mine:k"), ("banks.mine.kernels[3]", "mine:k")]
    assert list(code_of(OWN)) == places
    assert list(code_lines(OWN)) == ["runs code that is not mkldist's: mine:k"]
    assert list(code_lines(PLAIN)) == []


def test_code_is_refused_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    with pytest.raises(SpecError) as caught:
        check_code(OWN, Path("some"), allowed=False)
    assert str(caught.value) == (
        "banks.mine.kernels[2].function: found 'mine:k', code that would run on this machine and "
        "on all workers; expected what mkldist has, or --allow-code. Repeat the "
        "command with --allow-code if you trust this code."
    )
    assert sys.path == before


def test_allowed_code_is_searched_in_the_folder_of_the_sweep_file(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    assert check_code(OWN, tmp_path, allowed=True) == str(tmp_path)
    check_code(OWN, tmp_path, allowed=True)
    assert sys.path == [str(tmp_path), *before]
    assert check_code(PLAIN, tmp_path / "other", allowed=True) == ""
    assert sys.path == [str(tmp_path), *before]
