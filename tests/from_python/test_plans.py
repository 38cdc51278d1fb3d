"""Plans from Python and their forecasts: numbers that add up, and the text of the command."""

import io
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console

import mkldist
from mkldist.bank import factored_kernels
from mkldist.cli import command
from mkldist.errors import OutputError, SpecError
from mkldist.from_python.plans import (
    ALL_RECORDED,
    FORECAST_COLUMNS,
    SIZE_HEADINGS,
    SizeCost,
    default_lines,
    forecast_table,
    size_table,
)
from mkldist.run.forecast import PASS_SECONDS, REQUEST_SECONDS, Forecast
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import run_here, sweep_text

X = np.random.default_rng(0).normal(size=(40, 2))
Y = X[:, 0] > 0
SPEC = {
    "name": "p",
    "splits": {"kind": "kfold", "folds": 4},
    "banks": [{"family": "do2009"}, {"name": "one", "kernels": [{"function": "linear"}]}],
    "methods": [{"name": "level", "C": [1.0, 10.0]}, {"name": "majority"}],
}


def test_a_plan_counts_the_work_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = mkldist.plan(SPEC, {"d": (X, Y)}, workers=3)
    assert not list(tmp_path.iterdir())
    assert plan.n_runs == 4 * 2 * (2 + 1)
    assert (plan.n_banks, plan.n_batches, plan.n_solvers) == (8, 8, plan.n_runs)
    assert (plan.n_recorded, plan.n_failed, plan.n_workers) == (0, 0, 3)
    assert plan.banks.columns[:2].tolist() == ["dataset", "bank"]
    assert plan.banks["runs"].sum() == plan.n_runs
    assert plan.banks["disk"].sum() == plan.disk_bytes
    assert (plan.banks["kernels"] * plan.banks["banks"]).sum() == plan.n_kernels
    assert plan.memory_per_worker > 0 < plan.passes


def test_hyperparameters_that_the_file_leaves_out_are_told():
    methods = [{"name": "level", "C": 1.0}, {"name": "uniform"}, {"name": "lp_mkl", "p": 3.0},
               {"name": "majority"}]  # fmt: skip
    document = {**SPEC, "datasets": [{"name": "wdbc"}], "methods": methods}
    lines = default_lines(SweepSpec.model_validate(document))
    assert [*lines] == ["default:   C = 1.0 of uniform, lp_mkl"]


@pytest.mark.parametrize(
    ("n_classes", "changes", "said"),
    [
        (2, {}, None),
        (2, {"selection": {"folds": 2}}, "a run has one on each inner fold and on the whole"),
        (3, {}, "a run has one for each class"),
        (3, {"selection": {"folds": 2}}, "one for each class, on each inner fold and on the whole"),
    ],
)
def test_solvers_are_told_where_runs_have_several_and_why(n_classes, changes, said):
    plan = mkldist.plan(SPEC | changes, {"d": (X, np.arange(40) % n_classes)})
    found = [line for line in str(plan).splitlines() if line.startswith("solvers:")]
    assert len(found) == (said is not None)
    if said is not None:
        assert f"{plan.n_solvers}: " in found[0]
        assert said in found[0]
        assert ("class" in found[0], "fold" in found[0]) == (n_classes > 2, bool(changes))


def test_names_in_brackets_are_no_markup_of_a_console_of_ones_own():
    y = np.where(Y, "[red]ill", "[/red] :smile:")
    names = ["age [years]", "[bold]b"]
    plan = mkldist.plan(SPEC, {"d": (pd.DataFrame(X, columns=names), y)})
    console = Console(width=100, file=io.StringIO())
    console.print(plan)
    said = console.file.getvalue()
    assert "[red]ill (" in said
    assert "[/red] :smile: (" in said
    assert said.rstrip("\n") == str(plan)


@pytest.mark.slow
def test_a_plan_prints_as_the_command_does():
    done = CliRunner().invoke(command, ["plan", "quickstart", "--workers", "2"])
    text = str(mkldist.plan("quickstart", workers=2))
    assert [line.rstrip() for line in done.output.splitlines()] == [
        line.rstrip() for line in text.splitlines()
    ]
    assert repr(mkldist.plan("quickstart", workers=2)) == text


def test_a_plan_of_one_says_so_in_the_singular():
    words = {
        "banks": [SPEC["banks"][1]],
        "methods": [{"name": "majority"}],
        "splits": {"repeats": 1},
    }
    text = str(mkldist.plan({**SPEC, **words}, {"d": (X, Y)}))
    assert "1 Gram matrix in 1 bank\n" in text
    assert "1 run in 1 batch\n" in text


def test_a_plan_says_how_much_of_factors_memory_holds():
    widths = [0.1 * i for i in range(1, 101)]
    kernels = [{"function": "gaussian", "widths": widths}]
    banks = [{"name": "thin", "kernels": kernels, "backend": "factors"}]
    spec = {**SPEC, "banks": banks, "methods": [{"name": "level"}]}
    assert " in memory)" not in str(mkldist.plan(spec, {"d": (X, Y)}))
    many = np.random.default_rng(0).normal(size=(20_000, 2))
    text = str(mkldist.plan({**spec, "memory": "1GiB"}, {"d": (many, many[:, 0] > 0)}))
    [line] = [line for line in text.splitlines() if line.startswith("factors:")]
    assert " of a bank in each task at first (512.00 MiB in memory)" in line


@pytest.mark.slow
def test_a_plan_says_whether_matrices_or_factors_take_the_disk():
    factors = {"name": "thin", "family": "do2009", "backend": "factors"}
    methods = [{"name": "level"}]
    for banks, words in (
        ([factors], "factors"),
        ([factors, SPEC["banks"][1]], "Gram matrices and factors"),
    ):
        text = str(mkldist.plan({**SPEC, "banks": banks, "methods": methods}, {"d": (X, Y)}))
        [line] = [line for line in text.splitlines() if line.startswith("disk:")]
        assert f" of {words}, " in f"{line}, "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "said"),
    [
        (3, "a solution takes one pass: no factor can grow"),
        (
            5,
            "a solution takes 1 to 3 passes: factors may grow from 3 to 5 columns",
        ),
    ],
)
def test_a_plan_says_how_many_rounds_solutions_on_factors_take(rank, said, monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 3)
    thin = {"family": "do2009", "backend": "factors", "rank": rank}
    words = {**SPEC, "banks": [thin], "methods": [{"name": "level"}]}
    assert said in str(mkldist.plan(words, {"d": (X, Y)}))


@pytest.mark.slow
def test_a_plan_counts_what_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mkldist.sweep(SPEC, {"d": (X, Y)}, progress=False)
    assert mkldist.plan(SPEC, {"d": (X, Y)}).n_recorded == 24
    more = mkldist.plan(SPEC, {"d": (X, Y)}, changes={"methods.level.C": [1, 2]})
    assert (more.n_recorded, more.recorded.others) == (16, 8)
    asked = {"outputs.predictions": True, "outputs.coefficients": True}
    assert mkldist.plan(SPEC, {"d": (X, Y)}, changes=asked).n_recorded == 0  # they kept none
    assert "recorded:  16 of 24 runs in results/p, and 8 that are not in this plan" in str(more)


@pytest.mark.parametrize("folders", [str, Path, lambda one: [one]])
def test_data_are_looked_up_in_one_folder_or_several(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    rows = "".join(f"{i},{i * i % 7},{'pn'[i % 2]}\n" for i in range(20))
    (there / "d.csv").write_text(f"a,b,label\n{rows}")
    spec = SPEC | {"datasets": [{"name": "d", "file": "d.csv"}]}
    assert mkldist.plan(spec, data_dirs=folders(there)).n_runs


def test_workers_are_a_number():
    for workers in (0, True, "two"):
        with pytest.raises(ValueError, match="workers: found"):
            mkldist.plan(SPEC, {"d": (X, Y)}, workers=workers)


TEXT = sweep_text({"uniform": [1.0, 10.0]}, repeats=12)


def foretold(*options: str, cwd) -> dict:
    (cwd / "s.toml").write_text(TEXT)
    done = CliRunner().invoke(command, ["plan", str(cwd / "s.toml"), *options, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_command_and_python_foretell_the_same(tmp_path):
    work = mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=3, threads_per_worker=2)
    rows = work.forecast
    assert list(rows.columns) == FORECAST_COLUMNS
    assert 3 in rows.workers.tolist()
    assert (rows.threads == 2).all()
    for threads in ("--threads-per-worker", "--threads"):
        said = foretold("--workers", "3", threads, "2", cwd=tmp_path)["forecast"]
        assert [row["seconds"] for row in said] == pytest.approx(rows.seconds.tolist())


def test_without_workers_nothing_is_foretold(tmp_path):
    assert foretold(cwd=tmp_path)["forecast"] == []
    assert mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r").forecast.empty


def test_the_text_has_a_row_for_each_number_of_workers(tmp_path):
    said = str(mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=3))
    assert "No run of uniform is recorded: by typical rates" in said
    table = said.partition("efficiency")[2].splitlines()[2:-3]
    assert [int(line.split()[0]) for line in table] == [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]


ROW = Forecast(1000, 8, 3.6e6, 1.0, 4e5, 8e6, 2.0**50, 99 * 2**30, "longest task")
SMALL = replace(ROW, workers=1, seconds=5.0, held_hours=0.011, bytes=75_000.0)


def lines_of(*rows):
    console = Console(file=io.StringIO(), width=200)
    console.print(forecast_table(rows))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_table_fits_80_columns():
    lines = lines_of(SMALL, ROW)
    assert max(map(len, lines)) <= 80
    assert [" ".join(lines[place].split()) for place in (0, 2, 3)] == [
        "workers time efficiency CPU h held h moved memory limit",
        "1 5 s 100% 400000 0.011 73.2 kiB 99.0 GiB longest task",
        "1000 1000.0 h 100% 400000 8000000 1.00 PiB 99.0 GiB longest task",
    ]


@pytest.mark.slow
def test_another_storage_changes_what_is_foretold(tmp_path):
    plain = foretold("--workers", "2", cwd=tmp_path)["forecast"]
    slow = foretold("--workers", "2", "--storage", "1kB", cwd=tmp_path)["forecast"]
    assert {row["limit"] for row in slow} == {"storage"}
    assert slow[0]["seconds"] > 100 * plain[0]["seconds"]


def test_a_wrong_speed_of_storage_is_refused(tmp_path):
    (tmp_path / "s.toml").write_text(TEXT)
    words = ["plan", str(tmp_path / "s.toml"), "--workers", "2", "--storage", "fast"]
    done = CliRunner().invoke(command, words)
    assert isinstance(done.exception, SpecError) or done.exit_code == 2
    assert "--storage" in f"{done.output}{done.exception}"


@pytest.mark.slow
def test_only_runs_without_a_record_are_foretold(tmp_path):
    few = sweep_text({"uniform": [1.0]}, repeats=12)
    run_here(few, tmp_path / "r", None)
    spec = tomllib.loads(TEXT)
    left = mkldist.plan(spec, output=tmp_path / "r", workers=1).forecast
    all_of_them = mkldist.plan(spec, output=tmp_path / "none", workers=1).forecast
    assert "by typical rates" not in str(mkldist.plan(spec, output=tmp_path / "r", workers=1))
    assert left.processor_hours[0] < all_of_them.processor_hours[0]


@pytest.mark.slow
def test_a_sweep_that_is_recorded_is_not_foretold(tmp_path):
    few = sweep_text({"uniform": [1.0]}, repeats=2)
    run_here(few, tmp_path / "r", None)
    done = mkldist.plan(tomllib.loads(few), output=tmp_path / "r", workers=2)
    assert done.forecast.empty
    assert str(done).endswith(ALL_RECORDED)


def test_the_memory_of_several_threads_is_named_as_that_of_one(tmp_path):
    work = mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=3, threads_per_worker=2)
    assert "per worker of one thread at its peak, 3 workers of 2 threads" in str(work)


def test_too_many_workers_are_refused(tmp_path):
    with pytest.raises(SpecError, match="at least 1 and at most 100000"):
        mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=10**8)


@pytest.mark.parametrize("storage", ["10GB", True, -1.0, float("nan"), float("inf")])
def test_a_speed_of_storage_is_a_number_above_zero(tmp_path, storage):
    with pytest.raises(SpecError, match="expected a finite number of bytes a second"):
        mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r", workers=2, storage=storage)


ISOLATED = sweep_text({"level": [1.0, 10.0], "uniform": [1.0]}, execution="isolated")
STUDY = ISOLATED.replace("[[banks.kernels]]", 'name = "g"\nn_kernels = [3, 6]\n[[banks.kernels]]')
STUDY = STUDY.replace("repeats = 2", "repeats = 2\nn_train = [16, 32]")


def test_every_size_has_its_runs_passes_and_bytes(tmp_path):
    work = mkldist.plan(tomllib.loads(STUDY), output=tmp_path / "r")
    sizes = work.sizes
    assert list(sizes.columns) == ["dataset", "bank", *SIZE_HEADINGS]
    assert [*zip(sizes.dataset, sizes.bank, strict=True)] == [
        (f"two_moons-{n}", f"g-{m}") for n in (16, 32) for m in (3, 6)
    ]
    assert sizes.runs.tolist() == [6] * 4
    assert sizes.passes.sum() == work.passes
    by_hand = [
        row.passes * 8 * m * bank.n_points**2
        for row, m, bank in zip(sizes.itertuples(), [3, 6] * 2, work.plan.banks[::2], strict=True)
    ]
    # Tiles on the diagonal are stored whole, the others once.
    assert all(0.5 * whole <= n <= whole for n, whole in zip(sizes.bytes, by_hand, strict=True))
    assert sizes.bytes[1] == pytest.approx(2 * sizes.bytes[0])
    assert (sizes.seconds >= 6 / 100).all()


def test_the_time_counts_passes_solvers_their_machines_and_the_build(tmp_path):
    work = mkldist.plan(tomllib.loads(STUDY), output=tmp_path / "r")
    row = work.sizes.iloc[0]
    banks = [b for b in work.plan.banks if (b.dataset, b.spec.label) == (row.dataset, row.bank)]
    assert all(bank.stored for bank in banks)
    facts = work.costs.facts[row.dataset]
    solver = 0.01 + 10 * np.mean(facts.known_sizes) ** 3 / 3 / 4e9
    built = sum(bank.n_bytes for bank in banks)
    requests = PASS_SECONDS * row.passes + REQUEST_SECONDS * row.passes
    expected = row.bytes / 4e9 + row.runs * solver + built / 4e8 + requests
    assert row.seconds == pytest.approx(expected, rel=1e-3)


def test_the_text_shows_sizes_of_studies_alone(tmp_path):
    said = str(mkldist.plan(tomllib.loads(STUDY), output=tmp_path / "r"))
    assert "kernel values" in said
    assert "upper estimate" in said
    assert ", 1 worker\n" in said
    assert "upper estimate" not in str(mkldist.plan(tomllib.loads(ISOLATED), output=tmp_path / "r"))


def test_names_of_sizes_in_brackets_are_no_markup():
    console = Console(width=100, file=io.StringIO())
    console.print(size_table(iter([SizeCost("d[red]", "b[/red]", 1, 2, 3, 4.0)])))
    assert "d[red]" in console.file.getvalue()
    assert "b[/red]" in console.file.getvalue()


def test_a_folder_that_a_sweep_refuses_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for make in (mkldist.plan, mkldist.sweep):
        with pytest.raises(OutputError) as refused:
            make(SPEC, {"a": (X, Y)}, output=tmp_path)
        assert refused.value.found == "a folder that holds other files (notes.txt)"
