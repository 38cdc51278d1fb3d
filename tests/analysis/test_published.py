"""Our numbers in published standard deviations, by hand (`published`, `published_number`)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mkldist.analysis.pairing import Results
from mkldist.analysis.published import against_published, of_sweep, read_published
from mkldist.analysis.published_number import Published
from mkldist.errors import DataError
from tests.analysis.two_sweeps import made

HEADER = "experiment,data set,method,setting,metric,mean,sd,source\n"
LEVEL = [0.1, 0.2, 0.3]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    errors = {("heart", "level"): LEVEL, ("heart", "uniform"): [0.2, 0.2, 0.2]}
    folder = tmp_path_factory.mktemp("ours")
    return made(folder, errors, split_names=("s0", "s1", "s2"))


def written(folder: Path, *lines: str, header: str = HEADER) -> Path:
    file = folder / "published.csv"
    file.write_text(header + "\n".join(lines) + "\n")
    return file


def test_each_number_has_its_distance_and_verdict(results, tmp_path):
    file = written(
        tmp_path,
        ",heart,level,,test_error,0.25,0.1,Table 1",
        ",heart,level,C=10,test_error,0.25,0.1,Table 1",
        ",heart,xu2008/uniform,C = 1.0,test_error,0.5,0.1,Table 1",
        ",heart,uniform,,test_error,0.1,,Table 1",
    )
    found = against_published(results, read_published(file))
    chosen, worse, fixed, without = found
    assert (chosen.mean, chosen.sd) == pytest.approx((0.2, np.std(LEVEL, ddof=1)))
    assert (chosen.distance, chosen.verdict) == (pytest.approx(-0.5), "agrees, within 1 sd")
    # C = 10 has errors larger by 0.2
    assert (worse.distance, worse.verdict) == (pytest.approx(1.5), "within 2 sd")
    assert (fixed.distance, fixed.verdict) == (pytest.approx(-3.0), "lower by 3.0 sd")
    assert math.isnan(without.distance)
    assert without.verdict == "+0.1; no standard deviation is published"
    assert [cell.n_splits for cell in found] == [3] * 4


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (",heart,silp,,test_error,0.1,0.1,", "not in the results"),
        (",wdbc,level,,test_error,0.1,0.1,", "not in the results"),
        (",heart,level,C=7,test_error,0.1,0.1,", "setting not in the results"),
        (",heart,level,p=2,test_error,0.1,0.1,", "setting not in the results"),
        (",heart,level,,beauty,0.1,0.1,", "no beauty in the results"),
    ],
)
def test_what_we_did_not_run_is_said(results, tmp_path, line, verdict):
    (cell,) = against_published(results, read_published(written(tmp_path, line)))
    assert (cell.verdict, cell.n_splits) == (verdict, 0)


def test_rows_of_other_experiments_do_not_count(results):
    names = ("made-up", "another", "", "third", "another")
    rows = [Published(name, "heart", "level", "", "test_error", 0.2, 0.1, "") for name in names]
    found = against_published(results, rows)
    assert [cell.published.experiment for cell in found] == ["made-up", ""]
    assert of_sweep(rows, "made-up") == ([rows[0], rows[2]], ["another", "third"])
    assert against_published(results, rows[1:2]) == []


@pytest.mark.parametrize("metric", ["stop_reason", "state", "run_id", "kernel_weights", "n_train"])
def test_a_metric_is_one_number_a_run(results, tmp_path, metric):
    file = written(tmp_path, f",heart,level,,{metric},1,1,")
    said = rf"line 2, column 'metric': found '{metric}'; expected .*objective, .*test_error"
    with pytest.raises(DataError, match=said):
        against_published(results, read_published(file))


@pytest.mark.parametrize(
    ("lines", "header", "said"),
    [
        ([], HEADER, "found no rows; expected published numbers"),
        (["a"], "data set,mean\n", "found no column 'experiment', 'method', 'setting', 'metric',"),
        (
            [",d,m,,e,low,1,"],
            HEADER,
            "line 2, column 'mean': found 'low'; expected a finite number",
        ),
        ([",d,m,,e,1,?,"], HEADER, "line 2, column 'sd': found '.'; expected a finite number"),
        ([",d,m,,e,1,-0.1,"], HEADER, "line 2, column 'sd': found '-0.1'; expected a number of at"),
        ([",d,m,C:1,e,1,1,"], HEADER, "line 2, column 'setting': found 'C:1'; expected C=100"),
        ([",d,m,C=1, p=2,e,1,1,"], HEADER, "line 2: found 9 fields; expected 8, as in the header"),
    ],
    ids=["no rows", "columns", "mean", "sd", "below zero", "setting", "comma"],
)
def test_a_file_with_a_mistake_is_refused(tmp_path, lines, header, said):
    with pytest.raises(DataError, match=said):
        read_published(written(tmp_path, *lines, header=header))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: .*in which the command runs"):
        read_published(tmp_path / "none.csv")
