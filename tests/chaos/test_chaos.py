"""A short campaign of faults, and that a campaign sees harm where there is some."""

import io
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from mkldist.results.journal import Journal, RunRecord
from tests.chaos import scene
from tests.chaos.campaign import Campaign
from tests.chaos.media import media, read_only, vanished
from tests.chaos.outcomes import Outcome, table_of
from tests.chaos.scene import Ended, Scene, differing, solved
from tests.results.sweeps import made_up_plan, made_up_record
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
    [
        Campaign(1, kills=1, pauses=1, signals=1, pairs=1, starts=1),
        Campaign(3, flips=10, exchanges=10),
        Campaign(4, media=2),
        Campaign(5, exhausted=1, schedulers=1, lives=1),
    ],
    ids=["processes", "flips", "media", "clusters"],
)
def test_faults_do_no_harm(campaign):
    with tempfile.TemporaryDirectory() as folder:  # of a short path, so that sockets fit in it
        outcomes = list(campaign.outcomes(Path(folder)))
    assert len(outcomes) == sum(asdict(replace(campaign, seed=0)).values())
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


@pytest.mark.slow
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


def test_every_folder_fails_in_every_way_that_this_machine_allows():
    kinds = media()
    assert kinds[0] == "limit on file sizes"
    places = {kind.partition(": ")[2] for kind in kinds[1:]}
    assert places == Scene(Path()).places.keys()
    ways = {kind.partition(": ")[0] for kind in kinds[1:]}
    assert len(kinds) == 1 + len(ways) * len(places)
    assert "vanished" in ways


@pytest.mark.parametrize("hidden", [read_only, vanished])
def test_a_folder_that_is_hidden_cannot_be_used_and_comes_back_unchanged(tmp_path, hidden):
    if hidden is read_only and "read-only: output" not in media():
        pytest.skip("mounting needs root")
    place = tmp_path / "place"
    place.mkdir()
    (place / "before").touch()
    with hidden(place), pytest.raises(OSError, match=r"Read-only|No such file"):
        (place / "meanwhile").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["place", "before"]
    (place / "after").touch()


def test_failed_runs_may_be_done_again_and_others_not(tmp_path):
    complete, failed, *_ = made_up_plan().runs
    ended = {"ended": 1.0}
    records = [
        replace(made_up_record(complete), provenance=ended),
        RunRecord.failed(failed, "", provenance=ended),
    ]
    Journal(tmp_path / "records.journal").append(records)
    assert solved(tmp_path) == {f"{complete.id}.complete": 10**9}


def test_processes_that_stay_and_new_files_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(scene, "ORPHANS_AFTER", 0.2)
    place = Scene(tmp_path)
    with place.started(setup="import time; time.sleep(60)"):
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
