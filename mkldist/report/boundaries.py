"""Pictures of a sweep: the decision boundary of every method's best setting on the first split.

Files are drawn again only if their content would differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.view import make_views
from mkldist.core.arrays import Floats, Ints
from mkldist.core.checksums import content_id
from mkldist.core.durable import remove_temporaries, replacing
from mkldist.core.metrics import PARTS
from mkldist.core.wording import pluralize
from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import feature_scale, filled
from mkldist.fit.decision import BankFunctions, Expansion
from mkldist.fit.engine import BankInputs
from mkldist.planning.model import BankPlan, Plan, RunPlan
from mkldist.planning.resolved import Resolved
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mkldist.plot import Boundary


GRID = 240  # points along each side
MARGIN = 0.08  # of the spread of the points, around them
CACHED_BYTES = 2**26


def boundary(
    bank: BankPlan, dataset: Dataset, splits: Sequence[Split], record: RunRecord
) -> Boundary:
    """Evaluate a run's decision function around the points of its data set.

    Kernels are computed from the features again, so the bank need not be stored.
    """
    if dataset.x is None or dataset.classes is None:
        raise ValueError(f"{dataset.name}: a boundary needs features and classes")
    from mkldist.plot import Boundary

    split = splits[record.split]
    points = filled(bank.preprocessing, dataset, split)
    axes = _axes(points)
    grid = np.column_stack([side.ravel() for side in np.meshgrid(*axes)])
    function = decision_function(bank, dataset, splits, record)
    first, second = dataset.feature_names
    return Boundary(
        feature_names=(first, second),
        class_names=dataset.classes,
        points=np.asarray(points),
        numbers=dataset.class_numbers,
        roles=_roles(split),
        axes=axes,
        values=function(grid).reshape(-1, len(axes[1]), len(axes[0])),
    )


def decision_function(
    bank: BankPlan, dataset: Dataset, splits: Sequence[Split], record: RunRecord
) -> Callable[[Floats], Floats]:
    """Return the decision function of a run; parameters as for :func:`boundary`.

    Takes points (r, 2) in the units of the data, and returns (k, r) values, or (1, r) for two
    classes.
    """
    inputs = BankInputs.of(bank.spec, bank.preprocessing, dataset, splits, bank.split, bank.seed)
    if inputs.points is None or inputs.kernels is None or inputs.kernels.of_features is None:
        raise ValueError(f"{dataset.name}: a boundary needs kernels of features")
    kernels, learnt = inputs.kernels.of_features, inputs.points[record.train_rows]
    recomputed = RecomputedBank(inputs.source(), CACHED_BYTES)
    try:
        (view,) = make_views(
            recomputed, [inputs.bank_points(record.train_rows)], inputs.view_normalisations
        )
        functions = [
            Expansion.of(kernels, inputs.cosine, learnt, BankFunctions.of(view, *terms))
            for terms in _terms(record)
        ]
    finally:
        recomputed.close()
    split = None if bank.split is None else splits[bank.split]
    points = filled(bank.preprocessing, dataset, split)
    scale = feature_scale(bank.preprocessing, np.asarray(points), split)

    def values(x: Floats) -> Floats:
        return np.concatenate([one.values(scale.scaled(x)).T for one in functions])

    return values


def _terms(record: RunRecord) -> list[tuple[Floats, Floats, float]]:
    """Return kernel weights, coefficients and bias, of each class if there are more than two."""
    own, weights = record.kernel_coefficients, record.kernel_weights
    if "class_bias" not in record.of_classes:
        return [(weights, own if own.size else record.coefficients, record.bias)]
    biases = record.of_classes["class_bias"].tolist()
    weights = np.broadcast_to(weights, (len(biases), record.n_kernels))
    ends = np.cumsum(np.count_nonzero(weights, axis=1))[:-1]
    coefficients = np.split(own, ends) if own.size else record.coefficients
    return list(zip(weights, coefficients, biases, strict=True))


def _axes(x: Floats) -> tuple[Floats, Floats]:
    """Return the axes of a grid that covers all points and a margin around them."""
    low, high = x.min(axis=0), x.max(axis=0)
    room = MARGIN * (high - low)
    first, second = np.linspace(low - room, high + room, GRID).T
    return first, second


def _roles(split: Split) -> dict[str, Ints]:
    """Return the points of a split by their role."""
    known = "labelled" if len(split.unlabelled) else "training"
    roles = {known: split.train, "unlabelled": split.unlabelled, "test": split.test}
    return {name: rows for name, rows in roles.items() if len(rows)}


WIDTH = 3.4  # inches, a column of a paper
BESIDE, BESIDES = 0.65, 1.25  # inches beside and above the plane, for labels and legend
LINE_HEIGHT = 0.15  # inches
FLATTEST, TALLEST = 0.4, 1.6  # ratio of the plane's sides
LONG_NAME = 8  # letters of a class name that needs a wider column in the legend
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}


def draw_boundary(shown: Boundary, title: str, subtitle: str) -> Figure:
    """Return the picture of a decision boundary."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    import mkldist.plot as plot
    from mkldist.report.charts import taken_legends

    with mpl.rc_context(STYLE):
        figure = Figure(layout="constrained")
        ax = plot.boundary(shown, figure.add_subplot())
        handles = taken_legends(figure)
        n_columns = 3 if max(map(len, shown.class_names)) < LONG_NAME else 2
        n_lines = subtitle.count("\n") + max(0, -(-len(handles) // n_columns) - 2)
        height = BESIDES + LINE_HEIGHT * n_lines + (WIDTH - BESIDE) * _ratio(shown)
        figure.set_size_inches(WIDTH, height)
        figure.suptitle(title, fontsize=9, fontweight="bold")
        ax.set_title(subtitle, fontsize=7.5, color=plot.GREY)
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=n_columns,
            fontsize=7,
            frameon=False,
            handletextpad=0.4,
            columnspacing=1.0,
        )
    return figure


def _ratio(shown: Boundary) -> float:
    """Return the height of the plane over its width."""
    if not shown.to_scale:
        return 0.85
    width, height = (float(axis[-1] - axis[0]) for axis in shown.axes)
    return min(max(height / width, FLATTEST), TALLEST)


# Metadata field of each kind of file that holds the content id.
CARRIERS = {".png": "Source", ".svg": "Identifier"}
DOTS_PER_INCH = 220
VERSION = 1  # of the style of pictures
FIRST_SPLIT = 0
LINE_LETTERS = 46  # letters below a title


def keep_figure(folder: Path, name: str, content: str, draw: Callable[[], Figure]) -> bool:
    """Draw a picture and write it as ``NAME.png`` and ``NAME.svg``, unless both exist.

    The content id of the picture is written into the files.  True if the picture was drawn.
    """
    import matplotlib as mpl

    paths = [folder / f"{name}{suffix}" for suffix in CARRIERS]
    if all(path.exists() and content.encode() in path.read_bytes() for path in paths):
        return False
    figure = draw()
    for path in paths:
        metadata: dict[str, str | None] = {CARRIERS[path.suffix]: content}
        if path.suffix == ".svg":
            metadata["Date"] = None
        with replacing(path) as temporary, mpl.rc_context({"svg.hashsalt": content}):
            figure.savefig(temporary, format=path.suffix[1:], dpi=DOTS_PER_INCH, metadata=metadata)
    return True


def content_of(record: RunRecord, title: str, subtitle: str) -> str:
    """Return the content id of the picture of a run."""
    return content_id(version=VERSION, run=record.id, title=title, subtitle=subtitle)


def draw_figures(plan: Plan, resolved: Resolved, store: Journal, folder: Path) -> tuple[Path, ...]:
    """Draw the pictures that a sweep requests and whose runs are complete.

    There is one for every data set, bank and method, of its best setting on the first split.  An
    existing picture with the same content is not drawn again.  Paths are without their suffixes.
    """
    if not plan.spec.outputs.figures:
        return ()
    remove_temporaries(folder)
    banks = {(bank.id, bank.spec.label, bank.dataset): bank for bank in plan.banks}
    several_banks = len(plan.spec.sized_banks) > 1
    places: dict[tuple[str, str, str], list[RunPlan]] = {}
    for run in plan.runs:
        if run.split == FIRST_SPLIT:
            places.setdefault((run.dataset, run.bank_label, run.key), []).append(run)
    metric, paths = plan.spec.metric_of("classification"), []
    for (dataset, label, key), runs in places.items():
        complete = [
            (run, record)
            for run in runs
            if (record := store.read(run.id)) is not None and record.state is RunState.COMPLETE
        ]
        if not complete:
            continue
        scores = complete[0][1].scores
        score = next(name for name in map(metric.variable, PARTS) if name in scores)
        run, best = min(complete, key=lambda pair: metric.loss(pair[1].scores[score]))
        grid = resolved.grids[dataset][key]
        title = f"{dataset}: {key}" + f", {label}" * several_banks
        subtitle = subtitle_of(best, grid.run_parameters or grid.dims)
        name = "-".join([dataset, *[label] * several_banks, key])
        bank, (points, splits) = banks[run.bank, label, dataset], resolved.datasets[dataset]

        def draw(
            bank: BankPlan = bank,
            points: Dataset = points,
            splits: Any = splits,
            best: RunRecord = best,
            words: tuple[str, str] = (title, subtitle),
        ) -> Figure:
            return draw_boundary(boundary(bank, points, splits, best), *words)

        keep_figure(folder, name, content_of(best, title, subtitle), draw)
        paths.append(folder / name)
    return tuple(paths)


def undrawable_runs(plan: Plan, store: Journal) -> list[str]:
    """Return complete runs that a picture may need but whose coefficients were not kept."""
    if not plan.spec.outputs.figures:
        return []
    wanted = (store.read(run.id) for run in plan.runs if run.split == FIRST_SPLIT)
    return [
        record.id
        for record in wanted
        if record is not None and record.state is RunState.COMPLETE and not record.train_rows.size
    ]


def subtitle_of(record: RunRecord, dims: Iterable[str]) -> str:
    """Return a run's error and number of kernels, and below them its hyperparameters.

    Lines break between phrases alone.
    """
    values = {name: record.params.get(name) for name in dims}
    settings = [f"{name} = {f'{value:.6g}' if isinstance(value, float) else value}"
                for name, value in values.items()]  # fmt: skip
    words = [f"{part} error {100 * record.scores[name]:.3g} %"
             for part in ("test", "unlabelled")
             if (name := f"{part}_error") in record.scores]  # fmt: skip
    words.append(pluralize(record.n_active, "kernel"))
    lines = [
        wrap(", ".join(phrase.replace(" ", "\xa0") for phrase in phrases), LINE_LETTERS)
        for phrases in (words, settings)
    ]
    return "\n".join(line for some in lines for line in some).replace("\xa0", " ")
