"""The command that checks a sweep's files: its lines, its JSON and its exit codes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import mkldist
from mkldist.analysis.comparison import Agreement
from mkldist.bank.cache import using_banks
from mkldist.bank.store import list_banks
from mkldist.cli.house import LINE_WIDTH as WIDTH
from mkldist.cli.house import (
    clean_command,
    cluster_command,
    doctor_command,
    rerun_command,
    verify_command,
)
from mkldist.errors import OutputError, StoreError
from mkldist.results.folder import claimed, note_banks
from mkldist.run import doctor
from mkldist.run import doctor as cluster_check
from mkldist.run.cluster import ConnectOptions
from mkldist.run.doctor import Finding
from mkldist.run.rerun import Rerun
from tests.bank.stores import stored
from tests.run import damage


def verify(*words: str) -> Result:
    return CliRunner().invoke(verify_command, words, catch_exceptions=False)


@pytest.fixture
def output(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    output = tmp_path / "results" / "small"
    output.parent.mkdir()
    damage.sweep(output)
    return output


def test_lines_json_and_exit_codes(output):
    sound = verify("small")
    assert sound.exit_code == 0
    kinds = [line.split()[0] for line in sound.output.splitlines()]
    assert kinds == ["manifest", "records", "layout", "snapshots", "banks"]
    assert "records    6 records, sound" in sound.output
    layout = output / "tree.layout"
    damage.flip(layout, np.random.default_rng(0))
    found = verify(str(output))
    assert found.exit_code == 2
    assert f"  {layout}" in found.output.splitlines()
    assert found.output.splitlines()[-1] == "the sweep's command makes anew what is damaged"
    asked = verify("small", "--json")
    assert asked.exit_code == 2
    document = json.loads(asked.output)
    assert document.keys() == {"path", "sound", "checked", "damaged"}
    assert (document["sound"], len(document["damaged"])) == (False, 1)
    assert [one["kind"] for one in document["checked"]] == kinds


WORDS = {
    "name": "moons",
    "datasets": [{"name": "two_moons", "options": {"n": 30}}],
    "banks": [{"family": "xu2008"}],
    "methods": [{"name": "uniform", "C": [1, 10]}],
    "splits": {"repeats": 1},
}


def run(*words: str) -> Result:
    return CliRunner().invoke(rerun_command, words, catch_exceptions=False)


def test_the_help_names_the_folder_of_the_rerun():
    assert "[default: results/NAME-rerun]" in " ".join(run("--help").output.split())


@pytest.fixture
def _results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mkldist.sweep(WORDS, output="results/moons", progress=False)


@pytest.mark.slow
@pytest.mark.usefixtures("_results")
def test_equal_results_end_well(tmp_path):
    done = run("moons", "--quiet", "-o", "again")
    assert done.exit_code == 0
    assert "results/moons: the same data; the same versions" in done.stderr
    assert "2 runs compared, 2 of them equal to the bit" in done.stdout
    assert "largest difference of test_error: 0" in done.stdout
    assert "all certified intervals of the optimum have points in common" in done.stdout
    asked = run("moons", "--quiet", "-o", "again", "--json")
    document = json.loads(asked.stdout)
    assert document["holds"]
    assert document["agreement"]["n_equal"] == 2


@pytest.mark.usefixtures("_results")
def test_contradictions_and_missing_runs_show_in_the_exit_code(monkeypatch):
    runs = tuple(f"moons/xu2008/level, split {split}" for split in range(7))
    found = Agreement(9, 2, runs, (0, 3), 0.5, {"test_error": 0.25})
    monkeypatch.setattr(Rerun, "agreement", lambda self: found)
    done = run("moons", "--quiet")
    assert done.exit_code == 3
    assert "largest relative difference of objectives 5.0e-01" in done.stdout
    assert "3 complete runs in results/moons-rerun alone" in done.stdout
    assert "certificates contradict each other: moons/xu2008/level, split 4" in done.stdout
    assert "split 5" not in done.stdout
    assert "7 contradictions in all" in done.stdout


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    """Return a folder of three banks, of which the sweep "mine" noted two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "results" / "banks"
    for name in ("one", "two", "three"):
        stored(root, np.ones((2, 4, 4)), "float64", name)
    with claimed(Path("results/mine"), "mine"):
        note_banks(Path("results/mine"), str(root), ["one", "two"])
    return root


def clean(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(clean_command, words, input=typed, catch_exceptions=False)


@pytest.mark.parametrize("typed", ["n\n", "", "\n"])
def test_without_a_yes_nothing_goes(root, typed):
    done = clean("mine", typed=typed)
    assert done.exit_code == 0
    assert f"{root}: 2 banks" in done.output
    assert "nothing was removed" in done.output
    assert len(list_banks(root)) == 3


@pytest.mark.parametrize(("words", "typed"), [(["mine"], "y\n"), (["results/mine", "--yes"], None)])
def test_what_was_printed_goes(root, words, typed):
    done = clean(*words, typed=typed)
    assert list_banks(root) == ["three"]
    (asked,) = [line for line in done.output.splitlines() if "2 banks" in line]
    assert done.output.rstrip().endswith(f"removed {asked.rpartition(', ')[2]}")
    assert "no Gram matrices are stored" in clean("mine").output


@pytest.mark.parametrize("folder", ["results/banks", "results"])
def test_a_folder_of_banks_is_emptied(root, folder):
    assert "3 banks" in clean(folder, "--yes").output
    assert list_banks(root) == []


def test_a_damaged_note_is_not_said_to_be_an_empty_one(root):
    Path("results/mine/banks.json").write_text("{")
    with pytest.raises(StoreError, match=r"a damaged note .* Repeat the sweep's") as found:
        clean("mine", "--yes")
    assert found.value.exit_code == 2
    assert len(list_banks(root)) == 3


def test_banks_in_use_stay(root):
    with using_banks(str(root)), pytest.raises(OutputError, match="a sweep at work uses"):
        clean("mine", "--yes")
    assert len(list_banks(root)) == 3


@pytest.fixture
def copy(root) -> Path:
    """Return a copy of the results in another folder, with the note of the original."""
    copy = root.parent.parent / "kept" / "copy"
    shutil.copytree(root.parent / "mine", copy)
    return copy


@pytest.mark.parametrize("words", [["--yes"], ["--yes", "--json"], ["--yes", "--banks", "other"]])
def test_a_copy_of_results_keeps_the_banks_of_the_original(root, copy, words):
    with pytest.raises(OutputError, match="may belong to other results") as refused:
        clean(str(copy), *words)
    assert refused.value.exit_code == 2
    assert f"--banks {root}" in str(refused.value)
    assert len(list_banks(root)) == 3


def test_a_copy_of_results_says_so_before_it_asks(root, copy):
    assert f"NOTE: {root} is not beside {copy}" in clean(str(copy), typed="n\n").output
    assert "NOTE" not in clean("mine", typed="n\n").output


def test_banks_elsewhere_go_where_they_are_named(root, copy):
    assert "removed" in clean(str(copy), "--yes", "--banks", str(root)).output
    assert list_banks(root) == ["three"]


@pytest.mark.parametrize("folder", ["mine", "results"])
def test_banks_behind_a_link_are_those_beside_it(root, folder):
    disk = root.parent.parent / "disk"
    root.rename(disk)
    root.symlink_to(disk)
    clean(folder, "--yes")
    assert list_banks(disk) == (["three"] if folder == "mine" else [])


def test_banks_in_the_folder_of_results_go(root):
    inner = root.parent / "mine" / "banks"
    root.rename(inner)
    note_banks(Path("results/mine"), str(inner), ["one"])
    clean("mine", "--yes")
    assert list_banks(inner) == ["three", "two"]


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
    done = CliRunner().invoke(doctor_command, [str(tmp_path)])
    assert done.exit_code == code
    lines = done.output.splitlines()
    assert seen == [tmp_path]
    assert lines[0].startswith("disk           full full")
    assert max(map(len, lines)) <= WIDTH
    assert lines[-2:] == ["               → Free some space", "locks          work"]


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    done = CliRunner().invoke(doctor_command, [str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "does not exist" in done.output


SEEN: list[tuple[ConnectOptions, dict[str, str], float]] = []


@pytest.fixture(params=[False, True], ids=["sound", "faulty"])
def hinders(request, monkeypatch) -> bool:
    def examine(options, places, wait):
        SEEN.append((options, places, wait))
        yield Finding("scheduler", "tcp://127.0.0.1:1 answered")
        yield Finding("versions", "0.0.1 of mkldist", "Install [the] same", request.param)

    SEEN.clear()
    monkeypatch.setattr(cluster_check, "examine_cluster", examine)
    return bool(request.param)


def test_findings_of_a_cluster_decide_the_exit_code(hinders):
    done = CliRunner().invoke(cluster_command, ["check", "--scheduler", "tcp://127.0.0.1:1"])
    assert done.exit_code == 2 * hinders
    assert done.output.splitlines() == [
        "scheduler      tcp://127.0.0.1:1 answered",
        "versions       0.0.1 of mkldist",
        "               → Install [the] same",
    ]
    [(options, places, wait)] = SEEN
    assert options == ConnectOptions("tcp://127.0.0.1:1")
    assert places == {"results": "results", "banks": "results/banks"}
    assert wait == 3


def test_the_document_says_whether_the_cluster_is_sound(hinders, tmp_path):
    words = ["check", "mine.yaml", "--banks", "s3://b", "--tls", str(tmp_path), "--json"]
    done = CliRunner().invoke(cluster_command, words)
    document = json.loads(done.output)
    assert document["sound"] is not hinders
    assert [one["name"] for one in document["findings"]] == ["scheduler", "versions"]
    [(options, places, wait)] = SEEN
    assert options.tls == tmp_path
    assert places["banks"] == "s3://b"
    assert wait == 60


@pytest.mark.parametrize("words", [[], ["mine.yaml", "--scheduler", "tcp://127.0.0.1:1"]])
def test_a_cluster_is_named_once(words):
    done = CliRunner().invoke(cluster_command, ["check", *words])
    assert done.exit_code == 2
    assert "Give the file of a cluster or --scheduler ADDRESS, one of them." in done.output
