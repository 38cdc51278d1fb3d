"""Pictures of decision boundaries: the functions that the sweep scored, drawn once."""

from __future__ import annotations

import os
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mkldist.core.durable import machine_id, temporary_path
from mkldist.data.dataset import Dataset, Split
from mkldist.errors import SpecError
from mkldist.planning.model import BankPlan
from mkldist.report import boundaries
from mkldist.report.boundaries import GRID, boundary, decision_function
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import SweepOutcome, run_sweep
from mkldist.run.sweep_setup import planned
from mkldist.spec.datasets import DatasetSpec
from mkldist.spec.model import MethodSpec, SweepSpec

pytestmark = pytest.mark.slow

MOONS = 'name = "two_moons"\noptions = { n = 60, noise = 0.2 }'
THREE = 'name = "three"\nfile = "three.npz"'
SUPERVISED = """
name = "pictures"
[[datasets]]
{dataset}
[preprocessing]
fit = "{fit}"
[[banks]]
normalisation = {normalisation}
[[banks.kernels]]
function = "gaussian"
widths = [0.3, 1.0]
[[banks.kernels]]
function = "polynomial"
degrees = 2
features = ["all", "each"]
[outputs]
predictions = true
figures = {figures}
[[methods]]
name = "level"
kernel_weights = "{kernel_weights}"
C = [1, 100]
[[methods]]
name = "majority"
"""
SEMI_SUPERVISED = """
[splits]
kind = "semi-supervised"
labelled_per_class = 4
test_fraction = 0.3
[graph]
neighbours = 5
[[methods]]
name = "lapmkl"
form = "deformed"
gamma_a = 0.01
gamma_i = 0.1
"""


def pictured(
    *,
    fit: str = "train",
    normalisation: str = '"trace"',
    figures: str = '["decision-boundary"]',
    few_labels: bool = False,
    dataset: str = MOONS,
    kernel_weights: str = "per-class",
) -> SweepSpec:
    text = SUPERVISED.format(
        fit=fit,
        normalisation=normalisation,
        figures=figures,
        dataset=dataset,
        kernel_weights=kernel_weights,
    )
    return SweepSpec.model_validate(tomllib.loads(text + SEMI_SUPERVISED * few_labels))


def write_three_classes(folder: Path) -> None:
    """Write the data set of THREE: three clouds of twenty points."""
    rng = np.random.default_rng(0)
    y = np.repeat(["north", "east", "west"], 20)
    centres = {"north": (0.0, 2.0), "east": (1.5, 0.0), "west": (-1.5, 0.0)}
    x = np.array([centres[name] for name in y]) + 0.6 * rng.standard_normal((60, 2))
    np.savez(folder / "three.npz", x=x, y=y)


def run(spec: SweepSpec, output: Path, scheduler: str, **options: Any) -> SweepOutcome:
    return run_sweep(
        spec,
        origin=output.parent / "sweep.toml",
        output=output,
        connect_options=ConnectOptions(scheduler),
        **options,
    )


def recorded(
    spec: SweepSpec, output: Path
) -> Iterator[tuple[BankPlan, Dataset, tuple[Split, ...], RunRecord]]:
    """Yield every run with what its decision function is made of."""
    plan, resolved = planned(spec, output.parent / "sweep.toml", [], ConnectOptions(n_workers=1))
    banks = {bank.id: bank for bank in plan.banks}
    for one in plan.runs:
        record = Journal(output / "records.journal").read(one.id)
        assert record is not None
        yield banks[one.bank], *resolved.datasets[one.dataset], record


@pytest.mark.parametrize(
    ("fit", "normalisation", "few_labels"),
    [
        pytest.param("train", '"trace"', False, marks=pytest.mark.slow),
        pytest.param("all", '["centre", "variance"]', False, marks=pytest.mark.slow),
        pytest.param("all", '["cosine", "trace"]', True, marks=pytest.mark.slow),
        ("train", '["centre", "trace"]', True),
    ],
)
def test_the_function_is_the_one_that_was_scored(
    fit, normalisation, few_labels, tmp_path, scheduler
):
    spec = pictured(fit=fit, normalisation=normalisation, few_labels=few_labels)
    outcome = run(spec, tmp_path / "out", scheduler)
    assert not outcome.failed
    runs = list(recorded(spec, outcome.path))
    assert {record.method for *_, record in runs} >= {"level", "majority"}
    for bank, dataset, splits, record in runs:
        function = decision_function(bank, dataset, splits, record)
        assert len(record.test_rows) >= 30
        values = function(dataset.x[record.test_rows])[0]
        np.testing.assert_allclose(values, record.decision_values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "kernel_weights", [pytest.param("per-class", marks=pytest.mark.slow), "shared"]
)
def test_several_classes_have_a_function_each(kernel_weights, tmp_path, scheduler):
    write_three_classes(tmp_path)
    spec = pictured(dataset=THREE, kernel_weights=kernel_weights, few_labels=True)
    outcome = run(spec, tmp_path / "out", scheduler)
    assert not outcome.failed
    assert sorted(path.name for path in outcome.figures) == [
        "three-lapmkl",
        "three-level",
        "three-majority",
    ]
    for bank, dataset, splits, record in recorded(spec, outcome.path):
        values = decision_function(bank, dataset, splits, record)(dataset.x[record.test_rows])
        assert values.shape == (3, len(record.test_rows))
        np.testing.assert_allclose(values, record.decision_values, rtol=1e-9, atol=1e-12)
        assert boundary(bank, dataset, splits, record).values.shape == (3, GRID, GRID)


def test_the_grid_lies_around_all_points(tmp_path, scheduler):
    spec = pictured(few_labels=True)
    outcome = run(spec, tmp_path / "out", scheduler)
    for bank, dataset, splits, record in recorded(spec, outcome.path):
        shown = boundary(bank, dataset, splits, record)
        assert shown.values.shape == (1, GRID, GRID)
        for side, axis in zip(dataset.x.T, shown.axes, strict=True):
            assert axis[0] < side.min() < side.max() < axis[-1]
        function = decision_function(bank, dataset, splits, record)
        corner = np.array([[shown.axes[0][-1], shown.axes[1][0]]])
        assert function(corner)[0, 0] == pytest.approx(shown.values[0, 0, -1])
        rows = np.concatenate(list(shown.roles.values()))
        assert sorted(rows.tolist()) == list(range(60))
        assert set(shown.roles) == {"labelled", "unlabelled", "test"}


NAMES = ["two_moons-level", "two_moons-majority"]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pictures that are drawn from now on."""
    names: list[str] = []
    keep = boundaries.keep_figure

    def noting(folder, name, content, draw):
        if keep(folder, name, content, draw):
            names.append(name)
            return True
        return False

    monkeypatch.setattr(boundaries, "keep_figure", noting)
    return names


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_pictures_are_drawn_once(tmp_path, scheduler, drawn):
    spec, figures = pictured(), tmp_path / "out" / "figures"
    outcome = run(spec, tmp_path / "out", scheduler)
    assert drawn == NAMES
    assert [path.name for path in outcome.figures] == NAMES
    assert files(figures) == sorted(f"{name}{kind}" for name in NAMES for kind in (".png", ".svg"))
    for name in NAMES:
        with Image.open(figures / f"{name}.png") as picture:
            picture.verify()
        text = " ".join(ET.parse(figures / f"{name}.svg").getroot().itertext())
        assert "matplotlib" in text.lower()

    run(spec, tmp_path / "out", scheduler)
    assert drawn == NAMES
    before = {name: (figures / name).read_bytes() for name in files(figures)}
    (figures / "two_moons-level.svg").unlink()
    (figures / "two_moons-majority.png").write_bytes(b"")
    left = temporary_path(figures)
    left = left.with_name(left.name.replace(machine_id(), 12 * "0"))  # of another machine
    left.write_bytes(b"half of a picture")
    os.utime(left, (0, 0))
    outcome = run(spec, tmp_path / "out", scheduler)
    assert (outcome.computed, drawn) == (0, [*NAMES, *NAMES])
    assert {name: (figures / name).read_bytes() for name in files(figures)} == before


def test_the_best_setting_of_the_first_split_is_shown(tmp_path, scheduler):
    spec = pictured()
    outcome = run(spec, tmp_path / "out", scheduler)
    level = [record for *_, record in recorded(spec, outcome.path) if record.key == "level"]
    assert {record.params["C"] for record in level} == {1.0, 100.0}
    best = min(level, key=lambda record: record.scores["test_error"])
    planned = [best] if level[0].scores != level[1].scores else level[:1]
    content = (tmp_path / "out/figures/two_moons-level.svg").read_text()
    identity = boundaries.content_of(
        planned[0], "two_moons: level", boundaries.subtitle_of(planned[0], {"C": [1, 100]})
    )
    assert identity in content


def test_runs_recorded_without_coefficients_are_done_again(tmp_path, scheduler, drawn):
    outcome = run(pictured(figures="[]"), tmp_path / "out", scheduler)
    assert (outcome.computed, outcome.figures, drawn) == (3, (), [])
    outcome = run(pictured(), tmp_path / "out", scheduler)
    assert (outcome.computed, outcome.skipped, drawn) == (3, 0, NAMES)
    outcome = run(pictured(), tmp_path / "out", scheduler)
    assert (outcome.computed, outcome.skipped, drawn) == (0, 3, NAMES)


def test_failed_runs_have_no_picture(tmp_path, scheduler, drawn, monkeypatch):
    spec = pictured()
    outcome = run(spec, tmp_path / "out", scheduler)
    store = Journal(outcome.path / "records.journal")
    (_, _, _, majority) = next(r for r in recorded(spec, outcome.path) if r[3].key == "majority")
    store.append(
        [type(majority)(**{**vars(majority), "state": RunState.FAILED, "error": "broken"})]
    )
    drawn.clear()
    outcome = run(spec, tmp_path / "out", scheduler)
    assert outcome.failed == 1
    assert [path.name for path in outcome.figures] == NAMES[:1]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"name": "wdbc"}, "30 dense features"),
        ({"name": "friedman1", "options": {"n": 40}}, "regression"),
    ],
)
def test_other_data_are_refused_before_anything_is_done(change, found, tmp_path, scheduler):
    dataset = DatasetSpec(**change)
    method = MethodSpec(name="spicymkl", loss="squared")
    spec = pictured().model_copy(update={"datasets": (dataset,), "methods": (method,)})
    with pytest.raises(SpecError, match=rf"outputs\.figures.*{found}.*two features"):
        run(spec, tmp_path / "out", scheduler)
    assert not (tmp_path / "out").exists()
