"""Models of ``[[datasets]]`` and ``[preprocessing]``: the data of a sweep and their scaling."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    Strict,
    model_validator,
)

from mkldist.spec.graph import GraphTable
from mkldist.spec.kinds import (
    ClassName,
    ClassWeights,
    Imputation,
    Model,
    Name,
    NameOrNumber,
    Option,
    Task,
    several,
)
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
        description="File of features and labels: `.csv`, `.npz`, `.svm`, `.parquet` or zarr. A "
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
        "or a zarr group of arrays the name of the array of labels, by default `y`.",
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
    n_points: int | None = Field(
        None,
        ge=2,
        description="Keep this many points, drawn with the sweep's seed, of each class in "
        "proportion.",
    )
    class_weight: ClassWeights | None = Field(
        None,
        description="Weights of classes, by which `C` is multiplied: a table by class, 1 for those "
        'that it leaves out; or `"balanced"`, `n / (k n_c)` for class c of k, of the `n` and `n_c` '
        "labelled rows of each training part.",
    )
    weights: str | None = Field(
        None,
        description="Column of a table, or array of a `.npz` file or a zarr group, of row weights "
        "from 0, by which `C` is multiplied. Rows of weight 0 are in no training part. "
        "Preprocessing, normalisation and scores count every other row once.",
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
        description="Keep the features of a `.svm` file, of a sparse `.npz` file, or of a sparse "
        "matrix from Python, sparse. "
        'They need `scale = "none"` or `"tfidf"`, and kernels with `gaussian`, `polynomial` or '
        "`linear`.",
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
        if self.task == "regression" and self.class_weight is not None:
            raise ValueError('found class_weight and task = "regression"; expected weights = ...')
        if self.per_class is not None and self.n_points is not None:
            raise ValueError("found per_class and n_points; expected one of them")
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
