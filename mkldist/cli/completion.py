"""Names that the shell completes: sweeps, results, and whatever else has a name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from click import Context, Parameter
from click.shell_completion import CompletionItem


def complete_sweeps(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return sweeps by name and the sweep files here; paths are left to the shell."""
    from mkldist.spec.load import shipped_sweeps

    return _or_paths(typed, [*shipped_sweeps(), *(str(file) for file in Path().glob("*.toml"))])


def complete_results(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the sweeps that have results here; paths are left to the shell."""
    return _or_paths(typed, [path.parent.name for path in Path("results").glob("*/sweep.json")])


def complete_compared(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the sweeps that have results here and the names of methods."""
    if not context.params.get(str(parameter.name)):
        return complete_results(context, parameter, typed)
    from mkldist.methods.registry import METHODS

    known = [path.parent.name for path in Path("results").glob("*/sweep.json")]
    return _or_paths(typed, [*known, *METHODS])


def complete_methods(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of methods."""
    from mkldist.methods.registry import METHODS

    return _beginning(typed, METHODS)


def complete_shown(context: Context, parameter: Parameter, typed: str) -> list[CompletionItem]:
    """Return the names that ``mkldist show`` knows."""
    from mkldist.from_python.listings import known

    return _beginning(typed, (one.name for one in known()))


def _beginning(typed: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(typed)]


def _or_paths(typed: str, names: Iterable[str]) -> list[CompletionItem]:
    return _beginning(typed, sorted(names)) or [CompletionItem(typed, type="file")]
