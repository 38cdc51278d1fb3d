"""The command line.  Each command parses its words, calls the library once, prints the answer."""

from __future__ import annotations

import importlib

import click

from mkldist.cli.failures import reporting
from mkldist.core.interrupts import interrupt_by_all_signals, own_handlers

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
            # Other programs say run for what a sweep does; rerun, its neighbour, checks a result.
            hint = nearest("sweep" if args[0] == "run" else args[0], COMMANDS)
            if not hint:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}. {hint}", ctx) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mkldist", prog_name="mkldist")
def command() -> None:
    """Multiple kernel learning over large banks of kernels: certified, resumable sweeps."""


def main() -> None:
    """Run the command line and exit with its code."""
    with own_handlers(), reporting():
        interrupt_by_all_signals()
        command.main(prog_name="mkldist", standalone_mode=False)
