"""The seven commands from a table with mistakes to a report, a model and predictions."""

import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = (
    "mkldist init patients.csv",
    "mkldist init patients.csv --label disease",
    "mkldist plan patients.toml",
    "mkldist sweep patients.toml",
    "mkldist report patients -o patients.html",
    "mkldist fit patients -o patients.model",
    "mkldist predict patients.model new.csv -o predictions.csv",
)


def table() -> list[str]:
    """Return the lines of a table with dates, words, empty cells and one label in capitals."""
    draw = random.Random(1)
    lines = ["number,admitted,sex,age,pressure,marker,disease"]
    for i in range(120):
        ill = draw.random() < 0.45
        age = "" if i in (17, 64) else f"{draw.gauss(60 if ill else 48, 9):.0f}"
        marker = "" if i == 33 else f"{draw.gauss(2.4 if ill else 1.6, 0.6):.2f}"
        label = ("Yes" if i == 3 else "yes") if ill or i == 3 else "no"
        date = f"2024-{1 + i % 12:02d}-{1 + i % 27:02d}"
        pressure = f"{draw.gauss(140 if ill else 125, 12):.1f}"
        lines.append(f"{1000 + i},{date},{'fm'[i % 2]},{age},{pressure},{marker},{label}")
    return lines


def run(folder: Path, command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_a_table_with_mistakes_becomes_a_report_and_a_model(tmp_path):
    lines = table()
    (tmp_path / "patients.csv").write_text("\n".join(lines) + "\n")
    ask, init, plan, sweep, report, fit, predict = COMMANDS
    assert "Give --label" in run(tmp_path, ask, code=2).stderr
    assert not (tmp_path / "patients.toml").exists()
    assert "'Yes' is in line 5" in run(tmp_path, init, code=2).stderr
    spec = (tmp_path / "patients.toml").read_text()
    for words in ('id = "number"', 'ignore = ["admitted"]', 'categorical = ["sex"]', "impute"):
        assert words in spec
    mended = [line.replace(",Yes", ",yes") for line in lines]
    (tmp_path / "patients.csv").write_text("\n".join(mended) + "\n")
    assert (
        "left out:  'number' (names the rows), 'admitted' (ignored)" in run(tmp_path, plan).stdout
    )
    assert "50 of 50 runs" in run(tmp_path, sweep).stderr
    assert "all 50 runs are complete" in run(tmp_path, report).stdout
    assert "classes:  no is -1, yes is +1" in run(tmp_path, fit).stdout
    new = [line.rsplit(",", 1)[0] for line in (mended[0], *mended[-5:])]
    (tmp_path / "new.csv").write_text("\n".join(new) + "\n")
    run(tmp_path, predict)
    rows = (tmp_path / "predictions.csv").read_text().splitlines()
    assert rows[0] == "number,prediction,decision"
    assert [row.split(",")[0] for row in rows[1:]] == ["1115", "1116", "1117", "1118", "1119"]
    assert {row.split(",")[1] for row in rows[1:]} <= {"no", "yes"}
