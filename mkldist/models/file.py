"""Files of models: one sealed archive of arrays and JSON, without code."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.data.dataset import View
from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.data.source_columns import SourceColumns
from mkldist.durable import remove_temporaries, write_file, writing
from mkldist.errors import SpecError, StoreError, nearest
from mkldist.gram.bank_kernels import GivenKernel
from mkldist.in_memory.expansion import Expansion
from mkldist.in_memory.text_support import TextSupport
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.kernel_list import KernelList
from mkldist.models.content import ModelContent
from mkldist.models.given_rows import GivenRows
from mkldist.models.outcome import Outcome
from mkldist.models.support import packed_points, points_at, unpacked_points, unpacked_texts
from mkldist.models.text_columns import ModelTexts
from mkldist.sealed import Arrays, sealed, unsealed

FORMAT = 3  # raised when a file can no longer be read by the versions before
WITHOUT_TEXTS = 2  # the format of a model without kernels of texts
ONE_TABLE = 1  # the format of a model of one dense table without views, which they read
KIND = "mkldist model"


def write_content(model: ModelContent, path: Path) -> None:
    """Write a model to a file, which appears whole or not at all.

    Raises
    ------
    mkldist.errors.OutputError
        If the file cannot be written.
    """
    content = encoded(model)
    with writing(path):
        remove_temporaries(path.parent)
        write_file(path, [content])


def read_content(file: Path) -> ModelContent:
    """Read the content of a model; see :func:`mkldist.load_model`.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has a newer format.
    """
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        near = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = nearest(file.name, near) or "Fit one: mkldist fit RESULTS -o MODEL"
        raise StoreError(str(file), "no such file", "a model", hint) from error
    except OSError as error:
        found = "a folder" if file.is_dir() else f"a file that cannot be read ({error.strerror})"
        raise StoreError(str(file), found, "the file of a model") from error
    return decoded(content, str(file))


def encoded(model: ModelContent) -> bytes:
    """Return a model as bytes, which :func:`decoded` checks."""
    texts = None if model.texts is None else [_texts(model, one) for one in model.functions]
    parts, arrays = packed_points([function.points for function in model.functions], texts)
    scale = model.preprocessing.scale
    if not model.is_sparse:
        arrays |= {"centre": scale.centre, "spread": scale.spread}
    if model.preprocessing.fill is not None:
        arrays["fill"] = model.preprocessing.fill
    for number, (function, weights) in enumerate(zip(model.functions, model.weights, strict=True)):
        arrays |= {
            f"{number}.support": parts[number].astype(np.int64),
            f"{number}.index": function.index.astype(np.int64),
            f"{number}.weights": function.weights,
            f"{number}.coefficients": function.coefficients,
            f"{number}.bias": function.bias,
            f"{number}.kernel_weights": weights,
        }
        if function.rows is not None:
            arrays[f"{number}.rows"] = function.rows.astype(np.int64)
    one_table = not (
        model.is_sparse or model.views or model.view_columns or model.given or model.texts
    )
    header = {
        "kind": KIND,
        "format": ONE_TABLE if one_table else FORMAT if model.texts else WITHOUT_TEXTS,
        "mkldist": metadata.version("mkldist"),
        "columns": model.columns.as_dict(),
        "features": list(model.feature_names),
        "outcome": model.outcome.as_dict(),
        "functions": [
            {
                "cosine": function.cosine,
                "kernels": described(function.kernels),
                "given": [[one.view, one.number, one.alone] for one in function.given],
                **({} if function.texts is None else {"texts": described(function.texts.kernels)}),
            }
            for function in model.functions
        ],
        "facts": dict(model.facts),
    }
    return sealed(header | ({} if one_table else _of_views(model)), arrays)


def _texts(model: ModelContent, function: Expansion) -> Array:
    """Return the texts of a function's support points, empty ones if it uses none."""
    if function.texts is not None:
        return function.texts.points
    n_columns = 0 if model.texts is None else len(model.texts.names)
    return np.full((function.n_support, n_columns), "", dtype=object)


def _of_views(model: ModelContent) -> dict[str, Any]:
    """Return the views of a model as JSON takes them."""
    return {
        "views": {name: [list(one.columns), one.missing] for name, one in model.views.items()},
        "view_columns": {name: one.as_dict() for name, one in model.view_columns.items()},
        "given": None if model.given is None else model.given.as_dict(),
        **({} if model.texts is None else {"texts": model.texts.as_dict()}),
    }


def decoded(content: bytes, where: str) -> ModelContent:
    """Return the model of a file's content.

    Parameters
    ----------
    content : bytes
        Content of the file.
    where : str
        The file, to name in a message.

    Raises
    ------
    mkldist.errors.StoreError
        If it is no model, damaged, or of a newer format.
    """
    expected = "a model that mkldist wrote"
    found = unsealed(content)
    if found is None:
        is_archive = content[:2] == b"PK"
        fault = "a file that is damaged or cut short" if is_archive else "no model"
        hint = "Copy it again, or fit it again" if is_archive else "Fit one: mkldist fit RESULTS"
        raise StoreError(where, fault, expected, hint)
    header, arrays = found
    if header.get("kind") != KIND:
        raise StoreError(where, "another file of mkldist", expected, "Name the file of a model")
    if header["format"] > FORMAT:
        raise StoreError(
            where,
            f"format {header['format']}, written by mkldist {header['mkldist']}",
            f"format {FORMAT} or before",
            f"Install mkldist {header['mkldist']} or later",
        )
    return _model(header, arrays)


def _model(header: Mapping[str, Any], arrays: Arrays) -> ModelContent:
    """Return the model of a header and arrays whose digest is right."""
    points, texts = unpacked_points(arrays), unpacked_texts(arrays)
    functions = [
        Expansion(
            kernels=kernel_list(fields["kernels"]),
            index=arrays[f"{number}.index"].astype(np.intp),
            cosine=bool(fields["cosine"]),
            points=points_at(points, arrays[f"{number}.support"]),
            weights=arrays[f"{number}.weights"],
            coefficients=arrays[f"{number}.coefficients"],
            bias=arrays[f"{number}.bias"],
            given=tuple(GivenKernel(*one) for one in fields.get("given", ())),
            rows=arrays.get(f"{number}.rows"),
            texts=None
            if texts is None or "texts" not in fields
            else TextSupport(kernel_list(fields["texts"]), texts[arrays[f"{number}.support"]]),
        )
        for number, fields in enumerate(header["functions"])
    ]
    d = points.shape[1]
    scale = FeatureScale(arrays.get("centre", np.zeros(d)), arrays.get("spread", np.ones(d)))
    given = header.get("given")
    return ModelContent(
        SourceColumns.from_dict(header["columns"]),
        tuple(header["features"]),
        FittedPreprocessing(arrays.get("fill"), scale),
        tuple(functions),
        tuple(arrays[f"{number}.kernel_weights"] for number in range(len(functions))),
        Outcome.from_dict(header["outcome"]),
        {**header["facts"], "mkldist": header["mkldist"]},
        {name: View(tuple(c), missing) for name, (c, missing) in header.get("views", {}).items()},
        {
            name: SourceColumns.from_dict(columns)
            for name, columns in header.get("view_columns", {}).items()
        },
        None if given is None else GivenRows.from_dict(given),
        ModelTexts.from_dict(header["texts"]) if "texts" in header else None,
    )


def described(kernels: KernelList) -> list[dict[str, Any]]:
    """Return kernels as JSON takes them: function, parameters, features and their label.

    Raises
    ------
    mkldist.errors.SpecError
        For a function of the user: a model holds no code.
    """
    for m in range(len(kernels)):
        if kernels.custom_of(m) is not None:
            raise SpecError(
                "model",
                f"kernel function {kernels.function_of(m).label!r} of the user",
                "functions of mkldist: the file of a model holds no code",
                "Keep the bank and its decision_function, or save Gram matrices of new points",
            )
    return [
        {
            "function": kernels.function_of(m).label,
            "parameter": float(kernels.parameter[m]),
            "offset": float(kernels.offset[m]),
            "features": kernels.features_of(m).tolist(),
            "label": kernels.subset_labels.get(int(kernels.subset[m])),
        }
        for m in range(len(kernels))
    ]


def kernel_list(described: list[dict[str, Any]]) -> KernelList:
    """Return the kernels that :func:`described` describes."""
    subsets: dict[tuple[tuple[int, ...], str | None], int] = {}
    numbers = [
        subsets.setdefault((tuple(kernel["features"]), kernel["label"]), len(subsets))
        for kernel in described
    ]
    sizes = [len(features) for features, _ in subsets]
    return KernelList(
        function=np.array(
            [FUNCTIONS[kernel["function"]].code for kernel in described], dtype=np.uint8
        ),
        parameter=np.array([kernel["parameter"] for kernel in described]),
        offset=np.array([kernel["offset"] for kernel in described]),
        subset=np.array(numbers),
        subset_indptr=np.cumsum([0, *sizes]),
        subset_indices=np.array([column for features, _ in subsets for column in features]),
        subset_labels={
            number: label for (_, label), number in subsets.items() if label is not None
        },
    )
