"""``mkldist explain``, on a small real sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mkldist
from mkldist.cli.models import explain_command as command
from mkldist.cli.models import explanation_table as table
from mkldist.cli.models import print_explanation
from mkldist.core.consoles import as_text
from mkldist.errors import StoreError
from tests.cli.test_compare import SWEEP, run
from tests.report.made_up import explanation


@pytest.fixture(scope="module")
def explained_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    explained_folder = tmp_path_factory.mktemp("explain")
    more = '[[datasets]]\nname = "two_moons"\n'
    second = '[[datasets]]\nname = "two_circles"\noptions = { n = 60 }\n' + more
    (explained_folder / "one.toml").write_text(
        SWEEP.format(name="one", repeats=3).replace(more, second)
    )
    run(explained_folder, "sweep", "one", "--workers", "1")
    return explained_folder


@pytest.mark.slow
def test_every_data_set_is_explained_in_tables_and_words(explained_folder):
    text = run(explained_folder, "explain", "one", "--method", "level").stdout
    words = " ".join(text.split())
    for name in ("two_moons", "two_circles"):
        assert f"{name}: level" in text
        assert f"On {name}, level (C = " in words
    assert "Nogueira's measure" in words


@pytest.mark.slow
def test_the_document_has_shares_that_sum_to_one_and_a_figure(explained_folder):
    words = ("explain", "one", "--dataset", "two_moons", "--method", "level")
    words += ("--permutations", "1", "--figure", "why.png", "--json")
    found = json.loads(run(explained_folder, *words).stdout)
    (one,) = found["explanations"]
    assert found["figure"] == "why.png"
    assert (explained_folder / "why.png").read_bytes().startswith(b"\x89PNG")
    assert found["words"].keys() == {"two_moons"}
    refused = run(explained_folder, *words, code=2)
    assert "why.png: found a file of that name; expected a new file" in refused.stderr
    run(explained_folder, *words, "--overwrite")
    features = [share for share in one["shares"] if share["level"] == "kernel"]
    for kind in ("weight", "decision"):
        assert sum(share[kind]["mean"] for share in features) == pytest.approx(1.0)
    assert {share["p_value"] for share in features} <= {0.5, 1.0}
    assert one["against_uniform"]["second"] == "uniform"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "one --figure why.pdf",
            "--figure why.pdf: found 2 data sets: two_circles, two_moons; expected one",
        ),
        ("one --dataset two_moons --figure why.gif", "why.gif: found a name ending in '.gif'"),
        ("one --method levl", "--method levl: found nothing of this name"),
        ("nothing", "nothing: found no such folder, sweep file or name"),
    ],
)
def test_a_mistake_is_met_by_one_message_and_writes_nothing(explained_folder, words, said):
    done = run(explained_folder, "explain", *words.split(), code=2)
    assert said in done.stderr
    assert not list(explained_folder.glob("why.[pg]*f"))


def test_one_table_has_views_then_features_with_intervals(capsys):
    made = explanation(n_permutations=20)
    assert max(map(len, as_text(table(made), 80).splitlines())) <= 80
    print_explanation(made)
    text = capsys.readouterr().out
    words = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
    assert words.index("views 1. clinic") < words.index("2. rna") < words.index("features 1.")
    assert "clinic 60 [58, 62] 20 [18, 22] 5.0 [3.0, 7.0] 3/6 0.040" in words


def test_results_are_explained_from_python(tmp_path):
    with pytest.raises(StoreError):
        mkldist.explain(str(tmp_path / "none"))


def test_the_command_has_its_name():
    assert command.name == "explain"
