"""Sweeps with a small command in their first lines, and published numbers of those of papers."""

import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.results.rows import method_nodes
from mkldist.spec.load import load_sweep, shipped_sweeps
from mkldist.spec.model import SweepSpec
from sweeps.papers.judge import (
    CHANGE,
    EVERY,
    LEAST,
    OUTCOMES,
    POINTS,
    PROCESSOR,
    TEXTS,
    TIMES,
    Published,
    judged_by,
    read_conclusions,
    read_outcomes,
    read_published,
    read_texts,
)
from tests.methods.references.primalmkl import PRINTED as PRIMAL_PRINTED
from tests.methods.references.simplex_svm import PRINTED
from tests.snippets import code_blocks, run_blocks
from tests.test_sweep_files import run_small

FOLDER = Path(__file__).parents[1] / "sweeps" / "papers"
SWEEPS = sorted(file.stem for file in FOLDER.glob("*.toml"))
OTHERS = ["comparison_all_methods", "nested_cv", "star", "two_circles"]
PUBLISHED = sorted(file for file in (FOLDER / "published").glob("*.csv") if file.name not in TEXTS)
SCORES = {"unlabelled_error", "test_error"}
RADII = {"radius_error", "random_radius_error"}
COUNTS = {"active_kernels", "nonzero_kernels", "outer_iterations", "svm_solves"}
SHIPPED = shipped_sweeps()


def small_changes(name: str) -> list[str]:
    """Return the values of ``--set`` in the small command of a sweep's first lines."""
    lines = SHIPPED[name].read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("# In small, in seconds"))
    command = ""
    for line in lines[start + 2 :]:
        command += line.removeprefix("#").strip().removesuffix("\\")
        if not line.endswith("\\"):
            break
    words = shlex.split(command)
    assert words[:3] == ["mkldist", "sweep", name]
    assert set(words[3::2]) == {"--set"}
    return words[4::2]


def test_a_small_command_is_read_to_its_end():
    changes = small_changes("rmkl_table2")
    assert len(changes) == 3
    assert changes[-1].startswith("selection.folds=")


@pytest.mark.parametrize("name", [*OTHERS, *SWEEPS])
def test_the_first_lines_say_how_long_the_sweep_takes(name):
    lines = SHIPPED[name].read_text().splitlines()
    first = " ".join(line.strip("# ") for line in lines[: lines.index(f'name = "{name}"')])
    assert re.search(r"\b(takes?|took)\b.{1,120}?\b(s|minutes?|hours?) of a processor", first)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OTHERS, *SWEEPS])
def test_the_small_command_runs_whole_and_so_does_the_python_beside_it(
    name, tmp_path, monkeypatch, capsys
):
    numbers = FOLDER / "published" / f"{name}.csv"
    metrics = {row.metric for row in read_published(numbers)} if numbers in PUBLISHED else set()
    metrics -= {"svm_solves", "radius_error", "random_radius_error"}  # of some methods alone
    metrics = {metric for metric in metrics if "/" not in metric}
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))  # and its turns of the machine
    changes = small_changes(name)
    with run_small(name, tmp_path / "results", changes, n_workers=0) as tree:
        spec = load_sweep(SHIPPED[name])
        limits = {"rank_limit"} if any(bank.rank for bank in spec.banks) else set()
        reasons = {method.key: _reasons(method.model_dump()) | limits for method in spec.methods}
        nodes = method_nodes(tree)
        assert {node.name for node in nodes} == {method.key for method in spec.methods}
        for node in nodes:
            assert (node.state == "complete").all(), node.path
            assert np.isfinite(node.objective).all() or node.name == "majority", node.path
            assert set(node.stop_reason.values.flat) <= reasons[node.name], node.path
            for metric in metrics:
                assert np.isfinite(node[metric]).all(), (node.path, metric)
            errors = node["unlabelled_error" if "unlabelled_error" in node.ds else "test_error"]
            assert errors.mean("split").min() < 0.5 or node.name == "majority", node.path
    monkeypatch.chdir(tmp_path)
    small = load_sweep(SHIPPED[name], changes).datasets[0].name
    data_sets = [dataset.name for dataset in spec.datasets]
    capsys.readouterr()
    assert not run_blocks(python_of(name), data_sets, small)
    assert "nan" not in capsys.readouterr().out


def python_of(name: str) -> list[str]:
    """Return the Python in the first lines of a sweep."""
    return list(code_blocks(SHIPPED[name].read_text()))


def test_python_in_first_lines_is_found_and_commands_and_tables_are_not():
    lines = [block.splitlines() for block in python_of("rmkl_radius")]
    assert [len(block) for block in lines] == [4, 1]
    assert lines[0][0] == "import mkldist"
    assert python_of("level_table1") == python_of("mklsvm_table2") == []
    assert len([name for name in SWEEPS if python_of(name)]) == 9


def test_what_has_no_finite_value_is_told():
    blocks = ["import numpy as np\nx = np.nan\nfloat('inf')", "x, 1.0", "(1.0, 2.0)"]
    assert run_blocks(blocks, ["a"], "b") == ["float('inf')", "(x, 1.0)"]
    drawn = "from matplotlib import pyplot as plt\nplt.plot([1.0, {}])\nplt.plot([{}])"
    assert run_blocks([drawn.format(2.0, 3.0)], ["a"], "b") == []
    assert run_blocks([drawn.format("float('nan')", "float('nan')")], ["a"], "b") == [
        "plt.plot([float('nan')])"
    ]
    assert run_blocks(['assert ["b/x", "bc"] == ["a/x", "bc"]'], ["a", "b"], "a") == []


def _reasons(params: Mapping[str, Any]) -> set[str]:
    """Return the reasons for which small runs may stop: chi_2 may precede the tolerance."""
    return {"converged", "stalled"} if params.get("chi_2") else {"converged"}


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_published_numbers_are_of_the_data_sets_and_methods_of_their_sweep(file):
    spec = load_sweep(FOLDER / f"{file.stem}.toml")
    rows = read_published(file)
    places = {
        (dataset.name, method)
        for dataset in spec.datasets
        for method in (*_methods(spec), *_with_banks(spec))
    }
    for row in rows:
        assert row.experiment == spec.name
        metric, _, other = row.metric.partition("/")
        for method in filter(None, (row.method, other)):
            assert row.dataset == EVERY or (row.dataset, method) in places
            assert method in {name for _, name in places}
        assert re.match(r"(Table|Section) \d", row.source)
        assert metric in SCORES | COUNTS | RADII | {PROCESSOR}
        assert row.metric in COUNTS or 0.0 <= row.mean < 0.7
        assert not row.sd < 0.0
        assert not row.setting or _is_run(spec, row)
    keys = [(row.dataset, row.method, row.setting, row.metric) for row in rows]
    assert len(keys) == len(set(keys))


CONCLUSIONS = read_conclusions(FOLDER / "published" / "conclusions.toml")


@pytest.mark.parametrize("one", [c for c in CONCLUSIONS if c.experiment], ids=lambda c: c.words)
def test_conclusions_are_of_the_methods_and_settings_of_their_sweep(one):
    spec = load_sweep(SHIPPED[one.experiment])
    banks = [bank.label for bank in spec.sized_banks]
    keys = _methods(spec)
    known = {*keys, *(f"{bank}/{key}" for bank in banks for key in keys)}
    over = {one.first_over, one.second_over} - {""}
    assert {one.first, *one.others, *over} <= known
    assert any(one.covers(dataset.name) for dataset in spec.datasets)
    metrics = {one.metric, one.second_metric} - {""}
    assert metrics <= SCORES | COUNTS | TIMES | RADII | {POINTS, CHANGE, "gap"}
    for method, setting in (
        (one.first, one.setting),
        *((other, one.second_setting or one.setting) for other in one.others),
    ):
        given = next(m for m in spec.methods if m.key == method.rpartition("/")[2]).model_dump()
        for part in filter(None, setting.split(", ")):
            name, value = part.split("=")
            of, name = _source(spec, given, name)
            assert name in of, part
            assert isinstance(of[name], dict) or float(value) in np.atleast_1d(of[name])
    assert one.metric != POINTS or spec.outputs.predictions


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_of_published_numbers(name):
    numbers = [one for file in PUBLISHED for one in read_published(file)]
    assert read_texts(FOLDER / "published" / name, numbers)


PAGE = (FOLDER.parents[1] / "docs" / "reference" / "methods.md").read_text()
ROWS = re.search(r"<!-- as printed -->\n((?:\|.*\n)+)", PAGE)
LEFT_OUT = {"level_table1": "line_search", "primalmkl_fig1": "chi_2", "primalmkl_time": "chi_2"}


def as_printed() -> dict[str, dict[str, Any]]:
    """Return the parameters of each method as printed, from the table of the reference."""
    assert ROWS
    rows = [line.strip("| \n").split(" | ") for line in ROWS[1].splitlines()[2:]]
    settings = [(name.strip("`"), re.findall(r"`(.+?)`", parts)) for _, name, parts in rows]
    return {name: tomllib.loads("\n".join(parts)) for name, parts in settings}


def test_the_reference_prints_what_the_conformance_suite_solves():
    known = as_printed()
    assert known["level"] == {"acceleration": "none", "near": 0.99, "stop": "point"}
    for name, params in {**PRINTED, "primalmkl": PRIMAL_PRINTED}.items():
        assert params.items() <= known[name].items()


@pytest.mark.parametrize("name", SWEEPS)
def test_entries_called_printed_have_the_parameters_of_the_reference(name):
    for method in load_sweep(SHIPPED[name]).methods:
        if method.key.endswith("_printed"):
            given, wanted = method.model_dump(), as_printed()[method.name]
            wanted.pop(LEFT_OUT.get(name, ""), None)
            assert wanted.items() <= given.items(), method.key


def test_every_sweep_of_a_paper_has_numbers_or_conclusions():
    named = {file.stem for file in PUBLISHED} | {one.experiment for one in CONCLUSIONS}
    # the paper shows p = 1 alone, and no times of SimpleMKL
    assert {*SWEEPS} - named == {"primalmkl_norms", "primalmkl_time"}


def test_ten_conclusions_come_first_and_each_that_fails_has_a_cause():
    assert sorted(one.rank for one in CONCLUSIONS if one.rank) == list(range(1, 11))
    outcomes = read_outcomes(FOLDER / "published" / OUTCOMES)
    for one in CONCLUSIONS:
        failed = judged_by(one, outcomes.get(one.experiment)).verdict == "not reproduced"
        assert bool(one.cause) == failed, one.words


def test_wins_are_as_many_as_the_papers_count():
    """How often a method wins, as the papers count it in the text on their tables."""
    primal = _errors("primalmkl_table1")
    for method, wins in (("primalmkl", 7), ("simplemkl", 8)):  # without unit trace, of ten
        better = [
            primal[d, f"untraced/{method}"] < primal[d, f"traced/{method}"]
            for d in dict.fromkeys(d for d, _ in primal)
        ]
        assert sum(better) == wins
    table4 = _errors("lapmkl_table4")
    best = [
        min(("primalmkl", "lapsvm_single", "glks", "lapmkl"), key=lambda m, d=d: table4[d, m])
        for d in dict.fromkeys(d for d, _ in table4)
    ]
    assert (best.count("lapmkl"), best.count("lapsvm_single")) == (8, 6)
    table3 = _errors("lapmkl_table3")
    pairs = dict.fromkeys(d for d, _ in table3)
    assert sum(table3[d, "lapmkl"] < table3[d, "glks"] for d in pairs) == 9


@pytest.mark.parametrize(("rival", "saved"), [("simplemkl_printed", 70.3), ("silp_printed", 91.9)])
def test_the_mean_of_the_published_ratios_is_what_the_paper_saves_on_average(rival, saved):
    rows = read_published(FOLDER / "published" / "level_table2.csv")
    ratios = [row.mean for row in rows if row.metric == f"{PROCESSOR}/{rival}"]
    assert len(ratios) == 8
    assert 100.0 * (1.0 - np.mean(ratios)) == pytest.approx(saved, abs=0.05)
    (said,) = (c for c in CONCLUSIONS if c.scope == "average" and c.second == rival)
    assert said.factor == pytest.approx(1.0 - saved / 100.0)


def _errors(name: str) -> dict[tuple[str, str], float]:
    rows = read_published(FOLDER / "published" / f"{name}.csv")
    return {(row.dataset, row.method): row.mean for row in rows if row.metric in SCORES}


def _methods(spec: SweepSpec) -> list[str]:
    return [method.key for method in spec.methods]


def _with_banks(spec: SweepSpec) -> list[str]:
    banks = [bank.label for bank in spec.banks] if len(spec.banks) > 1 else []
    return [f"{bank}/{method}" for bank in banks for method in _methods(spec)]


def _is_run(spec: SweepSpec, row: Published) -> bool:
    """Return True if the sweep runs the setting ``C=...`` or ``source_C=...`` of a row."""
    name, value = row.setting.split("=")
    key = row.method.rpartition("/")[2]
    method = next(method for method in spec.methods if method.key == key)
    given, name = _source(spec, method.model_dump(), name)
    return method.name in METHODS and (value == LEAST or float(value) in np.atleast_1d(given[name]))


def _source(spec: SweepSpec, given: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """Return the keys of the method that has a parameter: another one for a name ``source_C``."""
    if not name.startswith("source_"):
        return given, name
    name = name.removeprefix("source_")
    return next(m for m in spec.methods if m.key == given[name]["from"]).model_dump(), name
