"""The cost of every size of a study, against the numbers of its plan."""

from __future__ import annotations

import io
import tomllib

import pytest
from rich.console import Console

import mkldist
from mkldist.from_python.plans import SIZE_HEADINGS, SizeCost, size_table
from tests.run.sweeps import sweep_text

TEXT = sweep_text({"level": [1.0, 10.0], "uniform": [1.0]}, execution="isolated")
STUDY = TEXT.replace("[[banks.kernels]]", 'name = "g"\nn_kernels = [3, 6]\n[[banks.kernels]]')
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
    assert (sizes.seconds >= 6 / 20).all()


def test_the_time_counts_passes_solvers_their_machines_and_the_build(tmp_path):
    work = mkldist.plan(tomllib.loads(STUDY), output=tmp_path / "r")
    row = work.sizes.iloc[0]
    banks = [b for b in work.plan.banks if (b.dataset, b.spec.label) == (row.dataset, row.bank)]
    assert all(bank.stored for bank in banks)
    solver = 0.05 + 50 * banks[0].n_points ** 3 / 3 / 4e9
    built = sum(bank.n_bytes for bank in banks)
    expected = row.bytes / 4e9 + row.runs * solver + built / 4e8
    assert row.seconds == pytest.approx(expected, rel=1e-9)


def test_the_text_shows_sizes_of_studies_alone(tmp_path):
    said = str(mkldist.plan(tomllib.loads(STUDY), output=tmp_path / "r"))
    assert "kernel values" in said
    assert "upper estimate" in said
    assert ", 1 worker\n" in said
    assert "upper estimate" not in str(mkldist.plan(tomllib.loads(TEXT), output=tmp_path / "r"))


def test_names_in_brackets_are_no_markup_of_a_console_of_ones_own():
    console = Console(width=100, file=io.StringIO())
    console.print(size_table(iter([SizeCost("d[red]", "b[/red]", 1, 2, 3, 4.0)])))
    assert "d[red]" in console.file.getvalue()
    assert "b[/red]" in console.file.getvalue()
