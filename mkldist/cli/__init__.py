"""The command line.  Each command parses its words, calls the library once, prints the answer."""

from __future__ import annotations

import gc
import importlib
from typing import Any

import click

from mkldist.cli.failures import reporting
from mkldist.run.interrupts import interrupt_by_all_signals, own_handlers

COMMANDS = {
    "init": "mkldist.cli.init",
    "sweep": "mkldist.cli.sweep",
    "plan": "mkldist.cli.plan",
    "status": "mkldist.cli.status",
    "report": "mkldist.cli.report",
    "compare": "mkldist.cli.compare",
    "explain": "mkldist.cli.explain",
    "scale": "mkldist.cli.scale",
    "export": "mkldist.cli.export",
    "fit": "mkldist.cli.fit",
    "predict": "mkldist.cli.predict",
    "list": "mkldist.cli.listing",
    "show": "mkldist.cli.show",
    "bank": "mkldist.cli.bank",
    "verify": "mkldist.cli.verify",
    "rerun": "mkldist.cli.rerun",
    "clean": "mkldist.cli.clean",
    "doctor": "mkldist.cli.doctor",
    "cluster": "mkldist.cli.cluster",
}
MEANT = {
    **dict.fromkeys(("run", "start", "train", "resume", "experiment"), "sweep"),
    **dict.fromkeys(("check", "validate", "dry-run", "lint", "estimate"), "plan"),
    **dict.fromkeys(("results", "progress", "table", "summary"), "status"),
    **dict.fromkeys(("ls", "methods", "kernels", "datasets", "sweeps"), "list"),
    **dict.fromkeys(("info", "describe", "help", "cat"), "show"),
    **dict.fromkeys(("diff", "versus", "vs", "test"), "compare"),
    **dict.fromkeys(("interpret", "importance", "why"), "explain"),
    **dict.fromkeys(("rm", "remove", "delete", "purge", "clear"), "clean"),
    **dict.fromkeys(("fsck", "scrub", "repair"), "verify"),
    **dict.fromkeys(("reproduce", "repeat", "replay"), "rerun"),
    **dict.fromkeys(("new", "create", "setup", "start-project"), "init"),
    **dict.fromkeys(("save", "convert", "csv", "to-csv"), "export"),
    **dict.fromkeys(("scaling", "time", "timing", "benchmark"), "scale"),
    **dict.fromkeys(("refit", "model", "final"), "fit"),
    **dict.fromkeys(("apply", "infer", "score", "classify"), "predict"),
}
"""Words of other programs, and the command that is meant."""
OPTIONS = {
    **dict.fromkeys(("--dry-run", "--check", "-n"), "'mkldist plan FILE' prints the work"),
    **dict.fromkeys(("--n-jobs", "--jobs", "-j", "--cores"), "Did you mean '--workers'?"),
    **dict.fromkeys(("--out", "--output-dir"), "Did you mean '--output'?"),
    **dict.fromkeys(("--force", "-y", "-f"), "'mkldist COMMAND --help' lists the options"),
    "--resume": "Repeat the command: it resumes by itself",
    "--seed": "Did you mean '--set seed=1'?",
}
"""The same for options."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the words call; name the nearest one if there is none."""
        from mkldist.errors import nearest

        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = nearest(MEANT.get(args[0], args[0]), COMMANDS)
            if not hint:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}. {hint}", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that the words call; say what an option of other programs is here."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            hint = OPTIONS.get(error.option_name)
            if hint is None:
                raise
            said = f"No such option {error.option_name}. {hint}{'' if hint[-1] == '?' else '.'}"
            raise click.UsageError(said, error.ctx) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mkldist", prog_name="mkldist")
def command() -> None:
    """Multiple kernel learning over large banks of kernels: certified, resumable sweeps."""


OBJECTS_AT_ONCE = 100_000
"""Objects that are made before Python looks for garbage.

A command imports and plans objects by the hundred thousand that stay, among which looking after
every 700, as Python does by itself, takes a tenth of the time of a short command.
"""


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(OBJECTS_AT_ONCE)
    with own_handlers(), reporting():
        interrupt_by_all_signals()
        command.main(prog_name="mkldist", standalone_mode=False)
