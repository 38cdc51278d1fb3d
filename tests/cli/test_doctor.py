"""The command that examines this machine: its lines, and its exit code."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from mkldist.cli.house import LINE_WIDTH as WIDTH
from mkldist.cli.house import doctor_command as command
from mkldist.run import doctor
from mkldist.run import forecast as measuring
from mkldist.run.doctor import Finding


@pytest.mark.parametrize(("hinders", "code"), [(False, 0), (True, 2)])
def test_findings_are_printed_with_advice_and_decide_the_exit_code(
    tmp_path, monkeypatch, hinders, code
):
    seen = []

    def examine(folder):
        seen.append(folder)
        yield Finding("disk", "full " * 40, "Free some space", hinders)
        yield Finding("locks", "work")

    monkeypatch.setattr(doctor, "examine", examine)
    monkeypatch.setattr(measuring, "rates_finding", lambda folder: Finding("rates", "few"))
    done = CliRunner().invoke(command, [str(tmp_path)])
    assert done.exit_code == code
    lines = done.output.splitlines()
    assert seen == [tmp_path]
    assert lines[0].startswith("disk           full full")
    assert max(map(len, lines)) <= WIDTH
    rates = [] if hinders else ["rates          few"]
    assert lines[-2 - len(rates) :] == [
        "               → Free some space",
        "locks          work",
        *rates,
    ]


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    done = CliRunner().invoke(command, [str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "does not exist" in done.output
