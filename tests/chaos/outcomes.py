"""What a fault did to a sweep, and the table of a whole campaign."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table


@dataclass(frozen=True)
class Outcome:
    """What one fault did."""

    kind: str  # kind of the fault
    lost: int = 0  # recorded runs that are gone after the next run of the same command
    again: int = 0  # recorded runs that this computed again
    # Nodes of the results that differ in some bit from the undisturbed ones; of a reader, what it
    # returned in place of an error
    wrong: tuple[str, ...] = ()
    # Processes of the sweep that live 10 seconds after its command has ended
    orphans: tuple[str, ...] = ()
    # Files after the next run that the undisturbed sweep does not leave
    leftovers: tuple[str, ...] = ()
    # What else should not be: a traceback, an exit code of its own, a command that hangs
    faults: tuple[str, ...] = ()
    refused: bool = False  # true if the next run said what is damaged in place of mending it

    @property
    def is_good(self) -> bool:
        """True if the fault did no harm."""
        counts = (self.lost, self.again, *map(len, (self.wrong, self.orphans)))
        return not (any(counts) or self.leftovers or self.faults)

    def lines(self) -> Iterator[str]:
        """Yield what the numbers of a harmful fault are of."""
        for name in ("wrong", "orphans", "leftovers", "faults"):
            for said in getattr(self, name):
                yield f"{self.kind}: {name}: {said}"


HEADINGS = (
    "fault", "times", "runs lost", "computed again", "wrong results", "orphans", "leftovers",
    "other faults", "refused by name",
)  # fmt: skip


def table_of(outcomes: Iterable[Outcome]) -> Table:
    """Return a row for each kind of fault, and one of all."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.kind, []).append(outcome)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    for kind in sorted(groups):
        table.add_row(kind, *_counts(groups[kind]))
    table.add_section()
    table.add_row("all", *_counts([one for group in groups.values() for one in group]))
    return table


def _counts(group: list[Outcome]) -> list[str]:
    numbers = [
        len(group),
        sum(one.lost for one in group),
        sum(one.again for one in group),
        *(
            sum(bool(getattr(one, name)) for one in group)
            for name in ("wrong", "orphans", "leftovers", "faults")
        ),
        sum(one.refused for one in group),
    ]
    return [str(number) for number in numbers]
