"""The file of a model: one frame, see :mod:`mkldist.core.frames`, of arrays and words without code.

Kernels are described in words, and points that decision functions share stand there once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank_kernels import GivenKernel
from mkldist.core.arrays import Array, Floats
from mkldist.core.durable import remove_temporaries, write_file, writing
from mkldist.core.frames import MAGIC, Arrays, frame, unframed
from mkldist.data.dataset import as_arrays, from_arrays
from mkldist.errors import MkldistError, SpecError, StoreError, nearest
from mkldist.fit.decision import Expansion, TextSupport
from mkldist.kernel_functions.bases import is_sparse
from mkldist.kernel_functions.custom import CUSTOM_CODE, CustomFunction, CustomKernel, search_first
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList

KIND = "mkldist model"
FORMAT = 7  # raised when what a file holds changes
EXPECTED = "a model that mkldist wrote"
TEXTS = ("texts.content", "texts.ends")
SPARSE = ("points.data", "points.indices", "points.indptr", "points.shape")
PROBED = 8  # support points between which a model keeps the values of the user's functions
AGREEMENT = 1e-8  # of the largest of these values

Description = dict[str, Any]


def write_model(file: Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a model to a file, which appears whole or not at all."""
    content = frame({"kind": KIND, "format": FORMAT, **header}, arrays)
    with writing(file):
        remove_temporaries(file.parent)
        write_file(file, [content])


def read_model(file: Path) -> tuple[dict[str, Any], Arrays]:
    """Read header and arrays of a model, checked by their checksums; nothing is imported."""
    where = str(file)
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        near = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = nearest(file.name, near) or "Fit one: mkldist fit RESULTS -o MODEL"
        raise StoreError(where, "no such file", "a model", hint) from error
    except OSError as error:
        found = "a folder" if file.is_dir() else f"a file that cannot be read ({error.strerror})"
        raise StoreError(where, found, "the file of a model") from error
    read = unframed(content)
    if read is None:
        is_frame = content.startswith(MAGIC)
        fault = "a file that is damaged or cut short" if is_frame else "no model"
        hint = "Copy it again, or fit it again" if is_frame else "Fit one: mkldist fit RESULTS"
        raise StoreError(where, fault, EXPECTED, hint)
    header, arrays = read
    if header.get("kind") != KIND:
        raise StoreError(where, "another file of mkldist", EXPECTED, "Name the file of a model")
    if header.get("format") != FORMAT:
        version = header.get("mkldist")
        found = f"format {header.get('format')}, written by mkldist {version}"
        hint = f"Fit it again, or read it by mkldist {version}"
        raise StoreError(where, found, f"format {FORMAT}", hint)
    return header, arrays


@contextmanager
def understood(where: str) -> Iterator[None]:
    """Refuse a content that no version of mkldist wrote, although its checksums are right."""
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


def packed(
    functions: Sequence[Expansion], weights: Sequence[Floats]
) -> tuple[list[Description], Arrays]:
    """Return decision functions, and the weights that their method found, for a file."""
    of_texts = [one.texts.points.shape[1] for one in functions if one.texts is not None]
    texts = [
        np.full((one.n_support, max(of_texts, default=0)), "", dtype=object)
        if one.texts is None
        else one.texts.points
        for one in functions
    ]
    places, arrays = packed_points([one.points for one in functions], texts)
    descriptions = []
    for number, (function, own) in enumerate(zip(functions, weights, strict=True)):
        arrays |= {
            f"{number}.support": places[number],
            f"{number}.index": function.index.astype(np.int64),
            f"{number}.weights": function.weights,
            f"{number}.coefficients": function.coefficients,
            f"{number}.bias": function.bias,
            f"{number}.kernel_weights": own,
        }
        if function.rows is not None:
            arrays[f"{number}.rows"] = function.rows.astype(np.int64)
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                arrays[f"{number}.probe.{kind}"] = _probe(support)
        descriptions.append(
            {
                "cosine": function.cosine,
                "kernels": described(function.kernels),
                "given": [[one.view, one.number, one.alone] for one in function.given],
                "texts": None if function.texts is None else described(function.texts.kernels),
            }
        )
    return descriptions, arrays


def unpacked(
    descriptions: Sequence[Mapping[str, Any]], arrays: Arrays, where: str, code: Path | None = None
) -> tuple[Expansion, ...]:
    """Return the decision functions of a file.

    Functions of the user are imported, `code` being the folder to search first, and must give the
    values that they gave in the fit; if it is None, they are refused.
    """
    kernels = [one for f in descriptions for one in (*f["kernels"], *(f["texts"] or ()))]
    names = sorted({kernel["code"] for kernel in kernels if "code" in kernel})
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
    points, texts = unpacked_points(arrays)
    functions = []
    for number, fields in enumerate(descriptions):
        own = arrays[f"{number}.support"]
        function = Expansion(
            kernels=kernel_list(fields["kernels"], where),
            index=arrays[f"{number}.index"].astype(np.intp),
            cosine=bool(fields["cosine"]),
            points=points[own],
            weights=arrays[f"{number}.weights"],
            coefficients=arrays[f"{number}.coefficients"],
            bias=arrays[f"{number}.bias"],
            given=tuple(GivenKernel(*one) for one in fields["given"]),
            rows=arrays.get(f"{number}.rows"),
            texts=None
            if fields["texts"] is None
            else TextSupport(kernel_list(fields["texts"], where), texts[own]),
        )
        for kind, support in _supports(function).items():
            if has_code(support.kernels):
                _check_probe(support, arrays[f"{number}.probe.{kind}"], where)
        functions.append(function)
    return tuple(functions)


def packed_points(
    parts: Sequence[Floats], texts: Sequence[Array]
) -> tuple[list[npt.NDArray[np.int64]], Arrays]:
    """Return the places of each part's points among all distinct ones, and the arrays of these.

    Points are the same where all of their bits are, for NaN marks features that a point lacks, and
    their texts are: (s, d) float64 arrays or csr_arrays, and (s, t) arrays of str objects.
    """
    sparse = is_sparse(parts[0])
    if sparse:
        from scipy.sparse import csr_array, vstack

        points: Any = csr_array(vstack(parts))
    else:
        points = np.concatenate(parts)
    own_texts = np.concatenate(texts)
    first: dict[tuple[Any, ...], int] = {}
    kept: list[int] = []
    places = np.empty(points.shape[0], dtype=np.int64)
    for row in range(len(places)):
        if sparse:
            entries = slice(points.indptr[row], points.indptr[row + 1])
            bits = points.indices[entries].tobytes() + points.data[entries].tobytes()
        else:
            bits = points[row].tobytes()
        place = first.setdefault((bits, *own_texts[row].tolist()), len(first))
        if place == len(kept):
            kept.append(row)
        places[row] = place
    points = points[kept]
    arrays = Arrays()
    if own_texts.size:
        arrays |= dict(zip(TEXTS, as_arrays(own_texts[kept]), strict=True))
    if sparse:
        parts_of = (points.data, points.indices, points.indptr, np.array(points.shape))
        arrays |= dict(zip(SPARSE, parts_of, strict=True))
    else:
        arrays["points"] = points
    return np.split(places, np.cumsum([part.shape[0] for part in parts])[:-1]), arrays


def unpacked_points(arrays: Arrays) -> tuple[Any, Array]:
    """Return the points and the texts of :func:`packed_points`."""
    if "points" in arrays:
        points: Any = arrays["points"]
    else:
        from scipy.sparse import csr_array

        data, indices, indptr, shape = (arrays[name] for name in SPARSE)
        points = csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    if TEXTS[0] not in arrays:
        return points, np.empty((points.shape[0], 0), dtype=object)
    content, ends = (arrays[name] for name in TEXTS)
    return points, from_arrays(content, ends)


def described(kernels: KernelList) -> list[Description]:
    """Return kernels as a file takes them: function, parameters, features and their label."""
    found = []
    for m in range(len(kernels)):
        description: Description = {
            "features": kernels.features_of(m).tolist(),
            "label": kernels.subset_labels.get(int(kernels.subset[m])),
        }
        own = kernels.custom_of(m)
        if own is None:
            description |= {
                "function": kernels.function_of(m).label,
                "parameter": float(kernels.parameter[m]),
                "offset": float(kernels.offset[m]),
            }
        elif own.function.reference:
            description |= {"code": own.function.reference, "arguments": dict(own.arguments)}
        else:
            raise SpecError(
                "model",
                f"kernel function {own.function.label!r}, which no name imports",
                'a function "package.module:function": the file of a model holds no code',
                "Define it at the top of a file of its own, and import it from there",
            )
        found.append(description)
    return found


def kernel_list(described: Sequence[Description], where: str = "model") -> KernelList:
    """Return the kernels that :func:`described` describes; functions of the user are imported."""
    subsets: dict[tuple[tuple[int, ...], str | None], int] = {}
    numbers: list[int] = []
    custom: list[CustomKernel] = []
    rows: list[tuple[int, float, float]] = []
    for kernel in described:
        subset = tuple(kernel["features"]), kernel["label"]
        numbers.append(subsets.setdefault(subset, len(subsets)))
        if "code" in kernel:
            rows.append((CUSTOM_CODE, float(len(custom)), 0.0))
            function = CustomFunction.named(kernel["code"], where)
            custom.append(CustomKernel(function, tuple(kernel["arguments"].items())))
        else:
            code = FUNCTIONS[kernel["function"]].code
            rows.append((code, kernel["parameter"], kernel["offset"]))
    return KernelList(
        function=np.array([code for code, _, _ in rows], dtype=np.uint8),
        parameter=np.array([first for _, first, _ in rows]),
        offset=np.array([second for _, _, second in rows]),
        subset=np.array(numbers),
        subset_indptr=np.cumsum([0, *(len(features) for features, _ in subsets)]),
        subset_indices=np.array([column for features, _ in subsets for column in features]),
        subset_labels={n: label for (_, label), n in subsets.items() if label is not None},
        custom=tuple(custom),
    )


def has_code(kernels: KernelList) -> bool:
    """Return True for a list with a function of the user."""
    return bool((kernels.function == CUSTOM_CODE).any())


def _supports(function: Expansion) -> dict[str, Expansion | TextSupport]:
    """Return what has kernels and support points of its own: features, and texts if there are."""
    return {"features": function, **({} if function.texts is None else {"texts": function.texts})}


def _probe(support: Expansion | TextSupport) -> Floats:
    """Return the values of the user's functions between the first support points, (S, p, p)."""
    own = support.kernels.select(np.flatnonzero(support.kernels.function == CUSTOM_CODE))
    return evaluate(own, support.points[:PROBED], support.points[:PROBED])


def _check_probe(support: Expansion | TextSupport, expected: Floats, where: str) -> None:
    """Refuse functions of the user that give other values than when the model was fitted."""
    own = np.flatnonzero(support.kernels.function == CUSTOM_CODE)
    for m, now, then in zip(own.tolist(), _probe(support), expected, strict=True):
        furthest = float(np.abs(now - then).max(initial=0.0))
        if furthest > AGREEMENT * float(np.abs(then).max(initial=0.0)):
            raise StoreError(
                where,
                f"kernel function {support.kernels.function_of(m).label!r} with values that differ "
                f"by {furthest:.3g} from those of the fit",
                "the function that the model was fitted with",
                "Restore it, or fit the model again",
            )
