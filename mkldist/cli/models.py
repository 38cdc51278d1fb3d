"""``mkldist fit``: from the results of a sweep to a model."""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.options import (
    PATH,
    allow_code_option,
    complete_results,
    files_of,
    json_option,
    note_basis,
    overwrite_option,
    part_options,
    print_json,
    results_argument,
)
from mkldist.core.durable import check_apart, check_free
from mkldist.core.terminal import command_line, standard_output
from mkldist.core.wording import pluralize, truncate
from mkldist.errors import InputError

if TYPE_CHECKING:
    from mkldist.analysis.explanation import Explanation
    from mkldist.fit.model import Model
    from mkldist.fit.predictions import Score
    from mkldist.fit.select import Choice


SHOWN = 10
TOLD_EVERY = 10.0  # seconds
RATED = 3  # fits, after which the time of the others is known


@click.command("fit")
@results_argument()
@part_options
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of a parameter, e.g. C=10; may be repeated.  [default: the best]",
)
@click.option(
    "--split",
    type=click.IntRange(min=0),
    help="Fit on the training part of this split, to check predictions.  [default: all rows]",
)
@click.option(
    "--calibrate",
    is_flag=False,
    flag_value="sigmoid",
    type=click.Choice(["sigmoid", "isotonic"]),
    help="Learn probabilities and the threshold of predictions from fits without each of 5 folds.  "
    "[default: sigmoid, if no kind is named]",
)
@click.option(
    "-o", "--output", "target", type=PATH, help="File of the model.  [default: NAME.model here]"
)
@overwrite_option
@allow_code_option
def fit_command(
    results: Path,
    settings: tuple[str, ...],
    split: int | None,
    calibrate: str | None,
    target: Path | None,
    overwrite: bool,
    allow_code: bool,
    **part: Any,
) -> None:
    """Fit the best setting of the sweep of RESULTS on all rows, and write the model to a file.

    RESULTS is the folder of its results, its file or its name.  Cross-validation chooses the
    setting where the sweep has inner folds, else the mean on the test parts, both by the sweep's
    metric.
    """
    from mkldist.analysis.losses import constant_words
    from mkldist.fit.select import calibrated, choose, prepared_fit, refit
    from mkldist.results.folder import inputs_of

    wanted = dict(_setting(text) for text in settings)
    file = target or Path(f"{results.resolve().name}.model")
    check_free(file, overwrite=overwrite, inputs=inputs_of(results), is_model=True)
    choice = choose(results, settings=wanted, **part)
    prepared = prepared_fit(results, choice, allow_code=allow_code)
    note_basis(results)
    for line in _no_better(choice):
        click.echo(line)
    click.echo(f"setting:  {choice.words} on {choice.dataset}, kernels of {choice.bank}")
    click.echo(f"chosen:   {_chosen(choice)}")
    if choice.standing is not None:
        found = ", ".join(one.score for one in (choice.standing, *choice.beside))
        click.echo(f"tested:   {found}, {choice.standing.over}; 95 % intervals")
        if not math.isnan(choice.standing.constant):
            words = constant_words(choice.standing.metric, choice.standing.constant)
            click.echo(f"beside:   {words}")
    if choice.note:
        click.echo(f"note:     {choice.note}")
    model = refit(results, choice, split, prepared)
    if calibrate is not None:
        model = calibrated(model, prepared, calibrate, split)
    model.save(file)
    for line in _model_lines(model, file):
        click.echo(line)


def _setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of ``NAME=VALUE``; a value that is not TOML is a text."""
    from mkldist.spec.kinds import TooLongError, parsed_toml

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--set {text}", "no name and value", "NAME=VALUE, such as C=10")
    try:
        return name.strip(), parsed_toml(f"value = {value}")["value"]
    except TooLongError as error:
        raise InputError(f"--set {name.strip()}", error.found, error.expected) from None
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def _no_better(choice: Choice) -> list[str]:
    """Return lines on a setting that is no better than a constant prediction, and what to try."""
    from mkldist.analysis.losses import TO_TRY

    if choice.standing is None or not choice.standing.no_better:
        return []
    first = f"warning:  do not rely on this model: it is {choice.standing.words}."
    return [first, *(f"          {line}" for line in TO_TRY[choice.standing.metric.task])]


def _chosen(choice: Choice) -> str:
    """Return how a setting was chosen, and what to think of it."""
    said = choice.said
    if " on the " in said:
        said += "; new rows may have a larger error than the parts that chose it"
    return said


def _model_lines(model: Model, file: Path) -> list[str]:
    """Return lines about a model that was written."""
    from mkldist.core.memory import readable_bytes

    facts, classes = model.facts, model.labels.classes
    options = "".join(f"--view {quote(name)}=FILE " for name in model.needed_views)
    options += "--allow-code " * model.runs_code
    rows = f"{facts['rows']} rows, {pluralize(len(model.feature_names), 'feature')}"
    if model.texts:
        rows += f", {pluralize(len(model.texts), 'column')} of texts"
    if facts["split"] is not None:
        rows += f", the training part of split {facts['split']}"
    size = readable_bytes(file.stat().st_size)
    apart = " (those of each class counted)" if len(model.functions) > 1 else ""
    kernels = f"active kernels: {_n_active(model)}, support vectors: {model.n_support}{apart}"
    bounds = f"objective {facts['objective']:.6g}, at least {facts['dual_objective']:.6g}"
    left = next(f"{n} {facts[n]:.1e}" for n in ("gap", "stationarity") if n in facts)
    return [
        *([] if classes is None else [f"classes:  {_classes(classes.tolist())}"]),
        f"fitted:   {rows}; {kernels}",
        f"proven:   {bounds}, {left} ({facts['stop_reason']})",
        *_calibration_lines(model),
        f"model:    {file}, {size}",
        f"predict:  {command_line('predict', file)} DATA {options}-o predictions.csv",
    ]


def _calibration_lines(model: Model) -> list[str]:
    """Return lines about the probabilities and the threshold of a calibrated model."""
    from mkldist.core.metrics import METRICS

    calibration, classes = model.calibration, model.labels.classes
    if calibration is None or classes is None:
        return []
    figures = model.facts["calibration"]
    metric = METRICS[figures["metric"]]
    shares = f"{figures['log_loss_of_shares']:.3f} and {figures['brier_of_shares']:.3f}"
    lines = [
        f"proba:    {figures['method']} of {figures['folds']} held-out folds: log loss "
        f"{figures['log_loss']:.3f}, Brier score {figures['brier']:.3f} ({shares} by the shares of "
        "the classes alone)"
    ]
    if figures["log_loss"] > figures["log_loss_of_shares"]:
        hint = "; a sigmoid needs fewer rows" if figures["method"] == "isotonic" else ""
        lines.append(f"          these tell no more than the shares of the classes{hint}")
    if len(classes) == 2:
        rule = f"{classes[1]} from a decision value of {calibration.threshold:.4g} on"
        if math.isfinite(calibration.threshold):
            rule += f", a probability of {calibration.probability_at_threshold:.3g}"
    elif not calibration.class_weights:
        rule = "the greatest decision value"
    elif len(set(calibration.class_weights)) > 1:
        rule = "the greatest probability, divided by the share of the class"
    else:
        rule = "the greatest probability"
    found, plain = metric.text(figures["calibrated"]), metric.text(figures["at_0"])
    without = "at 0" if len(classes) == 2 else "by decision values"
    return [*lines, f"predicts: {rule}; {metric.words} {found} on these folds, {plain} {without}"]


def _n_active(model: Model) -> int:
    """Return the number of kernels that are active for one class at least, as tables count them."""
    from mkldist.solvers.progress import is_active

    pairs = zip(model.functions, model.weights, strict=True)
    return len({i for one, weights in pairs for i in one.index[is_active(weights)]})


def _classes(classes: Sequence[object]) -> str:
    """Return the classes in words; of two, which one positive decision values predict."""
    if len(classes) == 2:
        return f"{classes[0]} is -1, {classes[1]} is +1"
    return truncate([str(name) for name in classes], SHOWN)


@click.command("predict")
@click.argument("model", type=PATH)
@click.argument("data", type=PATH)
@click.option(
    "-o", "--output", "target", type=PATH, help="CSV file to write; only --score does without it."
)
@click.option(
    "--explain",
    is_flag=False,
    flag_value="auto",
    type=click.Choice(["auto", "views", "features", "kernels"]),
    help="Add what each view, each set of features or each kernel contributes to the decision "
    "values.  [default: views if the model has some, else features]",
)
@click.option("--score", is_flag=True, help="Compare the predictions with the labels of DATA.")
@click.option(
    "--view",
    "views",
    multiple=True,
    metavar="NAME=FILE",
    help="File of a view that stands beside DATA, e.g. expression=new.csv; may be repeated.",
)
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="COLUMN",
    help="Column of DATA, or VIEW.COLUMN, that the model does not know, to be left out; may be "
    "repeated.",
)
@click.option(
    "--threads",
    "n_threads",
    type=click.IntRange(min=1),
    help="Threads that predict.  [default: one per processor]",
)
@overwrite_option
@allow_code_option
@json_option("file", "rows", "predicted", "score", "notes")
def predict_command(
    model: Path,
    data: Path,
    target: Path | None,
    explain: str | None,
    score: bool,
    views: tuple[str, ...],
    ignored: tuple[str, ...],
    n_threads: int | None,
    overwrite: bool,
    allow_code: bool,
    as_json: bool,
) -> None:
    """Predict the rows of DATA by the file MODEL, and write a CSV file.

    DATA is a file of any format that a sweep reads, such as .csv or .npz, with the columns that the
    model was fitted on, in any order; a label column may be there and is not used, unless --score
    asks for it.  Tables of any length take little memory.  The output has a row for each row of
    DATA: the name of the row if the sweep set id, the prediction, and for classes the decision
    values, and the probabilities if the model is calibrated.

    A model of views from several files needs each of these by --view, joined to DATA by the column
    of ids.  A view of Gram matrices is a .npz or .mat file of kernel values between the rows of
    DATA and those of the model (grams, ids, points).
    """
    from mkldist.analysis.losses import standing_in
    from mkldist.fit.model import load_model
    from mkldist.fit.new_rows import unseen_lines
    from mkldist.fit.predictions import write_predictions

    if target is None and (explain or not score):
        raise InputError("mkldist predict", "no -o", "-o FILE.csv for the predictions, or --score")
    fitted = load_model(model, allow_code=allow_code)
    standing = standing_in(fitted.facts)
    if standing is not None and standing.no_better:
        click.echo(f"warning: this model is {standing.words}", err=True)
    if explain == "auto":
        explain = "views" if fitted.views or fitted.source_views else "features"
    done = write_predictions(
        fitted, data, target, views=files_of(views), ignored=ignored, overwrite=overwrite,
        n_threads=n_threads, explained_by=explain, scored=score, inputs=[model],
    )  # fmt: skip
    notes = [*unseen_lines(done.unseen), *done.notes]
    if explain and all(len({*own}) < 2 for _, own in fitted.parts(explain).functions):
        notes.append(
            f"all active kernels are one part by {explain}, so that no contribution is told from "
            "another: kernels of single features, groups or views have parts of their own"
        )
    if as_json:
        document = {"file": target, "rows": done.n_rows, "predicted": done.counts}
        print_json({**document, "score": done.score, "notes": notes})
        return
    classes = fitted.labels.classes
    names = [] if classes is None else classes.tolist()
    counts = "".join(f", {name}: {done.counts[name]}" for name in names)
    click.echo(f"{target or data}: {done.n_rows} rows{counts}")
    for line in [] if done.score is None else _score_lines(done.score):
        click.echo(line)
    for line in notes:
        click.echo(f"note: {line}", err=True)


def _score_lines(score: Score) -> list[str]:
    """Return the table of a score, and that of the numbers of rows by class and prediction."""
    from mkldist.core.metrics import METRICS

    table: list[tuple[str, ...]] = [("", "model", "constant answer")]
    for name, value in score.values.items():
        pair = [
            "-" if math.isnan(one) else METRICS[name].text(one)
            for one in (value, score.of_constant[name])
        ]
        table.append((METRICS[name].words, *pair))
    lines = _aligned(table)
    if score.confusion:
        names = list(score.confusion)
        counts = [(name, *map(str, row.values())) for name, row in score.confusion.items()]
        lines += ["", *_aligned([("label, predicted:", *names), *counts])]
    return lines


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return rows whose columns are as wide as their longest text, numbers at the right."""
    first, *others = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], others)]).rstrip() for row in table
    ]


def _told_fits() -> Callable[[int, int], None]:
    """Return what says how many fits on permuted labels are done, and after some how long it takes.

    The first takes longer, for it makes ready what the others use.
    """
    from mkldist.run.progress import duration

    first = told = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal first, told
        now = time.monotonic()
        if done == 1:
            first = now
        if done in (1, RATED) or now - told > TOLD_EVERY:
            left = (total - done) * (now - first) / max(done - 1, 1)
            time_left = f", {duration(left)} left" if done > 1 else ""
            click.echo(f"{done} of {total} fits on permuted labels{time_left}", err=True)
            told = now

    return tell


@click.command("explain")
@click.argument("results", type=PATH, shell_complete=complete_results)
@part_options
@click.option(
    "--permutations",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Fits on permuted labels of each split, for p-values; each takes as long as a run.",
)
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw one data set to this file: .pdf, .svg or .png.",
)
@overwrite_option
@json_option("explanations", "words", "figure")
def explain_command(
    results: Path,
    permutations: int,
    figure: Path | None,
    overwrite: bool,
    as_json: bool,
    **part: Any,
) -> None:
    """Say which views, groups and features carry the decision, how surely, and what is lost.

    RESULTS is the folder of a sweep's results, its file or its name.  One table has the share of
    the decision, the share of the weights, the loss when left out and how often it is active, each
    with its interval over the splits.
    """
    from mkldist.fit.explain import explain
    from mkldist.report.sentences import explanation_sentences
    from mkldist.results.folder import results_of

    if figure is not None:
        from mkldist.report.charts import check_figure, write_explanation
        from mkldist.results.folder import inputs_of

        check_figure(figure, overwrite=overwrite)
        check_apart(figure, inputs_of(results_of(results)))
    results = results_of(results)
    found = explain(results, permutations=permutations, progress=_told_fits(), **part)
    note_basis(results)
    if figure is not None:
        if len(found) > 1:
            names = ", ".join(one.dataset for one in found)
            raise InputError(
                f"--figure {figure}",
                f"{len(found)} data sets: {names}",
                "one, for a figure is of one data set",
                f"Choose it: --dataset {found[0].dataset}",
            )
        write_explanation(found[0], figure)
    if as_json:
        words = {one.dataset: explanation_sentences(one) for one in found}
        print_json({"explanations": found, "words": words, "figure": figure})
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        print_explanation(one)
    if figure is not None:
        click.echo(f"figure:  {figure}")


def print_explanation(explanation: Explanation) -> None:
    """Print the table, what its columns are, and the sentences."""
    from rich.text import Text

    from mkldist.report.sentences import captions, explanation_sentences, warnings
    from mkldist.report.tables import explanation_table

    console = standard_output()
    console.print(Text(f"{explanation.dataset}: {explanation.method}", "bold"), highlight=False)
    for sentence in warnings(explanation):
        console.print(sentence, highlight=False)
    console.print()
    console.print(explanation_table([explanation]).for_terminal())
    for words in captions(explanation):
        console.print(Text(words, "dim"), highlight=False)
    console.print()
    for sentence in explanation_sentences(explanation)[len(warnings(explanation)) :]:
        console.print(sentence, highlight=False)
