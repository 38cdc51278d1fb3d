"""The answer of ``mkldist compare RESULTS --published FILE``: our numbers beside published ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.analysis.cell_texts import NOTHING, mean_sd
from mkldist.cli.json_output import print_json
from mkldist.cli.left_out import tell_left_out
from mkldist.consoles import standard_output

if TYPE_CHECKING:
    from mkldist.analysis.published import Cell
    from mkldist.analysis.published_number import Published


def compare_published(
    words: Sequence[str],
    file: Path,
    datasets: Collection[str] = (),
    methods: Collection[str] = (),
    *,
    as_json: bool,
) -> None:
    """Print every published number with ours and a verdict.

    Parameters
    ----------
    words : sequence of str
        Words of the command: the results alone.
    file : Path
        The CSV file of published numbers, or the name of a paper's sweep that comes with mkldist.
    datasets, methods : collection of str
        Numbers of these alone; empty for all.
    as_json : bool
        Print one JSON document.

    Raises
    ------
    mkldist.errors.InputError
        For another number of words, and data sets and methods of which the file has no number.
    mkldist.errors.DataError
        For a file that cannot be read.
    """
    from mkldist.analysis.pairing import Results
    from mkldist.analysis.published import against_published, of_sweep, read_published
    from mkldist.errors import InputError
    from mkldist.run.places import results_of
    from mkldist.spec.shipped import published_numbers

    if len(words) != 1:
        raise InputError("--published", f"{len(words)} words beside it", "RESULTS alone")
    results = Results.of(results_of(Path(words[0])))
    tell_left_out(results.path)
    path = published_numbers(file)
    sweep = str(results.tree.attrs["sweep"])
    numbers = _asked(read_published(path), datasets, methods, path)
    own, others = of_sweep(numbers, sweep)
    if not own:
        raise InputError(
            str(path),
            f"numbers of {', '.join(others)} alone",
            f"numbers of the experiment {sweep}, or of none",
            "The column 'experiment' has the name of the sweep that repeats it",
        )
    cells = against_published(results, own)
    said = [_summary(cells), *_left_out(len(numbers) - len(own), others)]
    if as_json:
        first = {"results": results.path, "sweep": sweep}
        print_json(
            {"first": first, "second": None, "pairs": [], "over_data_sets": [],
             "unpaired": [], "words": said, "published": cells}
        )  # fmt: skip
        return
    _print(cells, said)


def _asked(
    numbers: list[Published], datasets: Collection[str], methods: Collection[str], file: Path
) -> list[Published]:
    """Return the numbers of some data sets and methods; refuse names of which there is none."""
    from mkldist.errors import InputError, nearest

    for option, given, known in (
        ("--dataset", datasets, {one.dataset for one in numbers}),
        ("--method", methods, {name for one in numbers for name in _methods(one)}),
    ):
        for name in given:
            if name not in known:
                raise InputError(f"{option} {name}", f"no number of it in {file}",
                                 f"one of {', '.join(sorted(known))}",
                                 nearest(name, known))  # fmt: skip
    return [
        one
        for one in numbers
        if (not datasets or one.dataset in datasets)
        and (not methods or not _methods(one).isdisjoint(methods))
    ]


def _methods(one: Published) -> set[str]:
    """Return the method of a number, with its bank and without."""
    return {one.method, one.method.rpartition("/")[2]}


def _left_out(count: int, others: Sequence[str]) -> list[str]:
    """Return a sentence on the numbers of other experiments, if there are any."""
    if not count:
        return []
    numbers = "1 number is" if count == 1 else f"{count} numbers are"
    return [f"{numbers} left out, of other experiments: {', '.join(others)}."]


def _print(cells: Sequence[Cell], said: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("data set", "method", "metric"):
        table.add_column(heading, overflow="fold")
    for heading in ("published", "ours", "in sd"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for cell in cells:
        one = cell.published
        setting = f" ({one.setting})" if one.setting else ""
        table.add_row(
            Text(one.dataset),
            Text(one.method + setting),
            Text(one.metric),
            mean_sd(one.mean, one.sd),
            mean_sd(cell.mean, cell.sd),
            NOTHING if math.isnan(cell.distance) else f"{cell.distance:+.1f}",
            Text(cell.verdict),
        )
    console = standard_output()
    console.print(table)
    console.print()
    for sentence in said:
        console.print(sentence, highlight=False)


def _summary(cells: Sequence[Cell]) -> str:
    """Return how many numbers agree, and what that says."""
    known = [abs(cell.distance) for cell in cells if not math.isnan(cell.distance)]
    within = sum(size <= 1.0 for size in known), sum(size <= 2.0 for size in known)
    return (
        f"Of {len(cells)} published numbers, {len(known)} have a counterpart and a standard "
        f"deviation: {within[0]} of these lie within one, {within[1]} within two. Ours are of our "
        "own splits, so this is no test."
    )
