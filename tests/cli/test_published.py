"""``mkldist compare RESULTS --published FILE``, on a sweep made up."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from mkldist.cli.compare import command
from mkldist.cli.published import compare_published
from mkldist.errors import InputError, MkldistError
from tests.analysis.two_sweeps import made

LINES = """\
experiment,data set,method,setting,metric,mean,sd,source
made-up,heart,level,,test_error,0.15,0.1,Table 1
,heart,level,,test_error,0.5,0.1,Table 2
made-up,heart,[b]silp,,test_error,0.1,0.1,Table 1
x,heart,level,,test_error,0.1,0.1,Table 1
"""


@pytest.fixture
def words(tmp_path) -> list[str]:
    errors = {("heart", "level"): [0.1, 0.2], ("heart", "uniform"): [0.2, 0.2]}
    made(tmp_path / "ours", errors, split_names=("s0", "s1"))
    (tmp_path / "published.csv").write_text(LINES)
    return [str(tmp_path / "ours"), "--published", str(tmp_path / "published.csv")]


def test_numbers_stand_beside_each_other_with_a_verdict(words):
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "0.15 ± 0.1 0.15 ± 0.071 +0.0 agrees," in text
    assert "0.5 ± 0.1 0.15 ± 0.071 -3.5 lower by" in text
    assert "not in the" in text
    assert "heart [b]silp test_error" in text
    assert "1 number is left out, of other experiments: x." in text
    assert "Of 3 published numbers, 2 have a counterpart and a standard deviation: 1 of" in text


def test_the_document_has_a_cell_for_each_number(words):
    done = CliRunner().invoke(command, [*words, "--json"])
    found = json.loads(done.stdout)
    assert [cell["verdict"] for cell in found["published"]] == [
        "agrees, within 1 sd", "lower by 3.5 sd", "not in the results",
    ]  # fmt: skip
    assert found["published"][2]["mean"] is None


def test_methods_beside_a_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="--published: found 3 words beside it; expected RESULTS"):
        compare_published(["a", "level", "uniform"], tmp_path / "p.csv", as_json=False)


def test_data_sets_and_methods_choose_numbers(words):
    found = json.loads(CliRunner().invoke(command, [*words, "--method", "level", "--json"]).stdout)
    assert [cell["published"]["method"] for cell in found["published"]] == ["level"] * 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--method", "levle"], "--method levle: found no number of it in .*Did you mean 'level'"),
        (["--dataset", "wdbc"], "--dataset wdbc: found no number of it in .*expected one of heart"),
        (["--rope", "0.1"], "--rope: found --published, which makes no test"),
    ],
)
def test_options_that_do_not_fit_a_file_are_refused(words, more, said):
    with pytest.raises(MkldistError, match=said):
        CliRunner().invoke(command, [*words, *more], catch_exceptions=False)


def test_a_file_of_other_experiments_alone_is_refused(words, tmp_path):
    lines = LINES.splitlines(keepends=True)
    (tmp_path / "published.csv").write_text(lines[0] + lines[-1])
    with pytest.raises(InputError, match="found numbers of x alone; expected numbers of the exper"):
        CliRunner().invoke(command, words, catch_exceptions=False)
