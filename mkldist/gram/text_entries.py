"""The entries of a bank that are kernels of texts, told by their function and their features."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mkldist.data.dataset import Dataset
from mkldist.data.listing import first_of
from mkldist.errors import SpecError, nearest
from mkldist.kernel_functions.definition import Takes, kernel_words
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.spec.banks import BankSpec
from mkldist.spec.kernel_entries import PRECOMPUTED, KernelSpec

SHOWN = 8
EVERY = ("all", "each", "views", "groups")


def text_entries(spec: BankSpec, dataset: Dataset) -> frozenset[int]:
    """Return the numbers of the entries of a bank that are kernels of texts.

    Those are the entries of functions of texts, and functions of the user on columns of texts.

    Parameters
    ----------
    spec : BankSpec
        The bank.
    dataset : Dataset
        The data set.

    Raises
    ------
    SpecError
        For a function of texts without texts, or on features; a function of numbers on texts; and
        a function of the user on both.
    """
    return frozenset(
        number
        for number, entry in enumerate(spec.kernels)
        if entry.function != PRECOMPUTED
        and _is_of_texts(entry, dataset, f"banks.{spec.label}.kernels[{number}]")
    )


def words_for_features(entry: KernelSpec) -> Sequence[object]:
    """Return the words for features of an entry."""
    return entry.features if isinstance(entry.features, list) else [entry.features]


def _is_of_texts(entry: KernelSpec, dataset: Dataset, place: str) -> bool:
    """Return True for an entry of texts."""
    numbers = {*dataset.groups, *dataset.feature_names}
    named = [word for word in words_for_features(entry) if isinstance(word, str)]
    texts = () if dataset.texts is None else (*dataset.texts.names, *dataset.texts.views)
    own = [word for word in named if word in texts and word not in numbers]
    function = FUNCTIONS.get(entry.function) if isinstance(entry.function, str) else None
    if function is not None and function.takes is Takes.TEXTS:
        _check_texts(entry, named, texts, numbers, place)
        return True
    if own and function is not None:
        raise SpecError(
            f"{place}.features",
            f"{own[0]!r}, a column of texts, for {kernel_words(entry.label)}",
            "features of numbers",
            'Set function = "spectrum" for texts',
        )
    if own and len(own) < len(named):
        other = next(word for word in named if word not in own)
        raise SpecError(
            f"{place}.features",
            f"{own[0]!r}, a column of texts, and {other!r}",
            "columns of texts alone, or features alone",
            "Write an entry for each",
        )
    return bool(own)


def _check_texts(
    entry: KernelSpec,
    named: Sequence[str],
    texts: Collection[str],
    numbers: Collection[str],
    place: str,
) -> None:
    """Refuse a function of texts without texts, and on what is no column of texts."""
    words = kernel_words(entry.label)
    if not texts:
        raise SpecError(
            f"{place}.function",
            f"{words} for data without texts",
            "texts = [columns] of the data set, or a kernel function of numbers",
            "In Python, mkldist.kernels.spectrum_gram computes Gram matrices of texts",
        )
    for word in named:
        if word in texts or word in EVERY:
            continue
        found = f"{word!r}, a feature or group of numbers," if word in numbers else f"{word!r}"
        raise SpecError(
            f"{place}.features",
            f"{found} for {words}",
            f"columns of texts: {first_of(list(texts), SHOWN)}",
            nearest(word, texts),
        )
