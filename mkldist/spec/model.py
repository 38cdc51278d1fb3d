"""Models of a sweep file: its keys, their types, defaults and meaning.

The models decide which files are well-formed.  They do no I/O and do not depend on how a sweep
runs.  ``docs/reference/sweep_file.md`` shows the description of every field.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeGuard

from pydantic import ConfigDict, Field, Strict, field_validator, model_validator

from mkldist.core.metrics import METRICS, Metric, MetricName, default_metric
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, GraphTable, PreprocessingSpec, SplitsSpec
from mkldist.spec.kinds import Finite, Model, Name, PathText, Positive, Task, check_kind, size_name

# Keys that have an effect with some kinds of search alone.
_EFFECTIVE_WITH = dict.fromkeys(("factor", "rungs", "first"), ("halving",))


class Distribution(Model):
    """Distribution of a hyperparameter: ``{low, high, scale}``."""

    low: Finite
    """Least value."""
    high: Finite
    """Greatest value."""
    scale: Literal["linear", "log"] = "linear"
    """Uniform in the value or in its logarithm."""

    @model_validator(mode="after")
    def _ordered(self) -> Distribution:
        if self.low >= self.high:
            raise ValueError(f"found low = {self.low:g}, high = {self.high:g}; expected low < high")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"found a log scale from {self.low:g}; expected low above 0")
        return self


def is_distribution(value: Any) -> bool:
    """Return True if a value of a parameter is meant as a distribution."""
    return isinstance(value, dict) and not {"low", "high"}.isdisjoint(value)


MOST_TRIALS = 100_000


class SearchSpec(Model):
    """``[search]``: settings drawn from distributions in place of a grid.

    Trials are compared by their error on the inner folds of ``[selection]``, never by test labels.
    """

    kind: Literal["random", "halving"]
    """Random settings; or random settings of which the best go on from rung to rung, at ever
    smaller tolerances."""
    trials: int = Field(ge=1, le=MOST_TRIALS)
    """Settings to try of each method on each bank, data set and split; fewer where there are not so
    many."""
    seed: int | None = Field(None, ge=0)
    """Seed of the trials. By default the sweep's seed."""
    factor: int = Field(3, ge=2, le=MOST_TRIALS)
    """`"halving"`: one trial of so many goes on to the next rung."""
    rungs: int = Field(3, ge=2, le=50)
    """`"halving"`: number of rungs."""
    first: Positive | None = None
    """`"halving"`: tolerance of the first rung, 0.3 by default; the others fall in equal ratios to
    the method's own."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> SearchSpec:
        check_kind(self, _EFFECTIVE_WITH)
        if self.kind == "halving" and self.trials < 2:
            raise ValueError(f"found trials = {self.trials}; expected at least 2 to halve")
        return self


class SelectionSpec(Model):
    """``[selection]``: a metric, and inner cross-validation on the training rows of every split.

    Selection never uses test labels or labels of unlabelled rows.
    """

    metric: MetricName | None = None
    """Score by which settings and methods are selected, marked and compared. By default `error` for
    classes and `rmse` for real values."""
    folds: int = Field(5, ge=0)
    """Inner folds of the labelled training rows, each class in proportion. Omit it to use up to 5
    folds, and fewer where a class has fewer rows. 0 stands for no inner folds: the test parts then
    rank the settings by the metric."""
    repeats: int = Field(1, ge=1, le=1000)
    """Repetitions, each with other folds."""

    @field_validator("folds")
    @classmethod
    def _several(cls, folds: int) -> int:
        if folds == 1:
            raise ValueError("found 1; expected 2 or more, or 0 for no inner folds")
        return folds

    @model_validator(mode="after")
    def _repeats_folds(self) -> SelectionSpec:
        if not self.folds and self.repeats > 1:
            raise ValueError(f"found repeats = {self.repeats} of folds = 0; expected folds")
        return self

    def identity(self, seed: int) -> dict[str, Any]:
        """Return the values that distinguish these folds from others of the same rows."""
        return {"folds": self.folds, "repeats": self.repeats, "seed": seed}


FROM = "from"
"""Key of the table that names the other method."""


def is_from_method(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return True if a value of a parameter is meant to come from another method."""
    return isinstance(value, dict) and FROM in value


class MethodSpec(Model):
    """One ``[[methods]]`` entry: a method, and a value or list of values for its parameters.

    Every key besides those below is a parameter of the method.
    """

    model_config = ConfigDict(extra="allow")

    name: str
    """Name of the method; `mkldist list methods` shows all."""
    label: Name | None = None
    """Name in the results. By default the name of the method; entries of the same method need
    labels of their own."""
    kernel_weights: Literal["per-class", "shared"] = "per-class"
    """With more than two classes: kernel weights for each class, or one set of weights for all
    classes."""
    banks: Annotated[tuple[str, ...], Strict(False)] | None = Field(None, min_length=1)
    """Banks on which the method runs, by name; the name of a list of sizes stands for all of them.
    By default every bank."""
    on: dict[str, dict[str, Any]] = Field({})
    """Parameters on single data sets, in place of those of the entry: a table for each data set, by
    its name."""

    @property
    def key(self) -> str:
        """Name of the method's node in the results."""
        return self.label or self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters of the method as the file gives them, single values or lists."""
        return dict(self.model_extra or {})

    def settings_on(self, dataset: str) -> dict[str, Any]:
        """Return the parameters on a data set, by its name in the file."""
        return self.settings | self.on.get(dataset, {})

    def runs_on(self, bank: BankSpec) -> bool:
        """Return True if the method runs on a bank."""
        return self.banks is None or bool({bank.label, bank.series} & {*self.banks})


class OutputsSpec(Model):
    """``[outputs]``: folders of the results, and what they hold.

    Relative paths start at the folder in which the command runs.
    """

    path: PathText | None = None
    """Folder of the results. By default `results/NAME`, of the sweep's name."""
    banks: PathText | None = None
    """Folder or URL of stored Gram matrices. By default `banks` in the folder of the results;
    beside that folder, where sweeps share it, if banks are kept."""
    keep_banks: bool = False
    """Keep stored Gram matrices for further runs. Otherwise each bank is deleted when its runs are
    recorded."""
    predictions: bool | None = None
    """Keep decision values of test and unlabelled points. By default a sweep does whose runs times
    rows are a million at most."""
    coefficients: bool = False
    """Keep expansion coefficients of the decision function."""
    weights: bool = True
    """Keep kernel weights."""


class SweepSpec(Model):
    """A whole sweep file."""

    name: Name
    """Name of the sweep, and of the folder of its results."""
    description: str = ""
    """A line for `mkldist list sweeps`."""
    seed: int = Field(0, ge=0)
    """Seed of all random draws."""
    tol: Positive | None = None
    """Relative duality gap at which methods stop that have no `tol` of their own. By default every
    method's own."""
    execution: Literal["shared", "isolated", "path"] = "shared"
    """Order of the runs: all runs on a bank advance together and share its passes; or one at a
    time, alone on this machine, for times that can be compared; or together, each started from the
    solution at the next stronger regularisation."""
    memory: str | None = None
    """Memory that each worker may use, such as `"2GiB"`."""
    wall_time: str | None = None
    """Time after which a call of `mkldist sweep` stops, such as `"90m"` or `"2h"`; the same command
    resumes."""
    worker_wait: str | None = None
    """Time without any worker after which a call ends, such as `"2h"`. By default `"10m"`, and none
    for the workers of a cluster file, whose jobs may stand in a queue."""
    datasets: Annotated[tuple[DatasetSpec, ...], Strict(False)] = Field(min_length=1)
    """Data sets, as `[[datasets]]` entries."""
    preprocessing: PreprocessingSpec = PreprocessingSpec()
    """Scaling of features and labels, as `[preprocessing]`."""
    splits: SplitsSpec = SplitsSpec()
    """Training, unlabelled and test parts, as `[splits]`."""
    graph: GraphTable | None = None
    """Graph of neighbouring points, as `[graph]`."""
    selection: SelectionSpec | None = None
    """Selection of hyperparameters by cross-validation, as `[selection]`."""
    search: SearchSpec | None = None
    """Search of hyperparameters in distributions, as `[search]`."""
    banks: Annotated[tuple[BankSpec, ...], Strict(False)] = Field(min_length=1)
    """Banks of kernels, as `[[banks]]` entries."""
    methods: Annotated[tuple[MethodSpec, ...], Strict(False)] = Field(min_length=1)
    """Methods, as `[[methods]]` entries."""
    outputs: OutputsSpec = OutputsSpec()
    """Folders and contents of the results, as `[outputs]`."""

    @property
    def sized_banks(self) -> tuple[BankSpec, ...]:
        """The banks, with one of each size in place of a list of sizes."""
        return tuple(sized for bank in self.banks for sized in bank.sized)

    @property
    def sized_datasets(self) -> tuple[DatasetSpec, ...]:
        """The data sets, with one of each size in place of a list of sizes."""
        return tuple(sized for dataset in self.datasets for sized in self.sizes_of(dataset))

    @property
    def is_study(self) -> bool:
        """True if there is a list of sizes."""
        banks = any(bank.series != bank.label for bank in self.sized_banks)
        return banks or any(entry.series != entry.name for entry in self.sized_datasets)

    @property
    def inner_folds(self) -> SelectionSpec | None:
        """The selection, if it has inner folds."""
        return self.selection if self.selection and self.selection.folds else None

    def metric_of(self, task: Task) -> Metric:
        """Return the metric that ranks the results of the data sets of a task."""
        named = self.selection.metric if self.selection else None
        return METRICS[named] if named else default_metric(task)

    def sizes_of(self, dataset: DatasetSpec) -> tuple[DatasetSpec, ...]:
        """Return a data set of each size of its training parts, or itself without a list."""
        splits = self.splits_of(dataset)
        if not isinstance(splits.n_train, list):
            return (dataset,)
        found = []
        for size in splits.n_train:
            update: dict[str, Any] = {
                "name": size_name(dataset.name, size),
                "source": dataset.source,
                "splits": splits.model_copy(update={"n_train": size}),
            }
            if dataset.file is None and dataset.grams is None:
                update["source"] = dataset.source or dataset.name
            entry = dataset.model_copy(update=update)
            entry._series = dataset.name
            found.append(entry)
        return tuple(found)

    def preprocessing_of(self, dataset: DatasetSpec) -> PreprocessingSpec:
        """Return the preprocessing of a data set."""
        return dataset.preprocessing or self.preprocessing

    def splits_of(self, dataset: DatasetSpec) -> SplitsSpec:
        """Return the splits of a data set."""
        return dataset.splits or self.splits

    def graph_of(self, dataset: DatasetSpec) -> GraphTable | None:
        """Return the graph over the points of a data set, None if it has none."""
        return dataset.graph or self.graph

    @model_validator(mode="after")
    def _distinct_names(self) -> SweepSpec:
        sizes = [(d.name, d.series, self.splits_of(d).n_train) for d in self.sized_datasets]
        kernels = [(b.label, b.series, b.n_kernels) for b in self.sized_banks]
        for table, noun, key, names in (
            ("datasets", "data set", "n_train", sizes),
            ("banks", "bank", "n_kernels", kernels),
            ("methods", "label", "", [(m.key, m.key, None) for m in self.methods]),
        ):
            all_names = [name for name, *_ in names]
            twice = min((name for name in all_names if all_names.count(name) > 1), default="")
            for name, series, size in names:
                if name == twice != series:  # made by a list of sizes
                    raise ValueError(
                        f"found another {noun} {name!r}, the name that {noun} {series!r} has with "
                        f"{key} = {size}; expected a name of its own for each of [[{table}]]"
                    )
            if twice:
                what = "label" if table == "methods" else "name"
                raise ValueError(
                    f"found {twice!r} twice in [[{table}]]; expected a {what} of its own for each"
                )
        return self
