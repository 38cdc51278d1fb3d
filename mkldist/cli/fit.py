"""``mkldist fit``: from the results of a sweep to a model."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.left_out import tell_left_out
from mkldist.core.consoles import command_line

if TYPE_CHECKING:
    from mkldist.fit.model import Model
    from mkldist.fit.select import Choice


SHOWN = 10


@click.command("fit")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option("--dataset", help="Data set, where the sweep has several.")
@click.option("--bank", help="Bank of kernels.  [default: any]")
@click.option("--method", help="Method, by its name in the results.  [default: any]")
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
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    help="File of the model.  [default: NAME.model here]",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--allow-code",
    is_flag=True,
    help="Import and call kernel functions of the sweep that are not mkldist's own.",
)
def command(
    path: Path,
    dataset: str | None,
    bank: str | None,
    method: str | None,
    settings: tuple[str, ...],
    split: int | None,
    calibrate: str | None,
    target: Path | None,
    overwrite: bool,
    allow_code: bool,
) -> None:
    """Fit the best setting of the sweep PATH on all rows, and write the model to a file.

    PATH is the folder of its results, its file or its name.  Cross-validation chooses the setting
    where the sweep has inner folds, else the mean on the test parts, both by the sweep's metric.
    """
    from mkldist.analysis.losses import constant_words
    from mkldist.core.durable import check_free
    from mkldist.fit.select import calibrated, choose, prepared_fit, refit
    from mkldist.run.paths import results_of

    wanted = dict(_setting(text) for text in settings)
    results = results_of(path)
    file = target or Path(f"{results.resolve().name}.model")
    check_free(file, overwrite=overwrite)
    choice = choose(results, dataset, bank, method, wanted)
    prepared = prepared_fit(results, choice, allow_code=allow_code)
    tell_left_out(results)
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
    for line in _lines(model, file):
        click.echo(line)


def _setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of ``NAME=VALUE``; a value that is not TOML is a text."""
    from mkldist.errors import InputError
    from mkldist.spec.toml_texts import TooLongError, parsed_toml

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
    return [first, *(f"          {line}" for line in TO_TRY)]


def _chosen(choice: Choice) -> str:
    """Return how a setting was chosen, and what to think of it."""
    said = choice.said
    if " on the " in said:
        said += "; new rows may have a larger error than the parts that chose it"
    return said


def _lines(model: Model, file: Path) -> list[str]:
    """Return lines about a model that was written."""
    from mkldist.core.memory import readable_bytes
    from mkldist.core.wording import pluralize

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
    from mkldist.core.wording import truncate

    if len(classes) == 2:
        return f"{classes[0]} is -1, {classes[1]} is +1"
    return truncate([str(name) for name in classes], SHOWN)
