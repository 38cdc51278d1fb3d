"""Models of ``[[datasets.views]]``: blocks of features, Gram matrices, or graphs of the points."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict, model_validator

from mkldist.spec.graph import GraphTable
from mkldist.spec.kinds import MissingView, Model, Name, NameOrNumber

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


class ViewSpec(Model):
    """One ``[[datasets.views]]`` entry: where the view comes from, and how its rows are found."""

    name: Name = Field(description="Name of the view, by which `features` of a kernel names it.")
    columns: Annotated[tuple[NameOrNumber, ...], Strict(False)] | None = Field(
        None,
        description="Features of the data set's own file, by name or by number from 0, and its "
        "columns of texts, by name. A view without `columns`, `file`, `grams` and `graphs` is all "
        "features.",
    )
    file: str | None = Field(
        None,
        description="File of features without labels: `.csv`, `.npz`, `.svm`, `.parquet` or zarr. "
        "A feature `age` of the view `home` is called `home.age`.",
    )
    grams: str | None = Field(
        None,
        description="File of one Gram matrix, shape (n, n), or of several, (M, n, n): `.npz` with "
        '`grams`, `.npy` or zarr. Kernels with `function = "precomputed"` use them.',
    )
    graphs: (
        Annotated[
            tuple[GraphTable, ...],
            Strict(False),
            BeforeValidator(one_graph_each),
            Field(min_length=1),
        ]
        | None
    ) = Field(
        None,
        description="Graphs over all points, tables with the keys of `[graph]`, of which "
        "`neighbours` may be a list. Their Gram matrices are the pseudo-inverses of the "
        'Laplacians. Kernels with `function = "precomputed"` use them.',
    )
    id: str | None = Field(
        None,
        description="Column, or array of a `.npz` file, that names the rows of the file; by "
        "default that of the data set's `id`. A file without one has the rows of the data set in "
        "their order.",
    )
    ignore: Annotated[tuple[str, ...], Strict(False)] = Field(
        (), description="Columns of the file to leave out, by name."
    )
    categorical: Annotated[tuple[str, ...], Strict(False)] = Field(
        (), description="Columns of categories of the file, by name."
    )
    texts: Annotated[tuple[str, ...], Strict(False)] = Field(
        (),
        description="Columns of texts of the file, by name. A column `dna` of the view `home` is "
        "called `home.dna`.",
    )
    group_file: str | None = Field(
        None, description="File of groups of the view's features, as for the data set."
    )
    missing: MissingView | None = Field(
        None,
        description='What holds for points without any value of the view: `"zero"` makes its '
        'kernels zero there, and `"impute"` fills each feature as `impute` says. By default they '
        "are an error.",
    )

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
            for key in ("ignore", "categorical", "texts"):
                if getattr(self, key):
                    raise ValueError(f"found {key} without file; expected file = a table")
        if self.id is not None and self.file is None and self.grams is None:
            raise ValueError("found id without a file; expected file or grams, whose rows it names")
        return self

    @model_validator(mode="after")
    def _of_matrices(self) -> ViewSpec:
        for key in ("grams", "graphs"):
            if getattr(self, key) is not None and self.group_file is not None:
                raise ValueError(f"found group_file and {key}; expected groups of features")
        if self.grams is not None and self.missing == "impute":
            raise ValueError('found missing = "impute" and grams; expected missing = "zero"')
        if self.graphs is not None and self.missing is not None:
            raise ValueError("found missing and graphs; expected graphs, which all points have")
        return self
