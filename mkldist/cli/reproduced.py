"""``mkldist compare RESULTS... --published FOLDER -o FILE``: a page of reproduced numbers.

What results say is kept in FOLDER, so that the page needs the results of each sweep once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mkldist.analysis.pairing import Results
    from mkldist.spec.model import SweepSpec

CONCLUSIONS = "conclusions.toml"
EXPLANATIONS = "explanations.csv"
OTHER_DATA = "other_data.csv"
UNSTATED_DATA = "unstated_data.csv"
OUTCOMES = "outcomes"
WORDS = (EXPLANATIONS, OTHER_DATA, UNSTATED_DATA)
ENDING = ".md"


def write_reproduced(words: Sequence[str], folder: Path, page: Path) -> None:
    """Write which published numbers and conclusions results reproduce.

    Parameters
    ----------
    words : sequence of str
        Words of the command: results, at most one of each sweep.  Outcomes that earlier calls
        kept stand for sweeps without results.
    folder : Path
        A folder of published numbers, CSV files, ``conclusions.toml``, ``explanations.csv``,
        ``other_data.csv`` and ``unstated_data.csv``, which may be absent, and ``outcomes``, to
        which those of the results are written.
    page : Path
        The file to write, in Markdown; a page that this command wrote before is replaced.

    Raises
    ------
    mkldist.errors.InputError
        For a folder without numbers, two results of one sweep, neither results nor outcomes, and
        files that cannot be read.
    mkldist.errors.OutputError
        If the page's file may not be replaced, or a file cannot be written.
    """
    from mkldist.analysis.conclusion import read_conclusions
    from mkldist.analysis.explanations import read_explanations
    from mkldist.analysis.outcomes import outcome_of, read_outcomes, write_outcome
    from mkldist.analysis.published import read_published
    from mkldist.analysis.reproduction import DataFacts
    from mkldist.counted import counted
    from mkldist.durable import write_file, writing
    from mkldist.errors import InputError
    from mkldist.report.reproduced import reproduced

    numbers = _numbers(folder)
    _check_page(page)
    published = [one for file in numbers for one in read_published(file)]
    conclusions = read_conclusions(folder / CONCLUSIONS)
    explanations = read_explanations(folder / EXPLANATIONS, published)
    facts = DataFacts(
        *(read_explanations(folder / name, published) for name in (OTHER_DATA, UNSTATED_DATA))
    )
    results = _results(words)
    outcomes = read_outcomes(folder / OUTCOMES)
    files = _files({*results, *outcomes})
    if not outcomes and not results:
        found = f"no RESULTS, and no outcome in {folder / OUTCOMES}"
        raise InputError(f"-o {page}", found, "RESULTS... --published FOLDER -o FILE")
    for name, one in results.items():
        datasets = [own.name for own in files[name].datasets] if name in files else ()
        outcomes[name] = outcome_of(one, published, conclusions, datasets)
    text = reproduced(outcomes, published, conclusions, files, explanations, facts)
    with writing(folder):
        for name in results:
            write_outcome(folder / OUTCOMES, outcomes[name])
    with writing(page):
        write_file(page, [text.encode()])
    kept = len(outcomes) - len(results)
    click.echo(f"page: {page}")
    if kept:
        click.echo(f"{counted(kept, 'sweep')} by outcomes kept in {folder / OUTCOMES}")


def _numbers(folder: Path) -> list[Path]:
    """Return the files of published numbers in a folder."""
    from mkldist.errors import InputError

    files = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    files = [file for file in files if file.name not in WORDS]
    if not files:
        found = "no CSV file in it" if folder.is_dir() else "no folder"
        wanted = f"a folder of published numbers, CSV files, and {CONCLUSIONS}"
        raise InputError(f"--published {folder}", found, wanted, "Without -o it is one file")
    return files


def _files(results: Iterable[str]) -> dict[str, SweepSpec]:
    """Return the sweeps of these names that come with mkldist, as their files have them."""
    from mkldist.spec.load import load_sweep
    from mkldist.spec.shipped import shipped_sweeps

    shipped = shipped_sweeps()
    return {name: load_sweep(shipped[name]) for name in results if name in shipped}


def _check_page(page: Path) -> None:
    """Refuse to replace a file that this command did not write."""
    from mkldist.errors import OutputError
    from mkldist.report.reproduced import HEADING

    if page.suffix != ENDING:
        raise OutputError(f"-o {page}", "another ending", f"a name ending in {ENDING}")
    if page.exists() and not (page.is_file() and page.read_bytes().startswith(HEADING.encode())):
        raise OutputError(f"-o {page}", "a file that is no such page", "a new file")


def _results(words: Sequence[str]) -> dict[str, Results]:
    """Return results by the names of their sweeps."""
    from mkldist.analysis.pairing import Results
    from mkldist.cli.left_out import tell_left_out
    from mkldist.errors import InputError
    from mkldist.run.places import results_of

    found: dict[str, Results] = {}
    for word in words:
        results = Results.of(results_of(Path(word)))
        sweep = str(results.tree.attrs["sweep"])
        if sweep in found:
            where = f"{found[sweep].path} and {results.path}"
            raise InputError("compare", f"two results of {sweep}: {where}", "one of each sweep")
        found[sweep] = results
    tell_left_out(*(results.path for results in found.values()))
    return found
