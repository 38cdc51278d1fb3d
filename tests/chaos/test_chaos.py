"""A short campaign of faults, and that a campaign sees harm where there is some."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from tests.chaos import scene
from tests.chaos.campaign import Campaign
from tests.chaos.outcomes import Outcome, table_of
from tests.chaos.scene import Ended, Scene, differing
from tests.run import damage

HARMS = (
    {"lost": 1},
    {"again": 2},
    {"wrong": ("/two_moons/level",)},
    {"orphans": ("python",)},
    {"leftovers": ("a", "b")},
    {"faults": ("a traceback",)},
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "campaign",
    [Campaign(1, kills=4), Campaign(2, signals=2, pairs=1), Campaign(3, flips=20)],
    ids=["kills", "signals", "flips"],
)
def test_faults_do_no_harm(campaign):
    with tempfile.TemporaryDirectory() as folder:  # of a short path, so that sockets fit in it
        outcomes = list(campaign.outcomes(Path(folder)))
    assert len(outcomes) == campaign.kills + campaign.signals + campaign.pairs + campaign.flips
    assert [one for one in outcomes if not one.is_good] == []


@pytest.mark.parametrize("harm", HARMS)
def test_each_harm_counts(harm):
    outcome = Outcome("kill", **harm)
    assert not outcome.is_good
    text = io.StringIO()
    Console(file=text, width=200).print(table_of([outcome, Outcome("kill"), Outcome("bit")]))
    rows = [line.split() for line in text.getvalue().splitlines()]
    [name] = harm
    column = 2 + ["lost", "again", "wrong", "orphans", "leftovers", "faults"].index(name)
    counted = harm[name] if isinstance(harm[name], int) else 1
    assert next(row for row in rows if row[:1] == ["kill"])[1:] == [
        "2", *(str(counted * (place == column)) for place in range(2, 8)), "0",
    ]  # fmt: skip
    assert next(row for row in rows if row[:1] == ["all"])[1] == "3"
    assert len(list(outcome.lines())) == (0 if isinstance(harm[name], int) else len(harm[name]))


def test_results_that_differ_in_a_bit_are_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "small"
    damage.sweep(output)
    values = damage.values_of(output, timed=False)
    assert differing(output, values) == []
    node = "/two_moons/uniform"
    values[node] = values[node].assign(objective=values[node].objective * (1 + 1e-15))
    assert differing(output, values) == [node]
    del values[node]
    assert differing(output, values) == [node]


def test_processes_that_stay_and_new_files_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(scene, "ORPHANS_AFTER", 0.2)
    place = Scene(tmp_path)
    with place.started("import time; time.sleep(60)"):
        [orphan] = place.orphans()
        assert "time.sleep(60)" in orphan
    assert place.orphans() == ()
    before = place.files()
    (tmp_path / "scratch" / "pymp-abcdefgh").touch()
    assert place.files() - before == {"scratch/pymp-*"}


@pytest.mark.parametrize(
    ("code", "said", "faults"),
    [(0, "well", 0), (None, "waits", 1), (3, "x", 1), (3, "Traceback (most", 2)],
)
def test_ends_that_are_wrong_are_seen(code, said, faults):
    assert len(list(Ended(code, said, allowed=(0, 2)).faults())) == faults
