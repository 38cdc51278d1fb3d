"""Pictures of a sweep: for every method its best recorded setting on the first split."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from mkldist.durable import remove_temporaries
from mkldist.figures.files import keep_figure
from mkldist.identity import content_id
from mkldist.metrics import PARTS
from mkldist.planning.model import BankPlan, Plan, RunPlan
from mkldist.resolve.resolved import Resolved
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.state import RunState

VERSION = 1  # of the style of pictures
FIRST_SPLIT = 0
LINE = 46  # letters below a title
SHOWN = {"test_error": "test error", "unlabelled_error": "unlabelled error"}


@dataclass(frozen=True, eq=False)
class FigurePlan:
    """One picture.

    Parameters
    ----------
    name : str
        Name of its files.
    bank : BankPlan
        Bank of its run.
    record : RunRecord
        Record of the run.
    title, subtitle : str
        Text above the picture.
    """

    name: str
    bank: BankPlan
    record: RunRecord
    title: str
    subtitle: str

    @property
    def content(self) -> str:
        """Content id of the picture."""
        return content_id(
            version=VERSION, run=self.record.id, title=self.title, subtitle=self.subtitle
        )


def draw_figures(
    plan: Plan, resolved: Resolved, store: RecordStore, folder: Path
) -> tuple[Path, ...]:
    """Draw the pictures that a sweep requests and whose runs are complete.

    An existing picture with the same content is not drawn again.

    Parameters
    ----------
    plan : Plan
        The plan.
    resolved : Resolved
        Data of the sweep.
    store : RecordStore
        Records of the sweep.
    folder : Path
        Folder of the pictures.

    Returns
    -------
    tuple of Path
        Paths of the pictures, without their suffixes.
    """
    if not plan.spec.outputs.figures:
        return ()
    remove_temporaries(folder)
    paths = []
    for figure in _figures(plan, resolved, store):
        dataset, splits = resolved.datasets[figure.record.dataset]

        def draw(figure: FigurePlan = figure, dataset: Any = dataset, splits: Any = splits) -> Any:
            from mkldist.figures.boundary import boundary
            from mkldist.figures.drawing import draw_boundary

            shown = boundary(figure.bank, dataset, splits, figure.record)
            return draw_boundary(shown, figure.title, figure.subtitle)

        keep_figure(folder, figure.name, figure.content, draw)
        paths.append(folder / figure.name)
    return tuple(paths)


def undrawable_runs(plan: Plan, store: RecordStore) -> list[str]:
    """Return complete runs that a picture may need but whose coefficients were not kept.

    Parameters
    ----------
    plan, store
        As for :func:`draw_figures`.
    """
    if not plan.spec.outputs.figures:
        return []
    wanted = (run.id for run in plan.runs if run.split == FIRST_SPLIT)
    records = (store.read(run_id) for run_id in wanted)
    return [
        record.id
        for record in records
        if record is not None and record.state is RunState.COMPLETE and not record.train_rows.size
    ]


def _figures(plan: Plan, resolved: Resolved, store: RecordStore) -> Iterator[FigurePlan]:
    """Yield a picture for every data set, bank and method with a complete run."""
    banks = {(bank.id, bank.spec.label, bank.dataset): bank for bank in plan.banks}
    several_banks = len(plan.spec.sized_banks) > 1
    for runs in _settings(plan):
        records = [record for run in runs if (record := store.read(run.id)) is not None]
        complete = [record for record in records if record.state is RunState.COMPLETE]
        if not complete:
            continue
        metric = plan.spec.metric_of("classification")
        names = map(metric.variable, PARTS)
        score = next(name for name in names if name in complete[0].scores)
        best = min(complete, key=lambda record: metric.loss(record.scores[score]))
        run = next(run for run in runs if run.id == best.id)
        on = f", {run.bank_label}" if several_banks else ""
        yield FigurePlan(
            name="-".join(_words(run, several_banks=several_banks)),
            bank=banks[run.bank, run.bank_label, run.dataset],
            record=best,
            title=f"{run.dataset}: {run.key}{on}",
            subtitle=_subtitle(best, _varied(resolved, run)),
        )


def _varied(resolved: Resolved, run: RunPlan) -> Collection[str]:
    """Return the names of the parameters in which the runs beside a run differ."""
    grid = resolved.grids[run.dataset][run.key]
    return grid.run_parameters or grid.dims


def _settings(plan: Plan) -> list[list[RunPlan]]:
    """Return the runs of the first split, grouped by data set, bank and method."""
    places: dict[tuple[str, str, str], list[RunPlan]] = {}
    for run in plan.runs:
        if run.split == FIRST_SPLIT:
            places.setdefault((run.dataset, run.bank_label, run.key), []).append(run)
    return list(places.values())


def _words(run: RunPlan, *, several_banks: bool) -> list[str]:
    bank = [run.bank_label] if several_banks else []
    return [run.dataset, *bank, run.key]


def _subtitle(record: RunRecord, dims: Iterable[str]) -> str:
    """Return a run's error and number of kernels, and below them its hyperparameters."""
    settings = [f"{name} = {_short(record.params.get(name))}" for name in dims]
    n_active = record.n_active
    kernels = f"{n_active} kernel{'s' * (n_active != 1)}"
    errors = [
        f"{words} {100 * record.scores[score]:.3g} %"
        for score, words in SHOWN.items()
        if score in record.scores
    ]
    return "\n".join(line for words in ([*errors, kernels], settings) for line in _lines(words))


def _lines(phrases: Sequence[str]) -> list[str]:
    """Return phrases set on lines, which break only between phrases."""
    kept_together = ", ".join(phrase.replace(" ", "\xa0") for phrase in phrases)
    return [line.replace("\xa0", " ") for line in wrap(kept_together, LINE)]


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
