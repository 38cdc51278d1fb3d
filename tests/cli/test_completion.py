"""Words that the shell completes."""

from __future__ import annotations

import pytest

from tests.cli.commands import run, run_here


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / "results" / "old").mkdir(parents=True)
    (tmp_path / "results" / "old" / "sweep.json").write_text("{}")
    return tmp_path


def ask(monkeypatch, words: str) -> None:
    """Let the next command offer what fits the last of the words, as a shell asks for it."""
    monkeypatch.setenv("_MKLDIST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))


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
        ("mkldist scale old --ov", ["plain,--over", "plain,--overwrite"]),
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
def test_names_are_offered_and_paths_left_to_the_shell(folder, monkeypatch, words, offered):
    ask(monkeypatch, words)
    assert run_here(folder).stdout.split() == offered


def test_a_shell_is_answered_by_another_process(folder, monkeypatch):
    ask(monkeypatch, "mkldist sweep mine")
    assert run(folder).stdout.split() == ["plain,mine.toml"]
