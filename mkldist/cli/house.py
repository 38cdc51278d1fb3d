"""``mkldist verify``, ``rerun``, ``clean``, ``doctor`` and ``cluster``: upkeep."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.options import (
    PATH,
    allow_code_option,
    cluster_options,
    data_dir_option,
    encryption_options,
    json_option,
    print_json,
    results_argument,
)
from mkldist.core.terminal import command_line, standard_error
from mkldist.core.wording import pluralize
from mkldist.errors import EXIT_BAD_INPUT, EXIT_FAILED_RUNS

if TYPE_CHECKING:
    from mkldist.analysis.comparison import Agreement
    from mkldist.run.doctor import Finding
    from mkldist.run.upkeep import Checked, StoredBank


KIND_WIDTH = 11


@click.command("verify")
@results_argument()
@json_option("path", "sound", "checked", "damaged")
def verify_command(results: Path, as_json: bool) -> None:
    """Read all files of RESULTS and check them: one line for each kind.

    RESULTS is the folder of a sweep's results, its file or its name.  The sweep's command makes
    damaged files anew, and does the runs of damaged records again.  The exit code is 2 if a file is
    damaged.
    """
    from mkldist.run.upkeep import verify

    found = verify(results)
    damaged = [path for one in found for path in one.damaged]
    if as_json:
        print_json({"path": results, "sound": not damaged, "checked": found, "damaged": damaged})
    else:
        for line in _checked_lines(found):
            click.echo(line)
        if damaged:
            click.echo("the sweep's command makes anew what is damaged")
    if damaged:
        sys.exit(EXIT_BAD_INPUT)


def _checked_lines(found: Sequence[Checked]) -> Iterator[str]:
    """Yield a line for each kind of files, followed by the damaged ones."""
    for one in found:
        said = f"{len(one.damaged)} damaged" if one.damaged else "sound"
        noun = "record" if one.kind == "records" else "file"
        files = f"{one.files:,} {noun}{'s' * (one.files != 1)}"
        note = f" ({one.note})" if one.note else ""
        yield f"{one.kind:{KIND_WIDTH}}{files}, {said}{note}"
        for path in one.damaged:
            yield f"  {path}"


MOST_CONTRADICTIONS = 5


@click.command("rerun")
@results_argument()
@cluster_options("results/NAME-rerun")
@data_dir_option()
@allow_code_option
@click.option("--quiet", is_flag=True, help="Print no progress.")
@json_option("results", "path", "versions", "failed", "agreement", "holds")
def rerun_command(
    results: Path, output: Path | None, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Run the sweep of RESULTS again, into another folder, and compare the results.

    RESULTS is the folder of a sweep's results, its file or its name.  The sweep is that of the
    results, whatever its file says now.  Data that differ from those of the runs are refused.  The
    new results lie beside the former ones, under their name and -rerun, unless -o names a folder.
    After any interruption, the same command resumes.  The exit code is 3 if runs failed, if one of
    the results lacks runs, or if a certified interval of the optimum contradicts the former one.
    """
    from mkldist.run.rerun import Rerun, rerun_folder

    again = Rerun(results, output or rerun_folder(results), **options)
    again.check_data()
    click.echo(f"{results}: the same data; {again.versions}", err=True)
    outcome = again.run(
        console=None if quiet else standard_error, resume_command=command_line(*sys.argv[1:])
    )
    found = again.agreement()
    holds = found.holds and not (outcome.failed or outcome.waiting)
    if as_json:
        print_json(
            {
                "results": results,
                "path": outcome.path,
                "versions": again.versions,
                "failed": outcome.failed,
                "agreement": found,
                "holds": holds,
            }
        )
    else:
        if outcome.failed:
            click.echo(
                f"{pluralize(outcome.failed, 'run')} failed: {command_line('status', outcome.path)}"
            )
        for line in _agreement_lines(found, results, outcome.path):
            click.echo(line)
    if not holds:
        sys.exit(EXIT_FAILED_RUNS)


def _agreement_lines(found: Agreement, results: Path, again: Path) -> Iterator[str]:
    """Yield the sentences that say how far both results agree."""
    yield (
        f"{pluralize(found.n_runs, 'run')} compared, {found.n_equal} of them equal to the bit; "
        f"largest relative difference of objectives {found.objective_difference:.1e}"
    )
    for name, difference in found.loss_differences.items():
        yield f"largest difference of {name}: {difference:.2g}"
    for folder, number in zip((results, again), found.n_alone, strict=True):
        if number:
            yield f"{pluralize(number, 'complete run')} in {folder} alone"
    for run in found.contradictions[:MOST_CONTRADICTIONS]:
        yield f"certificates contradict each other: {run}"
    if found.contradictions:
        yield f"{pluralize(len(found.contradictions), 'contradiction')} in all"
    elif found.n_runs:
        yield "all certified intervals of the optimum have points in common"


@click.command("clean")
@results_argument(several=True)
@click.option("--yes", is_flag=True, help="Remove without asking.")
@click.option(
    "--banks",
    "named",
    type=PATH,
    metavar="FOLDER",
    multiple=True,
    help="Folder of banks elsewhere, from which --yes may remove too; repeatable.",
)
@json_option("banks", "bytes", "removed_bytes")
def clean_command(results: Path, yes: bool, named: tuple[Path, ...], as_json: bool) -> None:
    """Remove the Gram matrices that the sweep of RESULTS stored, if you agree.

    RESULTS is the folder of a sweep's results, its file or its name; or a folder of many sweeps
    such as results, for all that they stored.  Records, results and snapshots stay.  A sweep that
    needs the Gram matrices later computes them again, also another one that shares them.  While a
    sweep uses a folder of banks, nothing is removed from it.  Results that were copied name the
    banks of the original: --yes removes nothing from a folder that is neither in RESULTS nor beside
    it, unless --banks names it.  --json asks nothing, and removes nothing without --yes.
    """
    from mkldist.core.memory import readable_bytes
    from mkldist.run.upkeep import check_roots, remove, stored_banks, total_bytes

    banks = stored_banks(results)
    if yes:
        check_roots(results, banks, named)
    if as_json:
        rows = [
            {"folder": bank.root, "id": bank.id, "kernels": bank.words, "bytes": bank.n_bytes,
             "copy": bank.copy, "copy_bytes": bank.copy_bytes}
            for bank in banks
        ]  # fmt: skip
        n_bytes = total_bytes(banks)
        print_json({"banks": rows, "bytes": n_bytes, "removed_bytes": remove(banks) if yes else 0})
        return
    if not banks:
        click.echo(f"{results}: no Gram matrices are stored")
        return
    for line in _bank_lines(results, banks):
        click.echo(line)
    words = readable_bytes(total_bytes(banks))
    if not yes and not _agreed(f"Remove {words}?"):
        click.echo("nothing was removed; --yes removes without asking")
        return
    click.echo(f"removed {readable_bytes(remove(banks))}")


def _bank_lines(folder: Path, banks: Sequence[StoredBank]) -> Iterator[str]:
    """Yield a line for the banks of each folder and data set, and one for their copies."""
    from mkldist.core.memory import readable_bytes
    from mkldist.run.upkeep import roots_elsewhere

    elsewhere = roots_elsewhere(folder, banks)
    groups: dict[tuple[Path, str], list[StoredBank]] = {}
    for bank in banks:
        groups.setdefault((bank.root, bank.words), []).append(bank)
    for (root, words), those in groups.items():
        size = readable_bytes(sum(bank.n_bytes for bank in those))
        yield f"{root}: {pluralize(len(those), 'bank')} of {words}, {size}"
    for root in elsewhere:
        yield f"NOTE: {root} is not beside {folder}: its banks may belong to other results"
    copies: dict[Path, list[StoredBank]] = {}
    for bank in banks:
        if bank.copy is not None:
            copies.setdefault(bank.copy.parent, []).append(bank)
    for cache, those in copies.items():
        size = readable_bytes(sum(bank.copy_bytes for bank in those))
        yield f"{cache}: {pluralize(len(those), 'copy', 'copies')} of them, {size}"


def _agreed(question: str) -> bool:
    """Ask; no answer means no."""
    try:
        return sys.stdin is not None and click.confirm(question)
    except click.Abort:
        click.echo()
        return False


LINE_WIDTH = 100
NAME_WIDTH = 15


@click.command("doctor")
@click.argument(
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    required=False,
)
@json_option("findings")
def doctor_command(folder: Path, as_json: bool) -> None:
    """Look at software, processors, memory, caches, and the disk of FOLDER, by default this one.

    A file of 64 MiB is written to FOLDER and removed.  The exit code is 2 if no sweep could run.
    """
    from mkldist.run.doctor import examine

    findings: list[Finding] = []
    for finding in examine(folder):
        findings.append(finding)
        if not as_json:
            _print_finding(finding)
    if as_json:
        print_json({"findings": findings})
    if any(finding.hinders for finding in findings):
        sys.exit(EXIT_BAD_INPUT)


def _print_finding(finding: Finding) -> None:
    """Print a finding, wrapped, and its advice."""
    for line in textwrap.wrap(
        finding.words,
        LINE_WIDTH - NAME_WIDTH,
        initial_indent=f"{finding.name:{NAME_WIDTH}}",
        subsequent_indent=" " * NAME_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        click.echo(line)
    if finding.advice:
        color = "red" if finding.hinders else "yellow"
        click.echo(" " * NAME_WIDTH + click.style(f"→ {finding.advice}", fg=color))


WAIT_FOR_JOBS, WAIT_FOR_SCHEDULER = 60.0, 3.0


@click.group("cluster")
def cluster_command() -> None:
    """Check clusters."""


@cluster_command.command("check")
@click.argument("profile", type=PATH, required=False)
@click.option("--scheduler", metavar="ADDRESS", help="The running Dask scheduler to check instead.")
@encryption_options
@click.option(
    "--workers", type=click.IntRange(min=1), help="Workers to start.  [default: as in PROFILE]"
)
@click.option(
    "--output",
    type=PATH,
    default=Path("results"),
    show_default=True,
    help="Folder of results that workers are to share.",
)
@click.option(
    "--banks", metavar="FOLDER|URL", help="Folder or URL of stored banks.  [default: OUTPUT/banks]"
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    help="Seconds to wait for workers.  [default: 60 for PROFILE, 3 for --scheduler]",
)
@json_option("sound", "findings")
def cluster_check(
    profile: Path | None,
    scheduler: str | None,
    tls: Path | None,
    allow_unencrypted: bool,
    workers: int | None,
    output: Path,
    banks: str | None,
    wait: float | None,
    as_json: bool,
) -> None:
    """Start the cluster of the file PROFILE, or join a scheduler, and say what is missing.

    Checked are the scheduler, versions of packages, folders that workers share with this machine,
    the object store of banks, node caches, clocks, threads and memory.  What is started is stopped
    at the end.  The exit code is 2 if no sweep could run.
    """
    from mkldist.run.cluster import ConnectOptions
    from mkldist.run.doctor import examine_cluster

    if (profile is None) == (scheduler is None):
        raise click.UsageError("Give the file of a cluster or --scheduler ADDRESS, one of them.")
    options = ConnectOptions(
        scheduler, profile, workers, tls=tls, allow_unencrypted=allow_unencrypted
    )
    places = {"results": str(output), "banks": banks or str(output / "banks")}
    if wait is None:
        wait = WAIT_FOR_JOBS if profile else WAIT_FOR_SCHEDULER
    findings = list(examine_cluster(options, places, wait))
    sound = not any(finding.hinders for finding in findings)
    if as_json:
        print_json({"sound": sound, "findings": findings})
    else:
        for finding in findings:
            _print_finding(finding)
    if not sound:
        sys.exit(EXIT_BAD_INPUT)
