"""Files of models: one sealed archive of arrays and JSON, without code.

Functions of the user are named and not held, see :mod:`mkldist.models.kernel_descriptions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.data.dataset import View
from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.data.source_columns import SourceColumns
from mkldist.durable import remove_temporaries, write_file, writing
from mkldist.errors import MkldistError, StoreError, nearest
from mkldist.gram.bank_kernels import GivenKernel
from mkldist.in_memory.expansion import Expansion
from mkldist.in_memory.text_support import TextSupport
from mkldist.kernel_functions.custom import search_first
from mkldist.models.content import ModelContent
from mkldist.models.given_rows import GivenRows
from mkldist.models.kernel_descriptions import (
    check_probe,
    code_of,
    described,
    has_code,
    kernel_list,
    probe,
)
from mkldist.models.outcome import Outcome
from mkldist.models.support import packed_points, points_at, unpacked_points, unpacked_texts
from mkldist.models.text_columns import ModelTexts
from mkldist.sealed import Arrays, sealed, unsealed

FORMAT = 4  # raised when a file can no longer be read by the versions before
WITHOUT_CODE = 3  # the format of a model without functions of the user
WITHOUT_TEXTS = 2  # the format of a model without kernels of texts
ONE_TABLE = 1  # the format of a model of one dense table without views, which they read
KIND = "mkldist model"
EXPECTED = "a model that mkldist wrote"


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


def read_content(file: Path, *, allow_code: bool = False) -> ModelContent:
    """Read the content of a model; see :func:`mkldist.load_model`.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has a newer format; if it names
        functions of the user and `allow_code` is not set, or these have changed.
    mkldist.errors.SpecError
        If such a function cannot be imported.
    """
    return decoded(_bytes(file), str(file), file.parent if allow_code else None)


def read_sealed(file: Path) -> tuple[dict[str, Any], Arrays]:
    """Read header and arrays of a model, checked by their digest; nothing is imported.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has a newer format.
    """
    return opened(_bytes(file), str(file))


def _bytes(file: Path) -> bytes:
    """Return the content of a file."""
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        near = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = nearest(file.name, near) or "Fit one: mkldist fit RESULTS -o MODEL"
        raise StoreError(str(file), "no such file", "a model", hint) from error
    except OSError as error:
        found = "a folder" if file.is_dir() else f"a file that cannot be read ({error.strerror})"
        raise StoreError(str(file), found, "the file of a model") from error


def encoded(model: ModelContent) -> bytes:
    """Return a model as bytes, which :func:`opened` checks."""
    texts = None if model.texts is None else [_texts(model, one) for one in model.functions]
    parts, arrays = packed_points([function.points for function in model.functions], texts)
    scale = model.preprocessing.scale
    if not model.is_sparse:
        arrays |= {"centre": scale.centre, "spread": scale.spread}
    elif (scale.spread != 1.0).any():
        arrays["spread"] = scale.spread
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
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                arrays[f"{number}.probe.{kind}"] = probe(support.kernels, support.points)
    one_table = not (
        model.is_sparse or model.views or model.view_columns or model.given or model.texts
    )
    header = {
        "kind": KIND,
        "format": WITHOUT_CODE if model.texts else ONE_TABLE if one_table else WITHOUT_TEXTS,
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
    if list(_code(header)):
        header["format"] = FORMAT
    return sealed(header | ({} if one_table else _of_views(model)), arrays)


def _supports(function: Expansion) -> dict[str, Expansion | TextSupport]:
    """Return what has kernels and support points of its own: features, and texts if there are."""
    return {"features": function, **({} if function.texts is None else {"texts": function.texts})}


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


def decoded(content: bytes, where: str, code: Path | None = None) -> ModelContent:
    """Return the model of a file's content.

    Parameters
    ----------
    content : bytes
        Content of the file.
    where : str
        The file, to name in a message.
    code : Path, optional
        Folder to search first for functions of the user; None refuses them.

    Raises
    ------
    mkldist.errors.StoreError
        As for :func:`opened`, for functions of the user without `code`, and for such that have
        changed.
    mkldist.errors.SpecError
        If such a function cannot be imported.
    """
    header, arrays = opened(content, where)
    with _understood(where):
        names = sorted(set(_code(header)))
    if names and code is None:
        raise StoreError(
            where,
            f"kernel functions that are not mkldist's: {', '.join(map(repr, names))}",
            "kernel functions of mkldist, or --allow-code",
            "Repeat the command with --allow-code, or call load_model(path, allow_code=True), "
            "if you trust this code",
        )
    if names and code is not None:
        search_first(str(code.absolute()))
    with _understood(where):
        return _model(header, arrays, where)


@contextmanager
def _understood(where: str) -> Iterator[None]:
    """Refuse a content that no version of mkldist wrote, although its digest is right."""
    try:
        yield
    except MkldistError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise StoreError(
            where,
            f"a content that is no model's ({type(error).__name__}: {error})",
            EXPECTED,
            "Fit it again",
        ) from error


def _code(header: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of every function of the user that a model needs."""
    for fields in header["functions"]:
        yield from code_of([*fields["kernels"], *fields.get("texts", ())])


def opened(content: bytes, where: str) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a model of a file's content.

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
    found = unsealed(content)
    if found is None:
        is_archive = content[:2] == b"PK"
        fault = "a file that is damaged or cut short" if is_archive else "no model"
        hint = "Copy it again, or fit it again" if is_archive else "Fit one: mkldist fit RESULTS"
        raise StoreError(where, fault, EXPECTED, hint)
    header, arrays = found
    if header.get("kind") != KIND:
        raise StoreError(where, "another file of mkldist", EXPECTED, "Name the file of a model")
    with _understood(where):
        is_newer = header["format"] > FORMAT
    if is_newer:
        raise StoreError(
            where,
            f"format {header['format']}, written by mkldist {header.get('mkldist')}",
            f"format {FORMAT} or before",
            f"Install mkldist {header.get('mkldist')} or later",
        )
    return header, arrays


def _model(header: Mapping[str, Any], arrays: Arrays, where: str) -> ModelContent:
    """Return the model of a header and arrays whose digest is right."""
    points, texts = unpacked_points(arrays), unpacked_texts(arrays)
    functions = [
        Expansion(
            kernels=kernel_list(fields["kernels"], where),
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
            else TextSupport(
                kernel_list(fields["texts"], where), texts[arrays[f"{number}.support"]]
            ),
        )
        for number, fields in enumerate(header["functions"])
    ]
    for number, function in enumerate(functions):
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                expected = arrays[f"{number}.probe.{kind}"]
                check_probe(support.kernels, support.points, expected, where)
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
