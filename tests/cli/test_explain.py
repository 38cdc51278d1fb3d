"""``mkldist explain``, on a small real sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mkldist
from mkldist.analysis.explanation import Grouping
from mkldist.analysis.resampling import Interval
from mkldist.cli.explain import command, print_explanation
from mkldist.errors import StoreError
from mkldist.report.explanation_words import explanation_sentences
from tests.cli.test_compare import SWEEP, run
from tests.report.made_up_explanation import explanation, share


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    more = '[[datasets]]\nname = "two_moons"\n'
    second = '[[datasets]]\nname = "two_circles"\noptions = { n = 60 }\n' + more
    (folder / "one.toml").write_text(SWEEP.format(name="one", repeats=3).replace(more, second))
    run(folder, "sweep", "one", "--workers", "1")
    return folder


@pytest.mark.slow
def test_every_data_set_is_explained_in_tables_and_words(folder):
    text = run(folder, "explain", "one").stdout
    words = " ".join(text.split())
    for name in ("two_moons", "two_circles"):
        assert f"{name}: level" in text
        assert f"On {name}, level (C = " in words
    assert "Nogueira's measure of the selection" in words
    assert "where uniform weights use all 6." in words
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
def test_the_document_has_shares_that_sum_to_one_and_a_figure(folder):
    words = ("explain", "one", "--dataset", "two_moons", "-o", "why.png", "--json")
    found = json.loads(run(folder, *words).stdout)
    (one,) = found["explanations"]
    assert found["figure"] == "why.png"
    assert (folder / "why.png").read_bytes().startswith(b"\x89PNG")
    assert found["words"].keys() == {"two_moons"}
    refused = run(folder, *words, code=2)
    assert "why.png: found a file of that name; expected a new file" in refused.stderr
    run(folder, *words, "--overwrite")
    for grouping in one["groupings"]:
        for kind in ("weight", "decision"):
            assert sum(share[kind] for share in grouping["shares"]) == pytest.approx(1.0)
    assert one["against_uniform"]["second"] == "uniform"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("one -o why.pdf", "-o why.pdf: found 2 data sets: two_circles, two_moons; expected one"),
        ("one --dataset two_moons -o why.gif", "why.gif: found a name ending in '.gif'"),
        ("one --method levl", "--method levl: found nothing of this name"),
        ("nothing", "nothing: found no such folder, sweep file or name"),
    ],
)
def test_a_mistake_is_met_by_one_message_and_writes_nothing(folder, words, said):
    done = run(folder, "explain", *words.split(), code=2)
    assert said in done.stderr
    assert not list(folder.glob("why.[pg]*f"))


@pytest.mark.parametrize(
    ("names", "shown"), [(("[clinic]", "all"), True), (("all", "single"), False)]
)
def test_named_groups_have_a_table_and_a_sentence(capsys, names, shown):
    shares = (share(names[0], 0.7, 0.4), share(names[1], 0.3, 0.6))
    grouping = Grouping("feature_group", shares, Interval(0.5, 0.4, 0.6))
    one = explanation(groupings=(grouping,))
    sentences = explanation_sentences(one)
    print_explanation(one, sentences)
    text = " ".join(capsys.readouterr().out.split())
    assert ("groups of features" in text) == shown
    assert any(said.startswith("Groups of features by share") for said in sentences) == shown
    if shown:
        assert "[clinic] 3 70.0 ± 2.0 40.0 ± 2.0" in text
        assert "Groups of features by share of the weights: [clinic] 70 ± 2 %, all 30 ± 2 %" in text
        assert "By share of the decision's variance: all 60 ± 2 %, [clinic] 40 ± 2 %." in text


def test_results_are_explained_from_python(tmp_path):
    with pytest.raises(StoreError):
        mkldist.explain(str(tmp_path / "none"))


def test_the_command_has_its_name():
    assert command.name == "explain"
