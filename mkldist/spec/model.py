"""The words of a sweep file and their meaning, as pydantic models.

The models say what is well-formed; they do no I/O and know nothing of how anything runs.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

from mkldist.spec.banks import BankSpec
from mkldist.spec.graph import GraphTable
from mkldist.spec.kinds import ClassName, Model, Name, NameOrNumber, Option, Positive, Task, several
from mkldist.spec.selection import SelectionSpec
from mkldist.spec.splits import SplitsSpec


class PreprocessingSpec(Model):
    """``[preprocessing]``: scaling of features and targets, and on which rows it is fitted."""

    scale: Literal["zscore", "minmax", "none"] = "zscore"
    fit: Literal["train", "all"] = Field(
        "train",
        description="fit on each split's training and unlabelled rows, or once on all rows "
        "(one shared bank)",
    )
    target: Literal["none", "zscore"] = Field(
        "none",
        description="regression: learn values as they are, or centred and scaled to unit standard "
        "deviation on the training rows; predictions and scores keep the units of the data",
    )


class DatasetSpec(Model):
    """One ``[[datasets]]`` entry: where labels and features (or Gram matrices) come from.

    Exactly one source: `name` alone is looked up in the data directory, then among the bundled
    and the synthetic data sets; `file`, `openml` and `grams` name a source and `name` labels it.
    """

    name: Name
    source: str | None = Field(None, description="name to look up; default the name itself")
    file: str | None = None
    openml: NameOrNumber | None = None
    grams: str | None = None
    labels: str | None = Field(None, description="file of labels beside `grams` without a y")
    task: Task | None = Field(
        None, description="what the labels are: classes or real values; default by the source"
    )
    label: NameOrNumber | None = Field(
        None, description="label column of a table; default the last"
    )
    classes: Annotated[tuple[ClassName, ...], Strict(False), BeforeValidator(several)] | None = (
        Field(None, description="keep only these classes, in this order; of two the second is +1")
    )
    positive: ClassName | None = Field(None, description="this class against the rest")
    per_class: int | None = Field(
        None, ge=1, description="keep so many points of each class, drawn with the sweep's seed"
    )
    impute: Literal["median"] | None = None
    drop_constant: bool = Field(True, description="drop features constant over the data set")
    groups: dict[str, list[NameOrNumber]] = Field(default_factory=dict)
    options: dict[str, Option] = Field(
        default_factory=dict, description="parameters of a synthetic generator"
    )
    preprocessing: PreprocessingSpec | None = Field(
        None, description="in place of ``[preprocessing]``"
    )
    splits: SplitsSpec | None = Field(None, description="in place of ``[splits]``")
    graph: GraphTable | None = Field(None, description="in place of ``[graph]``")

    @model_validator(mode="after")
    def _one_source(self) -> DatasetSpec:
        sources = [s for s in ("source", "file", "openml", "grams") if getattr(self, s) is not None]
        if len(sources) > 1:
            raise ValueError(f"found {' and '.join(sources)}; expected one source of data")
        if self.classes and self.positive is not None:
            raise ValueError("found classes and positive; expected one of them")
        if self.task == "regression" and (self.classes or self.positive is not None):
            found = "classes" if self.classes else "positive"
            raise ValueError(f'found {found} and task = "regression"; expected one of them')
        return self


class MethodSpec(BaseModel):
    """One ``[[methods]]`` entry: a method, and a value or list of values for its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: str
    label: Name | None = None
    kernel_weights: Literal["per-class", "shared"] = Field(
        "per-class", description="of more than two classes: of each class its own, or the same"
    )

    @property
    def key(self) -> str:
        """The name of the method's node in the results."""
        return self.label or self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters as given, scalars or lists."""
        return dict(self.model_extra or {})


class OutputsSpec(Model):
    """``[outputs]``: where results go and what they hold; paths are relative to the caller."""

    path: str | None = Field(None, description="default results/<sweep name>")
    banks: str | None = Field(None, description="default <path>/../banks; <path>/banks if not kept")
    keep_banks: bool = Field(True, description="keep Gram matrices after their runs are recorded")
    predictions: bool = Field(
        False, description="store decision values of test and unlabelled points"
    )
    coefficients: bool = Field(False, description="store expansion coefficients")
    weights: bool = Field(True, description="store kernel weights")
    figures: Annotated[tuple[Literal["decision-boundary"], ...], Strict(False)] = Field(
        (), description="pictures of every method on the first split, for data of two features"
    )


class SweepSpec(Model):
    """A whole sweep file."""

    name: Name
    description: str = ""
    seed: int = Field(0, ge=0)
    tol: Positive | None = Field(None, description="default tolerance of every method")
    execution: Literal["shared", "isolated", "path"] = Field(
        "shared",
        description="solvers share passes, or run one after the other for honest times, or share "
        "passes and start from the solution at the last stronger regularisation",
    )
    memory: str | None = Field(None, description="limit per worker, e.g. '2GiB'")
    datasets: Annotated[tuple[DatasetSpec, ...], Strict(False)] = Field(min_length=1)
    preprocessing: PreprocessingSpec = PreprocessingSpec()
    splits: SplitsSpec = SplitsSpec()
    graph: GraphTable | None = None
    selection: SelectionSpec | None = None
    banks: Annotated[tuple[BankSpec, ...], Strict(False)] = Field(min_length=1)
    methods: Annotated[tuple[MethodSpec, ...], Strict(False)] = Field(min_length=1)
    outputs: OutputsSpec = OutputsSpec()

    def preprocessing_of(self, dataset: DatasetSpec) -> PreprocessingSpec:
        """Return what is done to the features and labels of a data set."""
        return dataset.preprocessing or self.preprocessing

    def splits_of(self, dataset: DatasetSpec) -> SplitsSpec:
        """Return how the rows of a data set are divided."""
        return dataset.splits or self.splits

    def graph_of(self, dataset: DatasetSpec) -> GraphTable | None:
        """Return the graph over the points of a data set; None if there is none."""
        return dataset.graph or self.graph

    @model_validator(mode="after")
    def _distinct_names(self) -> SweepSpec:
        for what, names in (
            ("datasets", [d.name for d in self.datasets]),
            ("banks", [b.label for b in self.banks]),
            ("methods", [m.key for m in self.methods]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                key = "label" if what == "methods" else "name"
                raise ValueError(
                    f"found {twice[0]!r} twice in [[{what}]]; expected a {key} of its own for each"
                )
        return self
