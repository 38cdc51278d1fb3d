"""The command line.  Each command parses its words, calls the library once, prints the answer."""

from __future__ import annotations

import importlib

import click

from mkldist.cli.failures import reporting

COMMANDS = {
    "sweep": "mkldist.cli.sweep",
    "plan": "mkldist.cli.plan",
    "bank": "mkldist.cli.bank",
    "status": "mkldist.cli.status",
    "export": "mkldist.cli.export",
    "list": "mkldist.cli.listing",
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
            hint = nearest(args[0], COMMANDS)
            if not hint:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}. {hint}", ctx) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mkldist", prog_name="mkldist")
def command() -> None:
    """Multiple kernel learning over large banks of kernels: certified, resumable sweeps."""


def main() -> None:
    """Run the command line and exit with its code."""
    with reporting():
        command.main(prog_name="mkldist", standalone_mode=False)
