"""The time of a call: its words, and a sweep that it ends, which the same call resumes."""

from __future__ import annotations

import math
import time

import pytest

from mkldist.errors import EXIT_OUT_OF_TIME, OutOfTimeError, SpecError
from mkldist.run.sweep_setup import WallTime, parse_wall_time
from tests.run.sweeps import records, run_here, sweep_text

TEXT = sweep_text({"uniform": [1.0, 10.0], "level": [100.0]}, execution="isolated")


@pytest.mark.parametrize(
    ("words", "seconds"), [("90m", 5400.0), ("2h", 7200.0), ("1.5 hours", 5400.0), (None, math.inf)]
)
def test_words_are_seconds(words, seconds):
    assert parse_wall_time(words) == seconds


@pytest.mark.parametrize("words", ["soon", "", "0s", "-2h", "inf h", "2 fortnights", "1e400h"])
def test_other_words_are_refused(words):
    with pytest.raises(SpecError, match=r"^wall_time: found .*; expected a time such as '90m'"):
        parse_wall_time(words)


def test_a_time_ends_when_it_is_over(monkeypatch):
    WallTime().check()
    own = WallTime.from_now("2h")
    own.check()
    over = time.monotonic() + 7200.0
    monkeypatch.setattr("mkldist.run.sweep_setup.time.monotonic", lambda: over)
    with pytest.raises(OutOfTimeError, match=r"^wall_time: found 2h to be over$"):
        own.check()


def test_a_sweep_ends_at_its_time_and_the_same_call_resumes(tmp_path, monkeypatch):
    output = tmp_path / "small"
    text = TEXT.replace("[[datasets]]", 'wall_time = "2h"\n[[datasets]]', 1)

    def over_after_a_record(own: WallTime) -> None:
        if records(output):
            raise OutOfTimeError("wall_time", f"{own.words} to be over")

    with monkeypatch.context() as patched:
        patched.setattr(WallTime, "check", over_after_a_record)
        with pytest.raises(OutOfTimeError) as caught:
            run_here(text, output, None, resume_command="mkldist sweep small.toml")
    said = str(caught.value)
    assert said.startswith("wall_time: found 2h to be over. ")
    assert said.endswith("of 6 runs are recorded; resume with: mkldist sweep small.toml.")
    assert caught.value.exit_code == EXIT_OUT_OF_TIME
    recorded = len(records(output))
    assert 1 <= recorded <= 6
    outcome = run_here(text, output, None)
    assert outcome.skipped == recorded
    assert outcome.computed == 6 - recorded
