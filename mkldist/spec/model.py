"""Models of a sweep file: its keys, their types, defaults and meaning.

The models decide which files are well-formed.  They do no I/O and do not depend on how a sweep
runs.  ``sweeps/README.md`` shows the description of every field.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    Strict,
    model_validator,
)

from mkldist.spec.banks import BankSpec
from mkldist.spec.graph import GraphTable
from mkldist.spec.kinds import (
    ClassName,
    Imputation,
    Model,
    Name,
    NameOrNumber,
    Option,
    Positive,
    Task,
    several,
    size_name,
)
from mkldist.spec.search import SearchSpec
from mkldist.spec.selection import SelectionSpec
from mkldist.spec.splits import SplitsSpec
from mkldist.spec.views import ViewSpec


class PreprocessingSpec(Model):
    """``[preprocessing]``: scaling of features and of real-valued labels; rows it is fitted on."""

    scale: Literal["zscore", "minmax", "tfidf", "none"] = Field(
        "zscore",
        description="Scaling of each feature: to mean 0 and standard deviation 1; to the range "
        "from -1 to 1; of counts of terms by ln((1 + n) / (1 + n_t)) + 1, where n_t of the n "
        "fitted rows have the term; or none.",
    )
    fit: Literal["train", "all"] = Field(
        "train",
        description="Rows on which scaling and imputation are fitted: the training and unlabelled "
        "rows of each split, with a bank for each split; or all rows, with one bank for all "
        "splits.",
    )
    target: Literal["none", "zscore"] = Field(
        "none",
        description="Scaling of real-valued labels: none, or to mean 0 and standard deviation 1 "
        "on the training rows. Predictions and scores keep the units of the data.",
    )


class DatasetSpec(Model):
    """One ``[[datasets]]`` entry: the source of labels and of features or Gram matrices.

    A data set has one source.  `file`, `openml` or `grams` names it, and `name` is then a label
    for the results.  Otherwise the name, or `source`, is looked up in the data directories, then
    among the bundled data sets, then among the synthetic ones.
    """

    name: Name = Field(
        description="Name in the results. Without another source it is looked up in the folders "
        "of `--data-dir`, then among the data sets of scikit-learn, then among the synthetic ones."
    )
    source: str | None = Field(
        None, description="Name to look up, if it is not the name in the results."
    )
    file: str | None = Field(
        None,
        description="File of features and labels: `.csv`, `.npz`, `.svm` or `.parquet`. A "
        "relative path starts at the folder of the sweep file, then at those of `--data-dir`.",
    )
    openml: NameOrNumber | None = Field(
        None, description="Name or number of a data set of OpenML, which is downloaded once."
    )
    grams: str | None = Field(
        None,
        description="File of M Gram matrices over the points, shape (M, n, n): `.npz`, `.npy` or "
        'zarr. Their bank has `family = "precomputed"`.',
    )
    labels: str | None = Field(
        None, description="File of labels beside a file of Gram matrices that holds none."
    )
    task: Task | None = Field(
        None,
        description="Labels are classes or real values. By default the source decides: its "
        "labels are classes except in data sets that are known as regression.",
    )
    label: NameOrNumber | None = Field(
        None,
        description="Label column of a table, by name, or by number from 0. By default the one "
        "that is called label, class, target, y, diagnosis, outcome or response. In a `.npz` file "
        "the name of the array of labels, by default `y`.",
    )
    id: str | None = Field(
        None, description="Column of a table that names the rows; it is no feature."
    )
    ignore: Annotated[tuple[str, ...], Strict(False)] = Field(
        (), description="Columns of a table to leave out, by name."
    )
    categorical: Annotated[tuple[str, ...], Strict(False)] = Field(
        (),
        description="Columns of categories, by name. Each becomes one feature for each category, "
        "1 where a row has it and 0 elsewhere, and a group of the column's name, which `features` "
        "of a kernel may use. A missing value is a category of its own.",
    )
    texts: Annotated[tuple[str, ...], Strict(False)] = Field(
        (),
        description="Columns of texts of a table, or arrays of texts of a `.npz` file, by name. "
        '`features` of kernels of texts, such as `"spectrum"`, names them.',
    )
    classes: Annotated[tuple[ClassName, ...], Strict(False), BeforeValidator(several)] | None = (
        Field(
            None,
            description="Keep only these classes, in this order. Of two, the second is +1.",
        )
    )
    positive: ClassName | None = Field(
        None, description="Make two classes: this one is +1 and all others are -1."
    )
    per_class: int | None = Field(
        None,
        ge=1,
        description="Keep this many points of each class, drawn with the sweep's seed.",
    )
    impute: Imputation | None = Field(
        None,
        description="Replace missing values of a feature by the median, the mean or the most "
        "frequent of its values on the rows that `fit` of `[preprocessing]` names: by default "
        "those of the training part of each split. Without it missing values are an error.",
    )
    drop_constant: bool = Field(
        True, description="Drop features that are constant over the data set."
    )
    sparse: bool = Field(
        False,
        description="Keep the features of a `.svm` file, or of a sparse `.npz` file, sparse. They "
        'need `scale = "none"`, and kernels with `gaussian`, `polynomial` or `linear`.',
    )
    groups: dict[str, list[NameOrNumber]] = Field(
        default_factory=dict,
        description="Names for groups of features, given by name or by number from 0, which "
        "`features` of a kernel may use.",
    )
    group_file: str | None = Field(
        None,
        description="File of more groups: `.gmt` as MSigDB writes it, a `.csv` of two columns, "
        "group and feature, or a `.json` or `.toml` table of lists.",
    )
    views: Annotated[tuple[ViewSpec, ...], Strict(False)] = Field(
        (),
        description="Blocks of features, or Gram matrices, of the same points, as "
        "`[[datasets.views]]` entries.",
    )
    options: dict[str, Option] = Field(
        default_factory=dict, description="Parameters of a synthetic data set, such as `n`."
    )
    preprocessing: PreprocessingSpec | None = Field(
        None, description="A table for this data set in place of `[preprocessing]`."
    )
    splits: SplitsSpec | None = Field(
        None, description="A table for this data set in place of `[splits]`."
    )
    graph: GraphTable | None = Field(
        None, description="A table for this data set in place of `[graph]`."
    )

    _series: str = PrivateAttr("")

    @property
    def series(self) -> str:
        """The name in the sweep file: that of all data sets of one list of sizes."""
        return self._series or self.name

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
        names = [*(view.name for view in self.views), *self.groups]
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            raise ValueError(f"found {twice[0]!r} twice in views and groups; expected other names")
        for key in ("views", "impute", "categorical", "texts"):
            if self.sparse and getattr(self, key):
                raise ValueError(f"found sparse and {key}; expected one of them")
        if self.grams is not None and self.views:
            raise ValueError("found grams and views; expected grams = ... under one of the views")
        return self


class MethodSpec(BaseModel):
    """One ``[[methods]]`` entry: a method, and a value or list of values for its parameters.

    Every key besides those below is a parameter of the method.
    """

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: str = Field(description="Name of the method; `mkldist list methods` shows all.")
    label: Name | None = Field(
        None,
        description="Name in the results. By default the name of the method; entries of the same "
        "method need labels of their own.",
    )
    kernel_weights: Literal["per-class", "shared"] = Field(
        "per-class",
        description="With more than two classes: kernel weights for each class, or one set of "
        "weights for all classes.",
    )
    banks: Annotated[tuple[str, ...], Strict(False)] | None = Field(
        None,
        min_length=1,
        description="Banks on which the method runs, by name; the name of a list of sizes stands "
        "for all of them. By default every bank.",
    )

    @property
    def key(self) -> str:
        """Name of the method's node in the results."""
        return self.label or self.name

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters of the method as the file gives them, single values or lists."""
        return dict(self.model_extra or {})

    def runs_on(self, bank: BankSpec) -> bool:
        """Return True if the method runs on a bank."""
        return self.banks is None or bool({bank.label, bank.series} & {*self.banks})


class OutputsSpec(Model):
    """``[outputs]``: folders of the results, and what they hold.

    Relative paths start at the folder in which the command runs.
    """

    path: str | None = Field(
        None, description="Folder of the results. By default `results/NAME`, of the sweep's name."
    )
    banks: str | None = Field(
        None,
        description="Folder or URL of stored Gram matrices. By default `banks` beside the folder "
        "of the results, where sweeps share it; inside that folder if banks are not kept.",
    )
    keep_banks: bool = Field(
        True,
        description="Keep stored Gram matrices. Otherwise each bank is deleted when its runs are "
        "recorded.",
    )
    predictions: bool = Field(
        False, description="Keep decision values of test and unlabelled points."
    )
    coefficients: bool = Field(
        False, description="Keep expansion coefficients of the decision function."
    )
    weights: bool = Field(True, description="Keep kernel weights.")
    figures: Annotated[tuple[Literal["decision-boundary"], ...], Strict(False)] = Field(
        (),
        description="Figures to draw: decision boundaries of every method on the first split, for "
        "data of two features.",
    )


class SweepSpec(Model):
    """A whole sweep file."""

    name: Name = Field(description="Name of the sweep, and of the folder of its results.")
    description: str = Field("", description="A line for `mkldist list sweeps`.")
    seed: int = Field(0, ge=0, description="Seed of all random draws.")
    tol: Positive | None = Field(
        None,
        description="Relative duality gap at which methods stop that have no `tol` of their own. "
        "By default every method's own.",
    )
    execution: Literal["shared", "isolated", "path"] = Field(
        "shared",
        description="Order of the runs: all runs on a bank advance together and share its "
        "passes; or one at a time, alone on this machine, for times that can be compared; or "
        "together, each "
        "started from the solution at the next stronger regularisation.",
    )
    memory: str | None = Field(
        None, description='Memory that each worker may use, such as `"2GiB"`.'
    )
    datasets: Annotated[tuple[DatasetSpec, ...], Strict(False)] = Field(
        min_length=1, description="Data sets, as `[[datasets]]` entries."
    )
    preprocessing: PreprocessingSpec = Field(
        PreprocessingSpec(), description="Scaling of features and labels, as `[preprocessing]`."
    )
    splits: SplitsSpec = Field(
        SplitsSpec(), description="Training, unlabelled and test parts, as `[splits]`."
    )
    graph: GraphTable | None = Field(
        None, description="Graph of neighbouring points, as `[graph]`."
    )
    selection: SelectionSpec | None = Field(
        None, description="Selection of hyperparameters by cross-validation, as `[selection]`."
    )
    search: SearchSpec | None = Field(
        None, description="Search of hyperparameters in distributions, as `[search]`."
    )
    banks: Annotated[tuple[BankSpec, ...], Strict(False)] = Field(
        min_length=1, description="Banks of kernels, as `[[banks]]` entries."
    )
    methods: Annotated[tuple[MethodSpec, ...], Strict(False)] = Field(
        min_length=1, description="Methods, as `[[methods]]` entries."
    )
    outputs: OutputsSpec = Field(
        OutputsSpec(), description="Folders and contents of the results, as `[outputs]`."
    )

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
            if dataset.file is None and dataset.openml is None and dataset.grams is None:
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
        for what, names in (
            ("datasets", [d.name for d in self.sized_datasets]),
            ("banks", [b.label for b in self.sized_banks]),
            ("methods", [m.key for m in self.methods]),
        ):
            twice = sorted({n for n in names if names.count(n) > 1})
            if twice:
                made = self._size_that_makes(what, twice[0])
                if made:
                    raise ValueError(made)
                key = "label" if what == "methods" else "name"
                raise ValueError(
                    f"found {twice[0]!r} twice in [[{what}]]; expected a {key} of its own for each"
                )
        return self

    def _size_that_makes(self, what: str, name: str) -> str:
        """Return what to say of a list of sizes that makes a name which another entry has too."""
        entries = {
            "datasets": [
                (d.series, d.name, self.splits_of(d).n_train) for d in self.sized_datasets
            ],
            "banks": [(b.series, b.label, b.n_kernels) for b in self.sized_banks],
        }.get(what, [])
        for series, own, size in entries:
            if own == name != series:
                kind, key = ("bank", "n_kernels") if what == "banks" else ("data set", "n_train")
                return (
                    f"found another {kind} {name!r}, the name that {kind} {series!r} has with "
                    f"{key} = {size}; expected a name of its own for each of [[{what}]]"
                )
        return ""
