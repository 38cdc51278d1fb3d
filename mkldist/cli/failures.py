"""Messages and exit codes of commands that fail."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from mkldist.errors import EXIT_BAD_INPUT, EXIT_INTERNAL, EXIT_INTERRUPTED, InputError, MkldistError

DEBUG_VARIABLE = "MKLDIST_DEBUG"


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
        # click raises Abort from the interrupt, which holds the message.
        said = str(error) or str(error.__cause__ or "")
        exec("")  # Python kills itself at exit if the last code from a text was interrupted
        _say(f"interrupted: {said}" if said else "interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_INTERNAL)
    except MkldistError as error:
        _show_traceback()
        _say(f"{error.kind}: {error}", error.exit_code)
    except Exception as error:
        _show_traceback()
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            where = f"{str(error.filename)[:60]}..."
            refused = InputError(where, "a name that is too long", "the path of a file")
            _say(f"{refused.kind}: {refused}", EXIT_BAD_INPUT)
        _say(
            f"internal error: {type(error).__name__}: {error}. "
            f"Set {DEBUG_VARIABLE}=1 to see where, and please report it.",
            EXIT_INTERNAL,
        )


def _show_traceback() -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()


def _say(message: str, code: int) -> None:
    with suppress(OSError):  # of a terminal that is closed
        click.echo(f"mkldist: {message}", err=True)
    sys.exit(code)
