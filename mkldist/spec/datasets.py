"""Models of ``[[datasets]]``, and of ``[preprocessing]``, ``[splits]`` and ``[graph]`` of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, Strict, model_validator

from mkldist.spec.kinds import (
    ClassName,
    ClassWeights,
    Imputation,
    Indefinite,
    MissingView,
    Model,
    Name,
    NameOrNumber,
    Option,
    PathText,
    Positive,
    Sizes,
    Task,
    check_kind,
    several,
)


class GraphSpec(Model):
    """The edges of a graph, their weights, and the Laplacian that is made of them."""

    distance: Literal["euclidean", "cosine", "precomputed"] = "euclidean"
    """Distance between points: Euclidean; 1 - cosine, as for text; or any other, given."""
    kind: Literal["knn", "epsilon"] = "knn"
    """`"knn"` joins each point to its nearest neighbours, `"epsilon"` to all points within a
    distance."""
    neighbours: int = Field(10, ge=1)
    """Nearest neighbours of each point, for `"knn"`. An edge joins two points if either is among
    the nearest of the other."""
    epsilon: Positive | None = None
    """Largest distance between neighbours, for `"epsilon"`, which needs it."""
    weights: Literal["binary", "heat"] = "binary"
    """Weight w of an edge: 1, or exp(-distance²/(2 width²))."""
    width: Positive | None = None
    """Width of `"heat"` weights. By default the mean distance to the neighbours."""
    laplacian: Literal["combinatorial", "normalised"] = "combinatorial"
    """Laplacian L of the weights W with degrees D: D - W, or D^(-1/2) (D - W) D^(-1/2)."""
    power: int = Field(1, ge=1, le=10)
    """Power p of the iterated Laplacian L^p that methods use."""

    @model_validator(mode="after")
    def _fits_together(self) -> GraphSpec:
        if self.kind == "epsilon" and self.epsilon is None:
            raise ValueError("found no epsilon; expected epsilon = ... with kind = 'epsilon'")
        check_kind(self, {"epsilon": ("epsilon",), "neighbours": ("knn",)})
        if self.weights == "binary" and self.width is not None:
            raise ValueError(
                f"found width = {self.width:g} with weights = 'binary'; expected weights = 'heat'"
            )
        return self


class GraphTable(GraphSpec):
    """``[graph]``: the graph whose Laplacian the semi-supervised methods of a sweep are given."""

    features: Literal["preprocessed", "raw"] | None = None
    """Features between which distances are taken. By default preprocessed ones for `"euclidean"`,
    and raw ones for `"cosine"`, to which scaling single features does harm."""
    distances: PathText | None = None
    """`.npy` file of `"precomputed"` distances (n, n) between all points that the sweep takes, in
    their order: symmetric, none below 0, and 0 on the diagonal."""

    @model_validator(mode="before")
    @classmethod
    def _of_file(cls, keys: Any) -> Any:
        given = isinstance(keys, dict) and keys.get("distances") is not None
        return {"distance": "precomputed", **keys} if given else keys

    @model_validator(mode="after")
    def _one_source(self) -> GraphTable:
        if (self.distances is None) == (self.distance == "precomputed"):
            found = "no distances" if self.distances is None else "distances"
            raise ValueError(
                f"found {found} with distance = {self.distance!r}; expected distances = a .npy "
                "file, with distance = 'precomputed' or without distance"
            )
        if self.distances is not None and self.features is not None:
            raise ValueError("found features and distances; expected one of them")
        return self

    @property
    def of_raw_features(self) -> bool:
        """True if distances are between points as they are in the data."""
        if self.features is None:
            return self.distance != "euclidean"
        return self.features == "raw"

    @property
    def graph(self) -> GraphSpec:
        """The graph itself, without the choice of features."""
        return GraphSpec(**self.model_dump(exclude={"features", "distances"}, exclude_unset=True))

    @property
    def identity(self) -> dict[str, Any]:
        """Fields that distinguish graphs of the same data set and preprocessing."""
        return self.graph.model_dump() | {"raw": self.of_raw_features}


AMOUNTS = ("labelled_per_class", "labelled_fraction", "labelled")
FOLDS = ("kfold", "leave-one-group-out", "time")
"""Kinds of splits whose test parts are folds of repetitions."""
UNLABELLED = ("semi-supervised", "predefined")
"""Kinds of splits that may have unlabelled rows."""
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
    ] = "holdout"
    """Random training and test parts; folds that are the test part in turn; each of the `groups` in
    turn, such as a hospital, as the test part; folds in the order of time, each after a training
    part of all rows before it; parts that the data file holds; or a few labelled rows, the others
    unlabelled."""
    repeats: int = Field(1, ge=1, le=100_000)
    """Repetitions with other random draws, where there are draws."""
    train_fraction: float = Field(0.5, gt=0, lt=1)
    """`"holdout"`: share of the rows in the training part."""
    folds: int = Field(5, ge=2)
    """`"kfold"` and `"time"`: number of folds."""
    order: str | None = None
    """`"time"`: column of a table, of numbers or of dates such as 2021-03-01 or 31.3.2021, that
    orders the rows. By default they are in the order of the file."""
    groups: str | None = None
    """`"holdout"`, `"kfold"` and `"leave-one-group-out"`: column of a table whose rows of equal
    value, such as those of one patient, stay in one part. Shares and folds then count groups. The
    inner folds of `[selection]` keep them together too."""
    column: str | None = None
    """`"predefined"`: column of a table that says `train`, `test` or `unlabelled` in each row."""
    labelled_per_class: int | None = Field(None, ge=1)
    """`"semi-supervised"`: labelled rows of each class."""
    labelled_fraction: float | None = Field(None, gt=0, lt=1)
    """`"semi-supervised"`: share of each class that is labelled."""
    labelled: int | None = Field(None, ge=2)
    """`"semi-supervised"`: labelled rows in all, at least one of each class."""
    test_fraction: float = Field(0.0, ge=0, lt=1)
    """`"semi-supervised"`: share of the rows that no method sees, neither features nor labels."""
    stratified: bool | None = None
    """Draw from each class in proportion, where there are draws; of `groups`, as nearly as whole
    groups allow. By default true for classes and false for real values."""
    n_train: Sizes | None = None
    """Use only this many rows of each training part, drawn with the sweep's seed: from each class
    in proportion where the splits are stratified; of `groups`, as many whole ones as fit. A list
    makes a data set of each size, each within the next larger one and with the same test parts,
    named by the data set and the size, as `NAME-100`."""
    first: int | None = Field(None, ge=1)
    """Use only this many of the splits."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table by which its rows are divided."""
        named = (self.groups, self.order, self.column)
        return tuple(name for name in named if name is not None)

    @model_validator(mode="after")
    def _of_one_kind(self) -> SplitsSpec:
        amount = f"one of {', '.join(AMOUNTS)}" if self.kind == "semi-supervised" else ""
        check_kind(self, _EFFECTIVE_WITH, amount)
        if self.kind != "semi-supervised":
            return self
        amounts = [name for name in AMOUNTS if getattr(self, name) is not None]
        if len(amounts) != 1:
            found = " and ".join(amounts) or "no number of labelled rows"
            raise ValueError(f"found {found}; expected one of {', '.join(AMOUNTS)}")
        if self.stratified is False and self.labelled is None:
            raise ValueError(f"found stratified = false with {amounts[0]}; expected labelled = ...")
        return self


WHITE_SPACE = "whitespace"


def _known_encoding(name: str) -> str:
    """Return the name of an encoding that Python knows."""
    try:
        "".encode(name)
    except LookupError:
        expected = "the name of an encoding, such as 'utf-16' or 'latin-1'"
        raise ValueError(f"found {name!r}; expected {expected}") from None
    return name


class TableFormat(Model):
    """How a table is written: the file of a data set or of a view."""

    part: str | None = None
    """Sheet of an `.xlsx` file, by default the first; or matrix of an `.h5ad` file in place of `X`:
    a layer, an array of `obsm`, or `obs`."""
    transpose: bool = False
    """The rows of the file are features, named by its first column, and its other columns are
    samples, named by the header, as in tables of genes by samples. Arrays `x` are (d, n)."""
    header: bool | None = None
    """The first line of a text table or a sheet names the columns; or, if false, it is a row. By
    default it names them, and is refused where it looks like a row."""
    names: Annotated[tuple[str, ...], Strict(False)] = ()
    """Names of all columns of a text table or a sheet without a header, by default `f0`, `f1`, …;
    with `header = true`, in place of those in the file."""
    separator: Annotated[str, Field(pattern="^(.|\t|whitespace)$")] | None = None
    """What separates the fields of a text table: one character, or `"whitespace"`. By default
    comma, semicolon, tab or white space, whichever its first lines hold."""
    comment: Annotated[str, Field(min_length=1)] | None = None
    """Beginning of lines of a text table to skip, such as `"#"`."""
    encoding: Annotated[str, AfterValidator(_known_encoding)] | None = None
    """Encoding of a text table, such as `"latin-1"`. By default UTF-8, or UTF-16 where its first
    bytes look so."""
    missing_values: Annotated[tuple[Option, ...], Strict(False)] = ()
    """Values of a table that stand for missing ones, such as `["-", -999]`, beside empty fields and
    `?`, `NA`, `N/A`, `#N/A`, `NaN`, `null` and `none` in upper or lower case."""
    decimal: Annotated[str, Field(pattern="^[.,]$")] = "."
    """Decimal point of the numbers in texts: `"."` or `","`."""
    thousands: Annotated[str, Field(pattern=r"^[.,'\s_]$")] | None = None
    """What separates groups of three digits in texts, such as `","` in `250,000`."""
    units: dict[str, str] = Field(default_factory=dict)
    """Units of columns, such as `{ dose = "mg", share = "%", cost = "$" }`: the number before or
    after the unit is read, and a value of another unit, or of none, is refused."""

    @property
    def changes(self) -> dict[str, Any]:
        """The keys of a format that differ from the defaults."""
        return self.model_dump(include=set(TableFormat.model_fields), exclude_defaults=True)

    @property
    def format(self) -> TableFormat:
        """These keys alone."""
        return TableFormat(**self.changes)

    @model_validator(mode="after")
    def _of_one_table(self) -> TableFormat:
        if self.decimal == self.thousands:
            raise ValueError(f"found decimal and thousands = {self.decimal!r}; expected two signs")
        twice = [name for place, name in enumerate(self.names) if name in self.names[:place]]
        if twice:
            raise ValueError(f"found {twice[0]!r} twice in names; expected names that differ")
        return self


WORDS_FOR_FEATURES = ("all", "each", "views", "groups")


def one_graph_each(value: Any) -> Any:
    """Return tables of graphs, each with one number of neighbours."""
    if not isinstance(value, list | tuple):
        return value
    found: list[Any] = []
    for table in value:
        numbers = table.get("neighbours") if isinstance(table, dict) else None
        if isinstance(numbers, list):
            found += [table | {"neighbours": number} for number in numbers]
        else:
            found.append(table)
    return found


class ViewSpec(TableFormat):
    """One ``[[datasets.views]]`` entry: where the view comes from, and how its rows are found."""

    name: Name
    """Name of the view, by which `features` of a kernel names it."""
    columns: Annotated[tuple[NameOrNumber, ...], Strict(False)] | None = None
    """Features of the data set's own file, by name or by number from 0, and its columns of texts,
    by name. A view without `columns`, `file`, `grams` and `graphs` is all features."""
    file: PathText | None = None
    """File of features without labels, of any format. A feature `age` of the view `home` is called
    `home.age`."""
    grams: PathText | None = None
    """File of one Gram matrix, shape (n, n), or of several, (M, n, n): `.npz` or `.mat` with
    `grams`, `.npy` or zarr. Kernels with `function = "precomputed"` use them."""
    indefinite: Indefinite | None = None
    """What becomes of negative eigenvalues of these matrices, as for the data set."""
    graphs: (
        Annotated[
            tuple[GraphTable, ...],
            Strict(False),
            BeforeValidator(one_graph_each),
            Field(min_length=1),
        ]
        | None
    ) = None
    """Graphs over all points, tables with the keys of `[graph]`, of which `neighbours` may be a
    list. Their Gram matrices are the pseudo-inverses of the Laplacians. Kernels with `function =
    "precomputed"` use them."""
    id: str | None = None
    """Column, or array of a `.npz` file, that names the rows of the file; by default that of the
    data set's `id`. A file without one has the rows of the data set in their order."""
    ignore: Annotated[tuple[str, ...], Strict(False)] = ()
    """Columns of the file to leave out, by name."""
    categorical: Annotated[tuple[str, ...], Strict(False)] = ()
    """Columns of categories of the file, by name."""
    texts: Annotated[tuple[str, ...], Strict(False)] = ()
    """Columns of texts of the file, by name. A column `dna` of the view `home` is called
    `home.dna`."""
    group_file: PathText | None = None
    """File of groups of the view's features, as for the data set."""
    missing: MissingView | None = None
    """What holds for points without any value of the view: `"zero"` makes its kernels zero there,
    and `"impute"` fills each feature as `impute` says. By default they are an error."""

    @model_validator(mode="after")
    def _one_source(self) -> ViewSpec:
        keys = ("columns", "file", "grams", "graphs")
        sources = [key for key in keys if getattr(self, key) is not None]
        if len(sources) > 1:
            raise ValueError(f"found {' and '.join(sources)}; expected one source of the view")
        if self.name in WORDS_FOR_FEATURES:
            raise ValueError(f"found name = {self.name!r}, a word for features; expected another")
        return self

    @model_validator(mode="after")
    def _of_a_file(self) -> ViewSpec:
        if self.file is None:
            for key in ("ignore", "categorical", "texts", *self.changes):
                if getattr(self, key) not in ((), None):
                    raise ValueError(f"found {key} without file; expected file = a table")
        if self.id is not None and self.file is None and self.grams is None:
            raise ValueError("found id without a file; expected file or grams, whose rows it names")
        return self

    @model_validator(mode="after")
    def _of_matrices(self) -> ViewSpec:
        for key in ("grams", "graphs"):
            if getattr(self, key) is not None and self.group_file is not None:
                raise ValueError(f"found group_file and {key}; expected groups of features")
        if self.indefinite is not None and self.grams is None:
            raise ValueError("found indefinite without grams; expected grams = a file of matrices")
        if self.grams is not None and self.missing == "impute":
            raise ValueError('found missing = "impute" and grams; expected missing = "zero"')
        if self.graphs is not None and self.missing is not None:
            raise ValueError("found missing and graphs; expected graphs, which all points have")
        return self


class PreprocessingSpec(Model):
    """``[preprocessing]``: scaling of features and of real-valued labels; rows it is fitted on."""

    scale: Literal["zscore", "minmax", "tfidf", "none"] = "zscore"
    """Scaling of each feature: to mean 0 and standard deviation 1; to the range from -1 to 1; of
    counts of terms by ln((1 + n) / (1 + n_t)) + 1, where n_t of the n fitted rows have the term; or
    none."""
    fit: Literal["train", "all"] = "train"
    """Rows on which scaling and imputation are fitted: the training and unlabelled rows of each
    split, with a bank for each split; or all rows, with one bank for all splits."""
    target: Literal["none", "zscore"] = "none"
    """Scaling of real-valued labels: none, or to mean 0 and standard deviation 1 on the training
    rows. Predictions and scores keep the units of the data."""


class DatasetSpec(TableFormat):
    """One ``[[datasets]]`` entry: the source of labels and of features or Gram matrices.

    A data set has one source.  `file` or `grams` names it, and `name` is then a label
    for the results.  Otherwise the name, or `source`, is looked up in the data directories, then
    among the bundled data sets, then among the synthetic ones.
    """

    name: Name
    """Name in the results. Without another source it is looked up in the folders of `--data-dir`,
    then among the data sets of scikit-learn, then among the synthetic ones."""
    source: str | None = None
    """Name to look up, if it is not the name in the results."""
    file: PathText | None = None
    """File of features and labels: `.csv`, `.xlsx`, `.parquet`, `.arff`, `.npz`, `.mat`, `.h5ad`,
    `.svm` or zarr. A relative path starts at the folder of the sweep file, then at those of
    `--data-dir`."""
    grams: PathText | None = None
    """File of M Gram matrices over the points, shape (M, n, n): `.npz`, `.mat`, `.npy`, `.svm` or
    zarr. Their bank has `family = "precomputed"`."""
    indefinite: Indefinite | None = None
    """What becomes of negative eigenvalues of Gram matrices: `"clip"` sets them to zero, `"flip"`
    drops their signs, `"shift"` takes the most negative one from the diagonal. The matrix of all
    points is changed before it is split. By default such matrices are refused."""
    labels: PathText | None = None
    """File of labels beside a file of Gram matrices that holds none."""
    task: Task | None = None
    """Labels are classes or real values. By default the source decides: its labels are classes
    except in data sets that are known as regression."""
    label: NameOrNumber | None = None
    """Label column of a table, by name, or by number from 0. By default the one that is called
    label, class, target, y, diagnosis, outcome or response. In a `.npz` file or a zarr group of
    arrays the name of the array of labels, by default `y`."""
    id: str | None = None
    """Column of a table that names the rows; it is no feature."""
    ignore: Annotated[tuple[str, ...], Strict(False)] = ()
    """Columns of a table to leave out, by name."""
    categorical: Annotated[tuple[str, ...], Strict(False)] = ()
    """Columns of categories, by name. Each becomes one feature for each category, 1 where a row has
    it and 0 elsewhere, and a group of the column's name, which `features` of a kernel may use. A
    missing value is a category of its own."""
    texts: Annotated[tuple[str, ...], Strict(False)] = ()
    """Columns of texts of a table, by name. `features` of kernels of texts, such as `"spectrum"`,
    names them."""
    classes: Annotated[tuple[ClassName, ...], Strict(False), BeforeValidator(several)] | None = None
    """Keep only these classes, in this order. Of two, the second is +1."""
    positive: ClassName | None = None
    """Make two classes: this one is +1 and all others are -1."""
    per_class: int | None = Field(None, ge=1)
    """Keep this many points of each class, drawn with the sweep's seed."""
    n_points: int | None = Field(None, ge=2)
    """Keep this many points, drawn with the sweep's seed, of each class in proportion."""
    unlabelled: Literal["drop"] | None = None
    """`"drop"` leaves out rows without a label, and the plan counts them. By default the unlabelled
    parts of `"semi-supervised"` and `"predefined"` splits may hold them; elsewhere they are an
    error."""
    class_weight: ClassWeights | None = None
    """Weights of classes, by which `C` is multiplied: a table by class, 1 for those that it leaves
    out; or `"balanced"`, `n / (k n_c)` for class c of k, of the `n` and `n_c` labelled rows of each
    training part."""
    weights: str | None = None
    """Column of a table, or array of a `.npz` file or a zarr group, of row weights from 0: a row
    counts so often in losses, preprocessing, widths and normalisation. Rows of weight 0 are in no
    training part. Scores count every row once."""
    impute: Imputation | None = None
    """Replace missing values of a feature by the median, the mean or the most frequent of its
    values on the rows that `fit` of `[preprocessing]` names: by default those of the training part
    of each split. Without it missing values are an error."""
    drop_constant: bool = True
    """Drop features that are constant over the data set."""
    sparse: bool = False
    """Keep the features of a `.svm` file, of a sparse `.npz` file, or of a sparse matrix from
    Python, sparse. They need `scale = "none"` or `"tfidf"`, and kernels with `gaussian`,
    `polynomial` or `linear`."""
    groups: dict[str, list[NameOrNumber]] = Field(default_factory=dict)
    """Names for groups of features, given by name or by number from 0, which `features` of a kernel
    may use."""
    group_file: PathText | None = None
    """File of more groups: `.gmt` as of MSigDB, or a `.csv` of two columns, group and feature."""
    views: Annotated[tuple[ViewSpec, ...], Strict(False)] = ()
    """Blocks of features, or Gram matrices, of the same points, as `[[datasets.views]]` entries."""
    options: dict[str, Option] = Field(default_factory=dict)
    """Parameters of a synthetic data set, such as `n`."""
    preprocessing: PreprocessingSpec | None = None
    """A table for this data set in place of `[preprocessing]`."""
    splits: SplitsSpec | None = None
    """A table for this data set in place of `[splits]`."""
    graph: GraphTable | None = None
    """A table for this data set in place of `[graph]`."""

    _series: str = PrivateAttr("")

    @property
    def series(self) -> str:
        """The name in the sweep file: that of all data sets of one list of sizes."""
        return self._series or self.name

    @model_validator(mode="after")
    def _one_source(self) -> DatasetSpec:
        sources = [s for s in ("source", "file", "grams") if getattr(self, s) is not None]
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
