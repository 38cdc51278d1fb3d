"""Ours of published numbers, by hand: values by split, ranges of settings, words on them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sweeps.papers.judge import (
    NO_RANGE,
    Published,
    Results,
    SettingRange,
    number_table,
    our_number,
    read_explanations,
    read_published,
    setting_range,
    text_on,
    weight_changes,
)
from tests.analysis.two_sweeps import made

HEADER = "experiment,data set,method,setting,metric,mean,sd,source\n"
TEXTS = "experiment,data set,method,metric,ours,explanation\n"
ERRORS = {
    ("heart", "level"): [0.1, 0.3],
    ("heart", "uniform"): [0.2, 0.4],
    ("pima", "level"): [0.3, math.nan],
    ("pima", "uniform"): [0.0, 0.1],
}
NUMBER = Published("made-up", "heart", "level", "", "test_error", 0.2, math.nan, "Table 1")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    folder = tmp_path_factory.mktemp("ours")
    made(folder, ERRORS, split_names=("s0", "s1"))
    return Results(folder)


def values(results: Results, **words) -> list[float]:
    return results.values(replace(NUMBER, **words)).tolist()


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    file = folder / "numbers.csv"
    file.write_text(header + "\n".join(lines) + "\n")
    return file


def test_each_number_has_its_distance_in_published_deviations(results, tmp_path):
    file = written(
        tmp_path,
        ",heart,level,,test_error,0.25,0.1,Table 1",
        ",heart,level,C=10,test_error,0.25,0.1,Table 1",  # C = 10 has errors larger by 0.2
        ",heart,xu2008/uniform,C = 1.0,test_error,0.5,0.1,Table 1",
        ",heart,uniform,,test_error,0.1,,Table 1",
        ",heart,silp,,test_error,0.1,,Table 1",
        "other,heart,level,,test_error,0.1,0.1,Table 1",
    )
    table = number_table(results, read_published(file))
    assert table["in sd"].tolist() == pytest.approx(
        [-0.5, 1.5, -2.0, math.nan, math.nan], nan_ok=True
    )
    assert table["ours"].tolist()[:2] == ["0.2 ± 0.14", "0.4 ± 0.14"]
    assert table["published"].tolist()[2:4] == ["0.5 ± 0.1", "0.1"]
    assert table[""].tolist() == ["", "", "", "", "not in the results"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"method": "silp"}, "not in the results"),
        ({"dataset": "wdbc"}, "not in the results"),
        ({"setting": "C=7"}, "setting not in the results"),
        ({"setting": "p=2"}, "setting not in the results"),
        ({"dataset": "pima", "setting": "C=least"}, "setting not in the results"),
        ({"metric": "beauty"}, "no beauty in the results"),
        ({"metric": "stop_reason"}, "no stop_reason in the results"),
        ({"metric": "kernel_weights"}, "no kernel_weights in the results"),
        ({"metric": "weight_change"}, "no trace of one setting in the results"),
        ({"dataset": "*", "metric": "test_error/uniform"}, "no complete run"),  # pima: 0, failed
    ],
)
def test_what_was_not_run_is_said(results, words, why):
    cell = our_number(results, replace(NUMBER, **words))
    assert (cell.n_splits, cell.lacking) == (0, why)


def test_a_metric_over_a_method_is_the_ratio_on_each_split(results):
    assert values(results, metric="test_error/uniform") == pytest.approx([0.5, 0.75])
    assert values(results, metric="test_error/xu2008/uniform") == pytest.approx([0.5, 0.75])
    assert np.isnan(values(results, dataset="pima", metric="test_error/uniform")).all()


def test_a_star_is_the_mean_of_every_data_set(results):
    assert values(results, dataset="*") == pytest.approx([0.2, 0.3])


def test_the_least_setting_has_the_least_mean_of_those_that_are_complete(results):
    assert values(results, setting="C=least") == pytest.approx([0.1, 0.3])
    assert values(results, setting="C=10") == pytest.approx([0.3, 0.5])


def test_a_method_in_several_banks_needs_its_bank(tmp_path):
    made(tmp_path, {("heart", "level"): [0.1, 0.3]}, split_names=("s0", "s1"), banks=("a", "b"))
    own = Results(tmp_path)
    with pytest.raises(LookupError, match="BANK/METHOD"):
        values(own)
    assert values(own, method="b/level") == pytest.approx([0.1, 0.3])


def test_times_are_of_processor_and_passes_and_compare_if_isolated(results):
    tree = results.tree.copy()
    for node in tree.subtree:
        if "wall_seconds" in node:
            ones = node["wall_seconds"] * 0.0 + (1.0 if node.name == "level" else 4.0)
            node["cpu_seconds"], node["pass_cpu_seconds"] = ones, 2.0 * ones
    assert values(Results("", tree), metric="processor_seconds") == pytest.approx([3.0, 3.0])
    with pytest.raises(LookupError, match="share passes"):
        values(Results("", tree), metric="processor_seconds/uniform")
    spec = json.loads(str(tree.attrs["spec"]))
    tree.attrs["spec"] = json.dumps({**spec, "execution": "isolated"})
    found = values(Results("", tree), metric="processor_seconds/uniform")
    assert found == pytest.approx([0.25, 0.25])


def test_the_change_of_weights_is_of_the_trace_at_the_setting(results):
    tree = results.tree.copy()
    weights = np.ones((2, 2, 2, 1))
    weights[:, 1, 1] = 0.5  # C = 10 changes by a half
    names = np.full(weights.shape, "a", object)
    dims = ("split", "C", "iteration", "rank")
    trace = {"largest_kernels": (dims, names), "largest_weights": (dims, weights)}
    tree["heart/level/convergence"] = xr.DataTree(xr.Dataset(trace))
    own = Results("", tree)
    assert values(own, metric="weight_change") == pytest.approx([0.0, 0.0])
    assert values(own, metric="weight_change", setting="C=10") == pytest.approx([0.5, 0.5])


def trace(*runs):
    """Return a trace of runs, each a list of iterations, each the weights by name."""
    length = max(map(len, runs))
    names = np.full((len(runs), length, 2), "", object)
    weights = np.full((len(runs), length, 2), np.nan)
    for place, run in enumerate(runs):
        for t, own in enumerate(run):
            for rank, (name, weight) in enumerate(own.items()):
                names[place, t, rank], weights[place, t, rank] = name, weight
    dims = ("split", "iteration", "rank")
    return xr.Dataset({"largest_kernels": (dims, names), "largest_weights": (dims, weights)})


def test_a_change_is_the_sum_over_the_kernels_of_two_iterations():
    swapped = [{"a": 0.6, "b": 0.4}, {"b": 0.7, "a": 0.3}]  # 0.3 and 0.3
    replaced = [{"a": 0.6, "b": 0.4}, {"a": 0.5, "c": 0.5}, {"a": 1.0}]  # 0.1 + 0.4 + 0.5; 1.0
    still = [{"a": 1.0}, {"a": 1.0}]
    once = [{"a": 1.0}]
    found = weight_changes(trace(swapped, replaced, still, once))
    assert found == pytest.approx([0.6, 1.0, 0.0, math.nan], nan_ok=True)


def validated(folder: Path) -> Results:
    """C = 10 has errors larger by 0.2; it ties on the first split and has none on the third."""
    own = made(folder, {("heart", "level"): [0.1, 0.3, 0.2]}, split_names=("s0", "s1", "s2"))
    tree = own.tree.copy()
    (node,) = (node for node in tree.subtree if node.name == "level")
    given = np.array([[0.5, 0.5], [0.4, 0.5], [0.4, math.nan]])
    node.dataset = node.to_dataset().assign(validation_error=(("split", "C"), given))
    return Results(folder, tree)


def test_means_and_ties_are_of_the_splits_with_all_settings(tmp_path):
    own = validated(tmp_path)
    found = setting_range(own, NUMBER)
    assert found == SettingRange(2, *map(pytest.approx, (0.2, 0.4, [2, 1], 0.2, 0.3)))
    assert values(own) == pytest.approx([0.1, 0.3, 0.2])  # the first of tied settings
    for words in ({"setting": "C=1"}, {"method": "silp"}, {"metric": "beauty"}):
        assert setting_range(own, replace(NUMBER, **words)) == NO_RANGE


def test_nothing_is_said_where_nothing_was_chosen(results):
    assert setting_range(results, NUMBER) == NO_RANGE


@pytest.mark.parametrize(
    ("lines", "header", "said"),
    [
        (["a"], "data set,mean\n", "no column experiment, method, setting, metric, sd, source"),
        ([",d,m,,e,low,1,"], HEADER, "line 2: .*'low'"),
        ([",d,m,C:1,e,1,1,"], HEADER, "line 2: found the setting 'C:1'"),
        ([",d,m,C=1, p=2,e,1,1,"], HEADER, "line 2: .*as in the header"),
    ],
    ids=["columns", "mean", "setting", "comma"],
)
def test_a_file_with_a_mistake_is_refused(tmp_path, lines, header, said):
    with pytest.raises(ValueError, match=said):
        read_published(written(tmp_path, *lines, header=header))


def test_the_first_text_on_a_number_and_its_direction_counts(tmp_path):
    lines = ("*,heart,silp,*,,no", "*,heart,l*,*,higher,more", "*,*,*,test_error,lower,less",
             "made-up,heart,level,test_error,,either")  # fmt: skip
    file = written(tmp_path, *lines, header=TEXTS)
    silp = replace(NUMBER, method="silp")
    found = read_explanations(file, [NUMBER, silp])
    assert text_on(NUMBER, found, 0.3) == "more"
    assert text_on(NUMBER, found, 0.1) == "less"
    assert text_on(NUMBER, found[2:], 0.3) == "either"
    assert text_on(NUMBER, found[:2], 0.1) == ""
    assert text_on(NUMBER, found) == "more"  # of data, which have no direction
    assert read_explanations(tmp_path / "none.csv", [NUMBER]) == []


@pytest.mark.parametrize(
    "row",
    ["made-up,heart,silp,test_error,,why", "*,*,*,*,up,why", "*,*,*,*,,", "made-up,heart,level"],
    ids=["no number", "direction", "no words", "fields"],
)
def test_a_text_that_explains_nothing_is_refused(tmp_path, row):
    with pytest.raises(ValueError, match="line 2: "):
        read_explanations(written(tmp_path, row, header=TEXTS), [NUMBER])
