"""The text of a first sweep file for a user's data: kernels and methods that suit them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from mkldist.cli.schema import LINE
from mkldist.data.table_profile import Column, TableProfile
from mkldist.data.tables import UNNAMED
from mkldist.errors import DataError
from mkldist.spec.toml_texts import spelled

SEED, TRAIN_FRACTION, REPEATS = 0, 0.7, 5
COLUMN = 34  # of comments beside a key
FOLDS = 3
FEW_ROWS, FEW_GROUPS = 5, 20  # of a class, and of rows, that inner folds may not divide
NO_VALUE = "without any value"
HARDLY_KNOWN = "values in so few rows that a training part may hold none"
MANY_ROWS = 5000
PART_ROWS = 2000
RARE = 0.6  # of an equal share of the rows: of two classes, the rarer has less than 30 %


@dataclass(frozen=True)
class Facts:
    """Facts that the file depends on."""

    n_rows: int  # size of the data
    n_features: int
    regression: bool  # True if labels are real values
    label: str | None = None  # the label column; None where the source has but one
    look: TableProfile | None = None  # columns of a table
    classes: Mapping[str, int] = field(default_factory=dict)
    """Rows by class, whose names that differ in capitals alone are one; empty for real values."""

    @classmethod
    def of(cls, look: TableProfile) -> Facts:
        """Return the facts of a table."""
        label = look.columns[look.label]
        values = label.is_regression
        names: dict[str, str] = {}  # the most frequent spelling
        classes: Counter[str] = Counter()
        for value, count in [] if values else label.counts.most_common():
            classes[names.setdefault(value.casefold(), value)] += count
        return cls(look.n_rows, look.n_features, values, look.label, look, classes)

    @property
    def rare(self) -> str | None:
        """The rarest class if it is rare enough for a method to give it up; None otherwise."""
        if len(self.classes) < 2:
            return None
        name = min(self.classes, key=lambda one: self.classes[one])
        share = self.classes[name] / sum(self.classes.values())
        return name if share < RARE / len(self.classes) else None

    @property
    def is_divisible(self) -> bool:
        """True if inner folds of training parts have rows of all classes."""
        groups = self.look and self.look.groups
        if groups and len(groups.counts) < FEW_GROUPS:
            return False
        return min(self.classes.values(), default=FEW_ROWS) >= FEW_ROWS

    def notes(self, file: Path) -> Iterator[str]:
        """Yield what the sweep file does of itself, in words for the terminal."""
        column = self.look and self.look.groups
        if column:
            values = f"{len(column.counts)} values in {self.n_rows} rows"
            yield f"{column.name!r} repeats: {values}; see groups in {file}"
        if self.n_rows > MANY_ROWS:
            kept = "" if self.regression else ", classes in proportion"
            drawn = f"{PART_ROWS} of {self.n_rows} rows, drawn at random{kept}"
            yield f"the sweep takes {drawn}; see n_points in {file}"
        if self.rare is not None:
            count, total = self.classes[self.rare], sum(self.classes.values())
            yield (
                f"class {self.rare!r} has {count} of {total} rows: each class weighs the same, and "
                f"settings are chosen by the balanced error; see class_weight and metric in {file}"
            )


def sweep_name(path: Path) -> str:
    """Return the name of a file without endings, as a sweep may be called.

    Examples
    --------
    >>> sweep_name(Path("data/heart disease (2).csv.gz"))
    'heart_disease_2'
    """
    stem = path.name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_")[:100] or "mine"


def first_sweep(data: Path, file: Path, facts: Facts) -> str:
    """Return the text of the sweep file."""
    return "\n".join(
        [*_head(data, file, facts), *_dataset(data, file, facts), *_splits(facts),
         *_bank(facts), *_methods(facts), ""]
    )  # fmt: skip


def _head(data: Path, file: Path, facts: Facts) -> Iterator[str]:
    yield LINE
    name, command = in_comment(data.name), in_comment(quote(str(file)))
    yield f"# A first sweep on {name}: {facts.n_rows} rows, {facts.n_features} features."
    yield "#"
    yield f"#     mkldist plan  {command}        print the work"
    yield f"#     mkldist sweep {command}        run it, or the rest of it"
    yield "#"
    yield "# Change what you like: a sweep runs only what it has not run before."
    yield f'\nname = "{sweep_name(data)}"'
    yield f"seed = {SEED}"
    yield _line("tol = 0.01", "relative duality gap at which every method stops")


def _dataset(data: Path, file: Path, facts: Facts) -> Iterator[str]:
    yield f'\n[[datasets]]\nname = "{sweep_name(data)}"'
    place = os.path.relpath(data.absolute(), file.absolute().parent)
    _check_utf8(place)
    yield f"file = {spelled(Path(place).as_posix(), None)}"
    if facts.label is not None:
        yield _line(f"label = {spelled(facts.label, None)}", _values(facts))
    if facts.regression:
        yield _line('task = "regression"', "remove it if the labels are classes")
    if facts.look is not None:
        yield from _roles(facts.look)
    if facts.rare is not None:
        yield _line('class_weight = "balanced"', f"so that {_rare(facts)} count like the others")
    if facts.n_rows > MANY_ROWS:
        kept = "" if facts.regression else ", classes in proportion"
        part = f"of {facts.n_rows} rows, drawn at random{kept}; remove it later"
        yield _line(f"n_points = {PART_ROWS}", part)


def _rare(facts: Facts) -> str:
    """Return the rows of the rarest class in words."""
    rare = facts.rare or ""
    return f"the {facts.classes[rare]} rows of {rare!r}, of {sum(facts.classes.values())},"


def _check_utf8(place: str) -> None:
    """Refuse a path that a sweep file, which is UTF-8, cannot hold."""
    try:
        place.encode()
    except UnicodeEncodeError:
        raise DataError(
            in_comment(place),
            "a name that is not UTF-8",
            "one that a sweep file, a text in UTF-8, can hold",
            "Rename the file or its folder, or link to it by another name (ln -s)",
        ) from None


def _values(facts: Facts) -> str:
    """Return the values of the label column in words."""
    if facts.look is None or facts.regression:
        return ""
    counts = facts.look.columns[facts.look.label].counts
    words = [f"{count} {value}" for value, count in counts.most_common(4)]
    return ", ".join([*words, "…"] if len(counts) > len(words) else words)


def _roles(look: TableProfile) -> Iterator[str]:
    """Yield the keys of columns that are no plain features, and notes on what looks odd."""
    if look.id is not None:
        named = "the rows" if look.row_names else "the rows of predictions"
        yield _line(f"id = {spelled(look.id, None)}", f"names {named}, so it is no feature")
    ignored, groups = list(look.ignored), look.groups
    if groups is not None and groups.name != look.id and _hinders_groups(look, groups):
        ignored.append(groups)
    if ignored:
        reasons = {_reason(column): None for column in ignored}
        names = [column.name for column in ignored]
        yield _line(f"ignore = {spelled(names, None)}", ", ".join(reasons))
    texts = [column.name for column in look.ignored if column.holds_texts]
    if texts:
        yield _line(
            f"# texts = {spelled(texts, None)}",
            'instead of ignore, for kernels with function = "spectrum"',
        )
    if look.categorical:
        names = [column.name for column in look.categorical]
        yield _line(f"categorical = {spelled(names, None)}", "a feature for each value")
    rows, columns = look.missing
    if rows:
        where = f"{rows} of {look.n_rows} rows, {columns} column{'s' * (columns > 1)}"
        yield _line('impute = "median"', f"of each training part; {where} miss values")
    for group in look.columns[look.label].alike:
        yield f"# NOTE: the classes {' and '.join(map(repr, group))} differ in capitals alone"
    for column in look.others:
        if (value := column.repeated) is not None and look.row_names is None:
            count = column.counts[value]
            yield (
                f"# NOTE: {column.name!r} would name the rows, but {value!r} occurs {count} times"
            )


def _reason(column: Column) -> str:
    if column.holds_dates:
        return "dates"
    if column.hardly_known:
        return HARDLY_KNOWN if column.counts else NO_VALUE
    if column.holds_texts:
        return "texts"
    if column.name == UNNAMED:
        return "a column without a name"
    if column.names_subjects:
        return "whose the rows are"
    return "another name of the rows" if column.names_rows else "texts that differ in most rows"


def _splits(facts: Facts) -> Iterator[str]:
    yield "\n[preprocessing]"
    yield _line('scale = "zscore"', "fitted on each training part")
    if facts.regression:
        yield _line('target = "zscore"', "so that C does not depend on the units of the labels")
    yield "\n[splits]"
    yield _line('kind = "holdout"', 'or "kfold" with folds = 5')
    yield f"train_fraction = {TRAIN_FRACTION}\nrepeats = {REPEATS}"
    if facts.look is not None:
        yield from _dependence(facts.look)
    yield "\n[selection]"
    if facts.rare is not None:
        yield _line('metric = "balanced_error"', "mean of the error of each class")
    if facts.is_divisible:
        yield _line(f"folds = {FOLDS}", "choose C on each training part alone; 0: on test parts")
    else:
        yield _line("folds = 0", "too few rows of a class, or groups, for inner folds to choose C")


def _dependence(look: TableProfile) -> Iterator[str]:
    """Yield the key of rows that belong together, and a note on dates."""
    column = look.groups
    if column is not None:
        line = f"groups = {spelled(column.name, None)}"
        hinders = _hinders_groups(look, column)
        words = f"{len(column.counts)} values in {look.n_rows} rows: rows of one stay in one part"
        yield _line(f"# {line}" if hinders else line, f"{words}{hinders}")
    dates = [other.name for other in look.others if other.orders_rows]
    if dates and column is None:
        yield "# To test later rows by earlier ones, instead of these lines:"
        yield f'# kind = "time"\n# order = {spelled(dates[0], None)}'


def _hinders_groups(look: TableProfile, column: Column) -> str:
    """Return why a sweep cannot keep the rows of a group together, in words; empty if it can."""
    if column.n_missing:
        return f", once each row has one ({column.n_missing} have none)"
    label = look.columns[look.label]
    if label.is_regression or look.n_rows > MANY_ROWS:
        return ""
    groups: dict[str, set[str]] = {}
    for group, name in zip(column.values, label.values, strict=True):
        groups.setdefault(name, set()).add(group)
    few = min(map(len, groups.values())) < (2 if len(column.counts) < FEW_GROUPS else 3)
    return ", once each class is in more of them" * few


def _bank(facts: Facts) -> Iterator[str]:
    if not facts.n_features:
        yield '\n[[banks]]\nfamily = "precomputed"'
        return
    yield "\n# Features together and one by one; 'mkldist show default' writes the kernels out."
    yield '[[banks]]\nfamily = "default"'


def _methods(facts: Facts) -> Iterator[str]:
    if facts.regression:
        yield _method("spicymkl", 'loss = "squared"', 'C = "path"')
        yield _method("primalmkl", 'loss = "squared"', 'C = "path"')
        return
    series = 'C = "path"'
    yield _method("level", _line(series, "several values, each from the solution at the last"))
    yield _method("uniform", series)
    yield _method("best_single", series)
    yield _method("majority")


def _method(name: str, *lines: str) -> str:
    return "\n".join(["\n[[methods]]", f'name = "{name}"', *lines])


def _line(line: str, comment: str) -> str:
    return f"{line:{COLUMN - 1}} # {in_comment(comment)}" if comment else line


def in_comment(text: str) -> str:
    r"""Return text as a comment of a TOML file may hold it: on one line, control characters named.

    Examples
    --------
    >>> in_comment("d [x]\n e.csv")
    'd [x]\\n e.csv'
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
