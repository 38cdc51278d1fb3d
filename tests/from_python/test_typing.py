"""Types that users of the installed package get."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.from_python import user_program


def test_a_users_program_runs():
    user_program.main()


@pytest.mark.slow
def test_a_strict_checker_reads_a_users_program_and_sees_its_mistakes(tmp_path):
    def checked(text: str) -> str:
        (tmp_path / "program.py").write_text(text)
        words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
        return done.stdout + done.stderr

    text = Path(user_program.__file__).read_text()
    assert checked(text) == "Success: no issues found in 1 source file\n"
    wrong = text.replace("n_runs: int = plan.n_runs", "n_runs: str = plan.n_runs")
    assert "[assignment]" in checked(wrong)
