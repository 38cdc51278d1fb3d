"""The command line: words to one library call to a printed answer."""

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
    """A group whose commands are imported when they are called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is none of that name."""
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
    """Multiple kernel learning over large kernel banks: sweeps, certified and resumable."""


def main() -> None:
    """Run the command line and exit with its code."""
    with reporting():
        command.main(prog_name="mkldist", standalone_mode=False)
