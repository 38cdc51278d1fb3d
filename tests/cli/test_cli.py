"""Commands of `bank`, `export`, `listing`, `options`, `plan`, `status`, `sweep`."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mkldist.cli import COMMANDS, DEBUG_VARIABLE, command, main, reporting
from mkldist.cli.options import note_basis
from mkldist.errors import ClusterError, DataError, SpecError
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from tests.cli.commands import run, run_here
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

FOLDER = Path(__file__).parents[2] / "sweeps"
SWEEPS = sorted(
    file.stem for file in FOLDER.rglob("*.toml") if file.parent.name != "published"
)  # that folder has the conclusions of papers
SWEEP = """
name = "tiny"
description = "two methods on two moons"
[[datasets]]
name = "two_moons"
options = { n = 60 }
[splits]
repeats = 2
[[banks]]
family = "do2009"
[[methods]]
name = "level"
C = [1, 10]
[[methods]]
name = "majority"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "tiny.toml").write_text(SWEEP)
    done = run(folder, "sweep", "tiny.toml", "--workers", "1")
    assert "test error" in done.stdout
    assert "banks:   removed" in done.stdout
    assert "results/tiny" in done.stdout
    assert 'mkldist.open_results("results/tiny")' in done.stdout
    assert "6 of 6 runs" in done.stderr
    return folder


@pytest.mark.slow
def test_a_finished_sweep_computes_nothing_and_says_so(finished):
    before = (finished / "results/tiny/records.journal").stat().st_mtime_ns
    done = run(finished, "sweep", "tiny.toml")
    assert "Nothing to do: all 6 runs of tiny are recorded." in done.stdout
    assert "dashboard" not in done.stderr
    after = (finished / "results/tiny/records.journal").stat().st_mtime_ns
    assert before == after


@pytest.mark.slow
def test_the_end_of_a_sweep_says_which_banks_stay_and_how_to_remove_them(finished):
    """The sweep is of another folder, so that the other tests keep their banks."""
    kept = SWEEP.replace('"tiny"', '"kept"') + "[outputs]\nkeep_banks = true\n"
    (finished / "kept.toml").write_text(kept)
    done = run(finished, "sweep", "kept", "--workers", "1", "--output", "kept/results")
    said = r"banks:   \S+ kiB stay for further runs; mkldist clean kept/results"
    assert re.search(said, done.stdout)
    assert "removed" in run(finished, "clean", "kept/results", "--yes").stdout
    done = run(finished, "sweep", "kept/results")
    assert "Nothing to do" in done.stdout
    assert "banks:" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("given", ["tiny", "tiny.toml", "results/tiny"])
def test_file_name_and_folder_of_a_sweep_are_alike(finished, given):
    assert "6 of 6 runs in results/tiny\n" in run_here(finished, "plan", given).stdout
    elsewhere = run_here(finished, "plan", given, "--output", "elsewhere")
    assert "0 of 6 runs" in elsewhere.stdout
    assert run_here(finished, "status", given).stdout.startswith("tiny in results/tiny\n")
    run_here(finished, "export", given, "--to", "alike.csv", "--overwrite")
    assert "Nothing to do" in run(finished, "sweep", given).stdout


@pytest.mark.slow
def test_plan_counts_what_is_recorded_and_what_is_not_planned(finished):
    done = run_here(finished, "plan", "tiny", "--set", "methods.level.C=[1, 30]")
    counts = "recorded:  4 of 6 runs in results/tiny, and 2 that are not in this plan"
    assert counts in done.stdout


@pytest.mark.slow
def test_a_changed_value_runs_only_what_changed(finished):
    done = run(finished, "sweep", "tiny.toml", "--set", "methods.level.C=[1,10,100]",
               "--workers", "1")  # fmt: skip
    assert "tiny: 2 runs to do, 6 are recorded already" in done.stderr
    assert "not part of this plan" not in done.stdout
    fewer = run(finished, "sweep", "tiny.toml", "--set", "methods.level.C=[1]")
    assert "all 6 runs of tiny are recorded" in fewer.stdout  # those of the file
    said = "without 2 recorded runs of settings, splits or data"
    assert said in fewer.stdout
    assert said in run_here(finished, "status", "tiny").stdout
    for words in (
        ["export", "tiny", "--to", "fewer.csv", "--overwrite"],
        ["compare", "tiny"],
        ["report", "tiny"],
        ["fit", "tiny", "-o", "fewer.model"],
    ):
        assert said in run_here(finished, *words).stderr
    assert said in (finished / "report.html").read_text()


def test_status_counts_runs(finished):
    done = run_here(finished, "status", "results/tiny")
    assert "two_moons/level" in done.stdout
    assert "complete" in done.stdout
    assert "not at work" in done.stdout
    tables = done.stdout.split("\n\n")
    assert tables[1].startswith("data set and method")
    assert tables[2].split()[:2] == ["test", "balanced"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "suffix"), [("netcdf", "nc"), ("csv", "csv"), ("parquet", "parquet")]
)
def test_export_writes_one_file_and_overwrites_none(finished, kind, suffix):
    run_here(finished, "export", "results/tiny", "--format", kind)
    content = (finished / f"tiny.{suffix}").read_bytes()
    again = run_here(finished, "export", "results/tiny", "--format", kind, code=2)
    assert "--overwrite" in again.stderr
    assert (finished / f"tiny.{suffix}").read_bytes() == content


@pytest.mark.slow
def test_export_takes_the_format_from_the_ending_and_refuses_one_it_does_not_know(finished):
    run_here(finished, "export", "results/tiny", "--to", "mine.csv")
    assert (finished / "mine.csv").read_text().startswith("dataset,")
    refused = run_here(finished, "export", "results/tiny", "--to", "mine.xlsx", code=2)
    assert "found the ending '.xlsx'; expected a name that ends in .nc, .zarr, .parquet, .csv" in (
        refused.stderr
    )
    assert not (finished / "mine.xlsx").exists()


def test_plan_prints_and_writes_nothing(tmp_path):
    (tmp_path / "tiny.toml").write_text(SWEEP)
    done = run_here(tmp_path, "plan", "tiny.toml")
    for word in ("6 runs", "20", "disk", "memory", "passes"):
        assert word in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.toml"]


def test_plan_prints_the_graphs(tmp_path):
    graph = '[graph]\nneighbours = 7\nweights = "heat"\n[[banks]]'
    (tmp_path / "tiny.toml").write_text(SWEEP.replace("[[banks]]", graph))
    done = run_here(tmp_path, "plan", "tiny.toml", code=2)
    assert "tiny.toml: graph: found a graph, which no method of this sweep uses" in done.stderr
    done = run_here(tmp_path, "plan", "tiny.toml", "--set", "methods.majority.name=lapsvm")
    assert "2 Laplacians, one for each split" in done.stdout


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("datasets", ("wdbc", "two_moons", "synthetic")),
        ("kernels", ("gaussian", "suzuki2011")),
        ("methods", ("level", "Extended Level method", "mkldist show NAME")),
    ],
)
def test_lists(tmp_path, what, words):
    done = run_here(tmp_path, "list", *what.split())
    for word in words:
        assert word in done.stdout


@pytest.mark.parametrize(("variable", "bold"), [("NO_COLOR", False), ("TERM", True)])
def test_screens_without_colour_get_none(monkeypatch, variable, bold):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(variable, "xterm")
    done = CliRunner().invoke(command, ["list", "kernels"], color=True, catch_exceptions=False)
    assert ("\x1b[" in done.stdout) is bold


@pytest.mark.slow
def test_methods_by_name_are_described_in_full_on_a_screen(tmp_path):
    from mkldist.methods.registry import METHODS

    assert len(run_here(tmp_path, "list", "methods").stdout.splitlines()) == len(METHODS) + 3
    cards = [run_here(tmp_path, "show", name, "--kind", "method").stdout for name in METHODS]
    for card, method in zip(cards, METHODS.values(), strict=True):
        lines = card.splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines)) <= 80
        words = " ".join(card.split())
        for field in ("problem", "loss", "regularizer", "title", "reference"):
            assert " ".join(getattr(method, field).split()) in words
        for name, parameter in method.params.model_fields.items():
            mark = "*" if name in method.hyperparameters else " "
            assert any(line.startswith(f"  {mark} {name} = ") for line in lines)
            assert parameter.description in words
            for limit in parameter.metadata:
                for key, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")):
                    assert not hasattr(limit, key) or f"{sign} {getattr(limit, key):g}" in words
        assert "  labels       " in card
    spicymkl = cards[list(METHODS).index("spicymkl")]
    assert "two classes (logistic, hinge); real values (squared, epsilon)" in spicymkl


def test_sweeps_that_come_along_are_found_anywhere_by_name(tmp_path):
    assert "quickstart" in run_here(tmp_path, "list", "sweeps").stdout
    assert "quickstart: " in run_here(tmp_path, "plan", "quickstart").stdout
    assert list(tmp_path.iterdir()) == []


def test_list_of_sweeps_names_every_file_and_no_other(tmp_path):
    """The folder of the sweeps holds a page and pictures too."""
    lines = run_here(tmp_path, "list", "sweeps").stdout.splitlines()
    names = [line.split()[0] for line in lines[1 : lines.index("")]]
    assert names == SWEEPS
    assert "cannot be read" not in "".join(lines)


def test_list_of_sweeps_shows_descriptions(tmp_path):
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "tiny.toml").write_text(SWEEP)
    assert "two methods on two moons" in run_here(tmp_path, "list", "sweeps").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sweep", "tiny.toml", "--set", "tolx=1"), "--set tolx=1: found an unknown key"),
        (("sweep", "tiny.toml", "--data-dir", "tiny.toml"), "--data-dir tiny.toml: found a file"),
        (("list", "datasets", "--data-dir", "nowhere"), "--data-dir nowhere: found nothing there"),
        (
            ("sweep", "tiny.toml", "--data-dir", "nowhere", "--set", "tolx=1"),
            "--set tolx=1: found an unknown key",
        ),
        (
            ("plan", "tiny.toml", "--memory", "1KiB"),
            "--memory 1KiB: found '1KiB'; expected at least 465 MiB, for the libraries, a buffer "
            "and one solver on 30 points",
        ),
        (
            ("plan", "tiny.toml", "--set", "methods.1.name=svm", "--set", "methods.1.folds=200"),
            "--set methods.1.folds=200: found 200; expected at most 15, the labelled",
        ),
        (
            ("sweep", "tiny.toml", "--set", "methods.majority.label=split"),
            "--set methods.majority.label=split: found 'split'; expected a name other",
        ),
        (("swep", "tiny.toml"), "Did you mean 'sweep'?"),
        (("show", "level", "--kind", "family"), "level: found nothing of this name"),
        (("status", "nowhere"), "nowhere"),
    ],
)
def test_mistakes_exit_with_2_one_message_and_no_output_folder(
    tmp_path, monkeypatch, capsys, words, said
):
    (tmp_path / "tiny.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mkldist", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert len([line for line in told.splitlines() if line.startswith("mkldist:")]) <= 1
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.toml"]


@pytest.mark.slow
def test_help_names_every_command(tmp_path):
    done = run(tmp_path, "--help")
    for name in COMMANDS:
        assert name in done.stdout


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
        ("mkldist sweep --sched", ["plain,--scheduler"]),
    ],
)
def test_names_are_offered_and_paths_left_to_the_shell(folder, monkeypatch, words, offered):
    ask(monkeypatch, words)
    assert run_here(folder).stdout.split() == offered


@pytest.mark.slow
def test_a_shell_is_answered_by_another_process(folder, monkeypatch):
    ask(monkeypatch, "mkldist sweep mine")
    assert run(folder).stdout.split() == ["plain,mine.toml"]


def chained(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


ENDS = [
    (SpecError("s.toml: tol", "-1", "a number above 0", "Leave it out"), 2,
     "mkldist: bad sweep: s.toml: tol: found -1; expected a number above 0. Leave it out.\n"),
    (DataError("a.csv", "no rows"), 2, "mkldist: bad data: a.csv: found no rows\n"),
    (ClusterError("scheduler tcp://x", "no answer"), 1,
     "mkldist: cluster: scheduler tcp://x: found no answer\n"),
    (KeyboardInterrupt(), 130, "mkldist: interrupted\n"),
    (KeyboardInterrupt("3 of 4"), 130, "mkldist: interrupted: 3 of 4\n"),
    (click.Abort(), 130, "mkldist: interrupted\n"),
    (click.UsageError("No such option"), 2, "Error: No such option\n"),
    (ZeroDivisionError("division by zero"), 1,
     "mkldist: internal error: ZeroDivisionError: division by zero. "
     "Set MKLDIST_DEBUG=1 to see where, and please report it.\n"),
    (OSError(errno.EIO, "Input/output error"), 1,
     "mkldist: internal error: OSError: [Errno 5] Input/output error. "
     "Set MKLDIST_DEBUG=1 to see where, and please report it.\n"),
    (OSError(errno.ENOSPC, "No space left on device"), 2,
     "mkldist: bad output: standard output: found no space left on the device; expected a writable "
     "folder with enough space. Free some space or choose another folder, then repeat the command: "
     "finished work is kept.\n"),
    (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 900), 2,
     f"mkldist: bad input: {'x' * 60}...: found a name that is too long; expected the path of a "
     "file\n"),
    (MemoryError(), 1, "mkldist: out of memory: this machine: found too little memory. Raise its "
     "limit (ulimit -v), or free some.\n"),
    (ImportError("x: failed to map"), 1, "mkldist: out of memory: this machine: found "
     "too little memory (x: failed to map). Raise its limit (ulimit -v), or free some.\n"),
    (RuntimeError("can't start new thread"), 1, "mkldist: out of memory: this machine: found "
     "too little memory (can't start new thread). Raise its limit (ulimit -v), or free some.\n"),
    (chained(AttributeError("pos"), OSError(errno.ENOSPC, "No space left on device", "x.pdf")), 2,
     "mkldist: bad output: x.pdf: found no space left on the device; expected a writable folder "
     "with enough space. Free some space or choose another folder, then repeat the command: "
     "finished work is kept.\n"),
    (chained(OSError("no x.so"), OSError("x: failed to map")), 1, "mkldist: out of memory: this "
     "machine: found too little memory (x: failed to map). Raise its limit (ulimit -v), or free "
     "some.\n"),
    (ImportError("no x"), 1, "mkldist: internal error: ImportError: no x. Set MKLDIST_DEBUG=1 to "
     "see where, and please report it.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "code", "said"), ENDS, ids=[repr(end[0])[:20] for end in ENDS])
def test_a_failure_is_one_message_and_a_code(monkeypatch, capsys, error, code, said):
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    with pytest.raises(SystemExit) as caught, reporting():
        raise error
    assert caught.value.code == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("limit", "environ", "code", "said"),
    [
        ("-v 500000", {}, 1, "found an address space of 488 MiB"),
        ("-v unlimited", {"SOURCE_DATE_EPOCH": "x"}, 2, "SOURCE_DATE_EPOCH: found 'x'"),
    ],
)
def test_what_libraries_take_badly_ends_a_command(limit, environ, code, said):
    words = ["sh", "-c", f'ulimit {limit}; exec "$0" -m mkldist list methods', sys.executable]
    ended = subprocess.run(
        words, capture_output=True, text=True, env=os.environ | environ, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (code, "")
    assert said in ended.stderr


@pytest.mark.slow
def test_a_sweep_ends_where_it_may_use_little_more_than_the_least_address_space(tmp_path):
    """Libraries that are loaded late find little left of it, and one of them asks without end."""
    (tmp_path / "t.toml").write_text(
        'name = "t"\n[[datasets]]\nname = "two_moons"\n[[banks]]\nfamily = "default"\n'
        '[[methods]]\nname = "uniform"\nC = 1\n'
    )
    least = 5 * 2**20 // 4 + (os.cpu_count() or 1) * 80 * 2**10  # KiB
    words = [f'ulimit -v {least + 25 * 2**10}; exec "$0" -m mkldist sweep t.toml', sys.executable]
    # Whether memory suffices depends on the libraries; that it ends in time is what counts.
    subprocess.run(["sh", "-c", *words], cwd=tmp_path, timeout=120, capture_output=True)


def test_a_traceback_is_shown_on_demand_and_keeps_the_code(monkeypatch, capsys):
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    with pytest.raises(SystemExit) as caught, reporting():
        raise SpecError("s.toml", "no such file")
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("mkldist: bad sweep: s.toml: found no such file\n")


@pytest.mark.slow
def test_a_console_without_some_letters_gets_others(finished):
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    results = str(finished / "results" / "tiny")
    command = [sys.executable, "-m", "mkldist", "status", results]
    done = subprocess.run(command, env=environ, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_success_says_nothing(capsys):
    with reporting():
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("raised", ["raise KeyboardInterrupt", "exec('raise KeyboardInterrupt')"])
def test_an_interrupt_ends_with_its_code_whatever_code_it_strikes(tmp_path, raised):
    """``python -m`` would end by the signal where it struck code from a text, as of dataclasses."""
    program = f"from mkldist.cli import reporting\nwith reporting():\n    {raised}\n"
    (tmp_path / "struck.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, "-m", "struck"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (130, "mkldist: interrupted\n")


@pytest.mark.parametrize("broken", [errno.EIO, errno.EPIPE], ids=["terminal", "pipe"])
def test_an_interrupt_is_one_though_its_line_cannot_be_shown(capsys, broken):
    last = OSError(broken, "of what is shown at the end")
    last.__cause__ = OSError(broken, "of a line break")
    last.__cause__.__context__ = KeyboardInterrupt("3 of 4")
    with pytest.raises(SystemExit) as caught, reporting():
        raise last
    assert caught.value.code == 130
    assert capsys.readouterr().err == "mkldist: interrupted: 3 of 4\n"


IN_A_TERMINAL = """
import os, signal, time
import mkldist.cli
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored
os.open(os.ttyname(0), os.O_RDWR)  # the terminal of this session from now on


def wait(*_):
    print("waits", flush=True)
    try:
        time.sleep(60)
    finally:
        print("is over", end="")  # stays in memory until the program ends


mkldist.cli.LazyGroup.invoke = wait
mkldist.cli.main()
"""


def test_a_terminal_that_closes_interrupts_a_command():
    pty = pytest.importorskip("pty")
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, "list"],
        stdin=end, stdout=end, stderr=end, start_new_session=True,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    os.close(end)
    try:
        assert os.read(terminal, 5) == b"waits"
        os.close(terminal)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("others", [0, 3])
def test_runs_outside_the_plan_are_told_once_a_folder(tmp_path, capsys, others):
    plan, store = made_up_plan(), Journal(tmp_path / "records.journal")
    lay_out(tmp_path, plan, made_up_facts(plan))
    for one in [*plan.runs[:2], *made_up_plan(datasets=["wdbc"]).runs[:others]]:
        store.append([made_up_record(one)])
    note_basis(tmp_path, tmp_path)
    out, said = capsys.readouterr()
    assert (out, said.count("without 3 recorded runs")) == ("", int(others > 0))
