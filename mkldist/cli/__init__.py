"""The command line.  Each command parses its words, calls the library once, prints the answer."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import click

from mkldist.core.durable import output_error
from mkldist.core.terminal import interrupt_by_all_signals, own_handlers
from mkldist.core.wording import SHOWN_PASSWORD, has_password
from mkldist.errors import (
    EXIT_BAD_INPUT,
    EXIT_INTERNAL,
    EXIT_INTERRUPTED,
    InputError,
    MkldistError,
    nearest,
)

COMMANDS = {
    "init": "data",
    "sweep": "sweeps",
    "plan": "sweeps",
    "status": "sweeps",
    "report": "results",
    "compare": "results",
    "explain": "models",
    "scale": "results",
    "export": "results",
    "fit": "models",
    "predict": "models",
    "list": "data",
    "show": "data",
    "schema": "schema",
    "verify": "house",
    "rerun": "house",
    "clean": "house",
    "doctor": "house",
    "cluster": "house",
}
"""The commands in the order of use, and the module of each."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"mkldist.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the words call; name the nearest one if there is none."""
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
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":  # as rich has it
        click.get_current_context().color = False


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # of a console that may lack letters such as ±
            stream.reconfigure(errors="replace")
    with own_handlers(), reporting():
        interrupt_by_all_signals()
        if any(map(has_password, sys.argv[1:])):
            raise InputError("the command line", *SHOWN_PASSWORD)
        _check_environment()
        command.main(prog_name="mkldist", standalone_mode=False)


DEBUG_VARIABLE = "MKLDIST_DEBUG"
BYTES_OF_LIBRARIES = 5 * 2**28  # of address space
BYTES_OF_A_THREAD = 80 * 2**20  # of OpenBLAS in numpy and in scipy


@contextmanager
def reporting() -> Iterator[None]:
    """Turn every exception into one message on standard error and an exit code.

    A traceback appears only if the environment variable ``MKLDIST_DEBUG`` is set.
    """
    try:
        yield
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_BAD_INPUT)
    except (KeyboardInterrupt, click.Abort) as error:
        _end_interrupted(error)
    except OSError as error:
        _end_by_the_system(error)
    except MkldistError as error:
        _show_traceback()
        _say(f"{error.kind}: {error}", error.exit_code)
    except Exception as error:
        _end_unexpectedly(error)


def _end_interrupted(error: BaseException) -> NoReturn:
    """End after an interrupt, or after what click raised from it; the interrupt has the message."""
    said = str(error) or str(error.__cause__ or "")
    exec("")  # Python kills itself at exit if the last code from a text was interrupted
    _say(f"interrupted: {said}" if said else "interrupted", EXIT_INTERRUPTED)


def _end_by_the_system(error: OSError) -> NoReturn:
    """End after an error of the system, which may have come while an interrupt was handled.

    A terminal that closes sends the interrupt, and then takes no more lines.
    """
    interrupt = _interrupt_before(error)
    if interrupt is not None:
        _end_interrupted(interrupt)
    if isinstance(error, BrokenPipeError):
        _leave_closed_streams()
        sys.exit(EXIT_INTERNAL)
    if error.errno == errno.ENAMETOOLONG:
        _show_traceback()
        where = f"{str(error.filename)[:60]}..."
        refused = InputError(where, "a name that is too long", "the path of a file")
        _say(f"{refused.kind}: {refused}", EXIT_BAD_INPUT)
    _end_unexpectedly(error)


def _check_environment() -> None:
    """Refuse what libraries take badly: a date that matplotlib cannot read, too little memory.

    OpenBLAS asks for the memory of its threads without end while it is loaded.  Under a limit, that
    of scipy is loaded here, before other libraries have taken what it needs.
    """
    date = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not re.fullmatch("[0-9]{1,11}", date):
        raise InputError("SOURCE_DATE_EPOCH", f"{date!r}", "seconds since 1970, such as 1700000000")
    with suppress(ImportError):  # of systems without such limits
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        least = BYTES_OF_LIBRARIES + (os.cpu_count() or 1) * BYTES_OF_A_THREAD
        if limit != resource.RLIM_INFINITY and limit < least:
            found = f"an address space of {limit // 2**20} MiB"
            expected = f"at least {least // 2**20} MiB"
            raise MkldistError("this process", found, expected, "Raise the limit: ulimit -v")
        if limit != resource.RLIM_INFINITY:
            import scipy.linalg  # noqa: F401


def _interrupt_before(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt that was handled when an error came, None without one."""
    before = error.__cause__ or error.__context__
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__cause__ or before.__context__
    return before


def _end_unexpectedly(error: Exception) -> NoReturn:
    """End after an error that nothing foresaw, or that came of a full disk or too little memory."""
    _show_traceback()
    before: BaseException | None = error
    while before is not None:  # libraries raise other errors on the way
        if isinstance(before, OSError) and before.errno == errno.ENOSPC:
            unnamed = "standard output" if before is error else "a file"
            full = output_error(str(before.filename or unnamed), before)
            _say(f"{full.kind}: {full}", full.exit_code)
        words = ("failed to map", "can't start new thread", "Cannot allocate memory")
        if isinstance(before, MemoryError) or any(word in str(before) for word in words):
            found = f"too little memory ({before})" if str(before) else "too little memory"
            hint = "Raise its limit (ulimit -v), or free some"
            refused = MkldistError("this machine", found, hint=hint)
            _say(f"out of memory: {refused}", EXIT_INTERNAL)
        before = before.__cause__ or before.__context__
    _say(
        f"internal error: {type(error).__name__}: {error}. "
        f"Set {DEBUG_VARIABLE}=1 to see where, and please report it.",
        EXIT_INTERNAL,
    )


def _show_traceback() -> None:
    if os.environ.get(DEBUG_VARIABLE):
        with suppress(OSError):  # of a terminal that is closed
            traceback.print_exc()


def _say(message: str, code: int) -> NoReturn:
    with suppress(OSError):  # as above
        click.echo(f"mkldist: {message}", err=True)
    _leave_closed_streams()
    sys.exit(code)


def _leave_closed_streams() -> None:
    """Drop what a closed terminal or pipe does not take; Python would end with another code."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where it was closed at the start
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
