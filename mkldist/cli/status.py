"""``mkldist status``: the progress of a sweep, also while it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.core.consoles import command_line, standard_output
from mkldist.core.wording import pluralize, truncate
from mkldist.errors import StoreError
from mkldist.results.folder import rewritten_files
from mkldist.results.schema import RunState
from mkldist.results.status import others_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mkldist.results.status import SweepStatus

MOST_LINES, MOST_VALUES = 12, 8  # on what is being done


@click.command("status")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option("--watch", is_flag=True, help="Show the progress anew until the sweep ends.")
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    help="Seconds between two looks of --watch.",
)
@json_option(
    "name", "path", "activity", "n_runs", "most_runs", "counts", "nodes", "at_work", "failed",
    "others", "damaged_records", "summary",
)  # fmt: skip
def command(path: Path, watch: bool, every: float, as_json: bool) -> None:
    """Print the progress, summary so far and errors of the sweep PATH.

    PATH is the folder of its results, its file or its name.
    While the sweep is at work, it names the runs that are being done.  A run counts as waiting
    until its outcome is recorded.  With --watch a terminal shows all this anew until the sweep
    ends; a pipe gets a line for each change; before the sweep starts, it waits for it.  Ctrl-C ends
    the look, and not the sweep.
    """
    from mkldist.errors import InputError
    from mkldist.results.status import sweep_status
    from mkldist.run.paths import results_of

    if watch and as_json:
        raise InputError("--watch", "--json beside it", "one of the two")
    status = _watched(_begun(path, every), every) if watch else sweep_status(results_of(path))
    if as_json:
        print_json(_document(status))
    else:
        _print(status)


def _begun(path: Path, every: float) -> Path:
    """Return the output folder of a sweep, as soon as there is one."""
    from mkldist.results.folder import OutputFolder
    from mkldist.run.paths import results_of

    waits = False
    while True:
        try:
            folder = results_of(path)
        except StoreError:
            if path.is_dir():  # of several sweeps
                raise
        else:
            if os.path.lexists(OutputFolder(folder).manifest):
                return folder
        if not waits:
            click.echo(
                f"no sweep has started in {path} yet; waiting for it, until Ctrl-C", err=True
            )
        waits = True
        time.sleep(every)


def _watched(path: Path, every: float) -> SweepStatus:
    """Show the progress until the sweep ends or the user has seen enough; return the last."""
    from rich.console import Group

    from mkldist.results.status import sweep_status

    status, console, line = sweep_status(path), standard_output(), ""
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        screen = stack.enter_context(console.screen()) if console.is_terminal else None
        while _is_at_work(status):
            if screen is not None:
                screen.update(Group(*_parts(status)))
            elif (now := _line(status)) != line:
                line = now
                click.echo(f"{time.strftime('%H:%M:%S')} {line}")
            time.sleep(every)
            status = sweep_status(path)
    return status


def _is_at_work(status: SweepStatus) -> bool:
    """Return True unless the sweep has ended; of another machine's, unless all runs are done."""
    claim = status.claim
    if claim is None or claim.is_live is False:
        return False
    return bool(claim.is_live or status.counts.get(RunState.WAITING, 0) or status.held is None)


def _line(status: SweepStatus) -> str:
    """Return the progress in a line."""
    done, failed = (status.counts.get(one, 0) for one in (RunState.COMPLETE, RunState.FAILED))
    parts = [f"{status.name}: {done} of {pluralize(status.n_runs, 'run')} complete"]
    parts += [f", {failed} failed"] * bool(failed)
    for doing in dict.fromkeys(one.doing for one in status.at_work):
        parts.append(f"; {doing} {', '.join(o.place for o in status.at_work if o.doing == doing)}")
    return "".join(parts)


def _document(status: SweepStatus) -> dict[str, Any]:
    """Return the status for ``--json``."""
    from mkldist.analysis.summary import recorded_rows

    some = status.counts.get(RunState.COMPLETE, 0)
    return {
        "name": status.name,
        "path": status.path,
        "activity": _activity(status),
        "n_runs": status.n_runs,
        "most_runs": status.most_runs,
        "counts": {state: status.counts.get(state, 0) for state in RunState},
        "nodes": {
            node: {state: counts.get(state, 0) for state in RunState}
            for node, counts in status.by_node.items()
        },
        "at_work": status.at_work,
        "failed": status.failed,
        "others": status.others,
        "damaged_records": status.n_damaged,
        "summary": recorded_rows(status.path, status.held) if some else [],
    }


def _print(status: SweepStatus) -> None:
    """Print the tables and the lines."""
    console = standard_output()
    for part in _parts(status):
        console.print(part, highlight=False, soft_wrap=isinstance(part, str), markup=False)


def _parts(status: SweepStatus) -> Iterator[RenderableType]:
    """Yield the tables and the lines."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("data set and method")
    for state in RunState:
        table.add_column(str(state), justify="right")
    for node, counts in status.by_node.items():
        table.add_row(node, *(str(counts.get(state, 0)) for state in RunState))
    table.add_section()
    table.add_row("all", *(str(status.counts.get(state, 0)) for state in RunState))
    yield from (f"{status.name} in {status.path}", _activity(status), *_at_work(status))
    for words in rewritten_files(status.path):
        yield (
            f"{words}: if its content changed, these runs do not count, and the same sweep command "
            "does new ones; 'mkldist plan' tells"
        )
    yield from ("", table)
    if status.counts.get(RunState.COMPLETE, 0):
        from mkldist.analysis.summary import recorded_table

        yield from ("", recorded_table(status.path, status.held))
    if status.n_damaged:
        records = pluralize(status.n_damaged, "damaged record is", "damaged records are")
        yield (
            f"\n{records} in {status.path}: {command_line('verify', status.path)} tells which; the "
            "same mkldist sweep command does these runs again"
        )
    if status.others:
        yield f"\n{others_words(status.others)}"
    for failure in status.failed:
        settings = "".join(f", {name} = {value}" for name, value in failure.params.items())
        yield f"failed {failure.node}, split {failure.split}{settings}: {failure.error}"


def _activity(status: SweepStatus) -> str:
    """Return a phrase that says if a process is at work on the sweep."""
    claim, lacking = status.claim, _lacking_layout(status)
    if claim is None or claim.is_live is False:
        if lacking:
            return f"stopped; {lacking}; the same mkldist sweep command makes it and resumes"
        waiting = status.counts.get(RunState.WAITING, 0)
        further = max(0, status.most_runs - status.n_runs)
        if not waiting + further:
            return "not at work; every run has an outcome"
        runs = f"{waiting} of {status.n_runs} runs to do"
        if status.most_runs:
            runs = f"at most {waiting + further} of {status.most_runs} runs to do"
        return f"stopped with {runs}; the same mkldist sweep command resumes"
    if claim.is_live:
        return f"at work: {claim}" + f"; {lacking}" * bool(lacking)
    return f"claimed by {claim}; only that machine can tell whether it is still at work"


def _lacking_layout(status: SweepStatus) -> str:
    """Return words on a folder that has no layout of results; nothing of one that has."""
    if status.without_layout is None:
        return ""
    from mkldist.results.layout import LAYOUT

    if not status.without_layout:
        return f"there is no {LAYOUT} yet"
    recorded = pluralize(status.without_layout, "run is", "runs are")
    return f"there is no {LAYOUT}, though {recorded} recorded"


def _at_work(status: SweepStatus) -> Iterator[str]:
    """Yield lines on the runs that are being done and the banks that are being built."""
    for one in status.at_work[:MOST_LINES]:
        since = time.strftime("%H:%M:%S", time.localtime(one.since))
        if not one.n_runs:
            yield f"  {one.place}: {one.doing}, since {since}"
            continue
        settings = "".join(
            f", {name} = {truncate([*map(_short, values)], MOST_VALUES)}"
            for name, values in (one.params or {}).items()
        )
        numbers = truncate([*map(str, one.splits)], MOST_VALUES)
        splits = f"split{'s' * (len(one.splits) > 1)} {numbers}"
        runs = pluralize(one.n_runs, "run")
        yield f"  {one.place}: {runs} {one.doing}, since {since}: {splits}{settings}"
    more = len(status.at_work) - MOST_LINES
    if more > 0:
        yield f"  and {more} more methods and banks"


def _short(value: object) -> str:
    """Return the value of a hyperparameter."""
    return f"{value:g}" if isinstance(value, float) else str(value)
