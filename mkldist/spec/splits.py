"""Model of ``[splits]``: how the rows of a data set are divided."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from mkldist.spec.kinds import Model, Sizes

AMOUNTS = ("labelled_per_class", "labelled_fraction", "labelled")
# Keys that have an effect with some kinds of splits alone.
_EFFECTIVE_WITH = {
    "repeats": ("holdout", "kfold", "semi-supervised"),
    "train_fraction": ("holdout",),
    "folds": ("kfold", "time"),
    "order": ("time",),
    "groups": ("holdout", "kfold", "leave-one-group-out"),
    "column": ("predefined",),
    "n_train": ("holdout", "kfold", "leave-one-group-out", "time", "predefined"),
    "stratified": ("holdout", "kfold", "semi-supervised"),
} | dict.fromkeys((*AMOUNTS, "test_fraction"), ("semi-supervised",))


class SplitsSpec(Model):
    """``[splits]``: how rows are divided into training, unlabelled and test parts."""

    kind: Literal[
        "holdout", "kfold", "leave-one-group-out", "time", "predefined", "semi-supervised"
    ] = Field(
        "holdout",
        description="Random training and test parts; folds that are the test part in turn; each of "
        "the `groups` in turn, such as a hospital, as the test part; folds in the order of time, "
        "each after a training part of all rows before it; parts that the data file holds; or a "
        "few labelled rows, the others unlabelled.",
    )
    repeats: int = Field(
        1,
        ge=1,
        le=100_000,
        description="Repetitions with other random draws, where there are draws.",
    )
    train_fraction: float = Field(
        0.5, gt=0, lt=1, description='`"holdout"`: share of the rows in the training part.'
    )
    folds: int = Field(5, ge=2, description='`"kfold"` and `"time"`: number of folds.')
    order: str | None = Field(
        None,
        description='`"time"`: column of a table, of numbers or of dates such as 2021-03-01 or '
        "31.3.2021, that orders the rows. By default they are in the order of the file.",
    )
    groups: str | None = Field(
        None,
        description='`"holdout"`, `"kfold"` and `"leave-one-group-out"`: column of a table whose '
        "rows of equal value, such as those of one patient, stay in one part. Shares and folds "
        "then count groups. The inner folds of `[selection]` keep them together too.",
    )
    column: str | None = Field(
        None,
        description='`"predefined"`: column of a table that says `train`, `test` or `unlabelled` '
        "in each row.",
    )
    labelled_per_class: int | None = Field(
        None, ge=1, description='`"semi-supervised"`: labelled rows of each class.'
    )
    labelled_fraction: float | None = Field(
        None, gt=0, lt=1, description='`"semi-supervised"`: share of each class that is labelled.'
    )
    labelled: int | None = Field(
        None,
        ge=2,
        description='`"semi-supervised"`: labelled rows in all, at least one of each class.',
    )
    test_fraction: float = Field(
        0.0,
        ge=0,
        lt=1,
        description='`"semi-supervised"`: share of the rows that no method sees, neither features '
        "nor labels.",
    )
    stratified: bool | None = Field(
        None,
        description="Draw from each class in proportion, where there are draws. By default true "
        "for classes, and false for real values and with `groups`.",
    )
    n_train: Sizes | None = Field(
        None,
        description="Use only this many rows of each training part, drawn with the sweep's seed: "
        "from each class in proportion where the splits are stratified; of `groups`, as many whole "
        "ones as fit. A list makes a data set of each size, each within the next larger one and "
        "with the same test parts, named by the data set and the size, as `NAME-100`.",
    )
    first: int | None = Field(None, ge=1, description="Use only this many of the splits.")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table by which its rows are divided."""
        named = (self.groups, self.order, self.column)
        return tuple(name for name in named if name is not None)

    @model_validator(mode="after")
    def _of_one_kind(self) -> SplitsSpec:
        for name, kinds in _EFFECTIVE_WITH.items():
            if name in self.model_fields_set and self.kind not in kinds:
                raise ValueError(
                    f'found {name} with kind = "{self.kind}"; expected {self._instead(name, kinds)}'
                )
        if self.groups is not None and self.stratified:
            raise ValueError("found groups with stratified = true; expected one of them")
        if self.kind != "semi-supervised":
            return self
        amounts = [name for name in AMOUNTS if getattr(self, name) is not None]
        if len(amounts) != 1:
            found = " and ".join(amounts) or "no number of labelled rows"
            raise ValueError(f"found {found}; expected one of {', '.join(AMOUNTS)}")
        if self.stratified is False and self.labelled is None:
            raise ValueError(f"found stratified = false with {amounts[0]}; expected labelled = ...")
        return self

    def _instead(self, name: str, kinds: tuple[str, ...]) -> str:
        """Return the alternatives to a key that has no effect."""
        if self.kind == "semi-supervised":
            return f"one of {', '.join(AMOUNTS)}"
        *first, last = (f'"{kind}"' for kind in kinds)
        choice = f"{', '.join(first)} or {last}" if first else last
        return f"kind = {choice}, or no {name}"
