"""Words that the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def completed(folder, words: str) -> list[str]:
    """Return what the shell is offered for the last of the words."""
    script = "import sys; sys.argv[0] = 'mkldist'; from mkldist.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=os.environ
        | {
            "_MKLDIST_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mkldist sw", ["plain,sweep"]),
        ("mkldist sweep quick", ["plain,quickstart"]),
        ("mkldist plan min", ["plain,mine.toml"]),
        ("mkldist plan else", ["file,else"]),
        ("mkldist status ", ["plain,old"]),
        ("mkldist sca", ["plain,scale"]),
        ("mkldist scale o", ["plain,old"]),
        ("mkldist scale old --ov", ["plain,--over"]),
        ("mkldist scale old --over n_t", ["plain,n_train"]),
        ("mkldist clean o", ["plain,old"]),
        ("mkldist compare o", ["plain,old"]),
        ("mkldist compare old simp", ["plain,simplemkl"]),
        ("mkldist explain ", ["plain,old"]),
        ("mkldist explain old --method l0", ["plain,l0_mkl"]),
        ("mkldist show simp", ["plain,simplemkl"]),
        ("mkldist show xu", ["plain,xu2008"]),
        ("mkldist list methods l0", ["plain,l0_mkl"]),
        ("mkldist sweep --dashb", ["plain,--dashboard-port"]),
    ],
)
def test_names_are_offered_and_paths_left_to_the_shell(tmp_path, words, offered):
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / "results" / "old").mkdir(parents=True)
    (tmp_path / "results" / "old" / "sweep.json").write_text("{}")
    assert completed(tmp_path, words) == offered
