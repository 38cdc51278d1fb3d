"""Models of ``[[datasets.views]]``: blocks of features, or Gram matrices, of the same points."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Strict, model_validator

from mkldist.spec.kinds import MissingView, Model, Name, NameOrNumber

WORDS_FOR_FEATURES = ("all", "each", "views", "groups")


class ViewSpec(Model):
    """One ``[[datasets.views]]`` entry: where the view comes from, and how its rows are found."""

    name: Name = Field(description="Name of the view, by which `features` of a kernel names it.")
    columns: Annotated[tuple[NameOrNumber, ...], Strict(False)] | None = Field(
        None,
        description="Features of the data set's own file, by name or by number from 0, and its "
        "columns of texts, by name. A view without `columns`, `file` and `grams` is all features.",
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
        sources = [s for s in ("columns", "file", "grams") if getattr(self, s) is not None]
        if len(sources) > 1:
            raise ValueError(f"found {' and '.join(sources)}; expected one source of the view")
        if self.name in WORDS_FOR_FEATURES:
            raise ValueError(f"found name = {self.name!r}, a word for features; expected another")
        if self.file is None:
            for key in ("ignore", "categorical", "texts"):
                if getattr(self, key):
                    raise ValueError(f"found {key} without file; expected file = a table")
        if self.id is not None and self.file is None and self.grams is None:
            raise ValueError("found id without a file; expected file or grams, whose rows it names")
        if self.grams is not None and self.group_file is not None:
            raise ValueError("found group_file and grams; expected groups of features")
        if self.grams is not None and self.missing == "impute":
            raise ValueError('found missing = "impute" and grams; expected missing = "zero"')
        return self
