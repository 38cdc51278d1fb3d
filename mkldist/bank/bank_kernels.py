"""The kernels of a bank on a data set: functions of features, of texts, and Gram matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mkldist.bank.sources import ArraySource, BankSource, FeatureSource, JoinedSource, PlainSource
from mkldist.core.arrays import Array, Floating, Floats, Ints
from mkldist.core.checksums import content_id
from mkldist.core.devices import CPU
from mkldist.core.memory import readable_bytes
from mkldist.core.wording import truncate
from mkldist.data.dataset import Dataset
from mkldist.data.preprocessing import feature_deviations, preprocessed
from mkldist.errors import SpecError, nearest
from mkldist.kernel_functions import FUNCTIONS, PARAMETERS
from mkldist.kernel_functions.bases import (
    INNER_PRODUCT,
    SQUARED_DISTANCE,
    inverse_lengths,
    is_sparse,
)
from mkldist.kernel_functions.definition import RELATIVE, Takes, kernel_words
from mkldist.kernels.evaluate import Presence, evaluate
from mkldist.kernels.families import default_family, kernel_list
from mkldist.kernels.kernel_list import KernelList, first_drawn
from mkldist.spec.banks import DEFAULT, PRECOMPUTED, KernelChoice, KernelSpec
from mkldist.spec.datasets import PreprocessingSpec

AS_IS = PreprocessingSpec(scale="none")
SHOWN = 8
EVERY = ("all", "each", "views", "groups")
Points = tuple[Floats | None, Array | None]
"""Features (n, d) of some points, and their texts (n, t)."""


@dataclass(frozen=True)
class GivenKernel:
    """A Gram matrix of a view: its number among those of the view, and its label in its name."""

    view: str
    number: int
    label: str  # empty if the view has no other and it has no name

    @property
    def name(self) -> str:
        """The name in results."""
        return f"{PRECOMPUTED}{self.label and f'({self.label})'}[{self.view}]"


@dataclass(frozen=True, eq=False)
class BankKernels:
    """The kernels of a bank: those of features, then of texts, then given matrices."""

    of_features: KernelList | None
    given: tuple[GivenKernel, ...] = ()  # all matrices of one view after the other
    of_texts: KernelList | None = None
    text_names: tuple[str, ...] = ()  # of the columns of texts
    text_views: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # columns of each

    @classmethod
    def of(
        cls,
        choice: KernelChoice,
        dataset: Dataset,
        seed: int,
        preprocessing: PreprocessingSpec = AS_IS,
    ) -> BankKernels:
        """Return the kernels of a bank on a data set of features, of views, or of both.

        Random subsets and widths are drawn with the seed.  Relative widths are multiples of the
        spread of all rows as `preprocessing` scales them, whichever rows a bank is made of: one
        list of kernels serves all splits.  Kernels that do not fit the features, the texts or the
        views raise a SpecError.
        """
        if choice.family == DEFAULT:
            own_family = {"family": None, "kernels": _default_family(dataset)}
            choice = choice.model_copy(update=own_family)
        texts, names = dataset.texts, () if dataset.texts is None else dataset.texts.names
        if choice.family == PRECOMPUTED and dataset.given:
            return cls(None, tuple(one for view in dataset.given for one in _of(view, dataset)))
        entries = dict(enumerate(choice.kernels))
        given = {number for number, one in entries.items() if one.function == PRECOMPUTED}
        of_texts = {
            number
            for number, one in entries.items()
            if number not in given and _is_of_texts(one, dataset, choice.place(number))
        }
        matrices: dict[GivenKernel, None] = {}
        for number, entry in entries.items():
            place = choice.place(number)
            if number in given:
                matrices |= dict.fromkeys(_given(entry, dataset, place))
            else:
                _check_features(entry, dataset, place)
        own = on_texts = None
        if not entries or given | of_texts != entries.keys():
            of_features = dataset.n_features, dataset.feature_names, dataset.groups
            own = kernel_list(
                choice, *of_features, seed, dataset.views, left_out=of_texts,
                deviations=lambda: feature_deviations(preprocessing, dataset),
            )  # fmt: skip
        if of_texts and texts is not None:
            others = entries.keys() - of_texts
            columns = len(names), names, texts.groups
            on_texts = kernel_list(choice, *columns, seed, texts.views, left_out=others)
        if isinstance(choice.n_kernels, int):
            drawn = choice.n_kernels, seed, choice.where
            own, on_texts = first_drawn((own, on_texts), *drawn)
        if own is not None and dataset.sparse is not None:
            _check_sparse(own, dataset, choice.where)
        views = {} if texts is None else texts.groups
        return cls(own, tuple(matrices), on_texts, names, views)

    def __len__(self) -> int:
        return sum(self._sizes)

    @property
    def are_of_features(self) -> bool:
        """True if all kernels are functions of features."""
        return self.of_texts is None and not self.given

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Numbers of kernels of features, of texts, and of given matrices."""
        lists = (self.of_features, self.of_texts, self.given)
        own, texts, given = (0 if one is None else len(one) for one in lists)
        return own, texts, given

    @property
    def fingerprint(self) -> str:
        """Content hash of the kernels."""
        given = [[kernel.view, kernel.number] for kernel in self.given]
        own = None if self.of_features is None else self.of_features.fingerprint
        if self.of_texts is not None:
            texts = self.of_texts.fingerprint
            return content_id(of_features=own, given=given, of_texts=texts)
        return own if own is not None and not given else content_id(of_features=own, given=given)

    @property
    def groups(self) -> Ints:
        """Group of each kernel, (M,): those on one feature subset, or of one view, form one."""
        views = list(dict.fromkeys(kernel.view for kernel in self.given))
        given = np.array([views.index(kernel.view) for kernel in self.given], dtype=np.intp)
        found = np.empty(0, dtype=np.intp)
        lists = [one.groups for one in (self.of_features, self.of_texts) if one is not None]
        for groups in (*lists, given):
            found = np.concatenate([found, 1 + int(found.max(initial=-1)) + groups])
        return found

    def select(self, kernels: Ints) -> BankKernels:
        """Return some of the kernels, ascending."""
        n_own, n_texts, _ = self._sizes
        own, texts, given = np.split(kernels, np.searchsorted(kernels, [n_own, n_own + n_texts]))
        return BankKernels(
            None if self.of_features is None else self.of_features.select(own),
            tuple(self.given[kernel - n_own - n_texts] for kernel in given.tolist()),
            None if self.of_texts is None else self.of_texts.select(texts - n_own),
            self.text_names,
            self.text_views,
        )

    def names(self, feature_names: Sequence[str]) -> list[str]:
        """Return one name per kernel."""
        own = [] if self.of_features is None else self.of_features.names(feature_names)
        texts = [] if self.of_texts is None else self.of_texts.names(self.text_names)
        return own + texts + [kernel.name for kernel in self.given]

    def source(
        self,
        dataset: Dataset,
        points: Floats | None,
        rows: Ints | None,
        *,
        cosine: bool,
        device: str = CPU,
        where: str = "device",
    ) -> BankSource:
        """Return the source of the bank's values, whose passes a device computes.

        `points` (N, d) are all rows of the data set, preprocessed, None without kernels of
        features; `rows` those that are the bank's points, None for all.  With `cosine`, kernels are
        scaled to unit self-similarities.  `where` is the place of `device` in messages.
        """
        parts: list[BankSource] = []
        if self.of_features is not None and points is not None:
            if is_sparse(points):
                own = points if rows is None else points[rows]
                parts.append(PlainSource(own, self.of_features, cosine))
            else:  # each feature contiguous, as the loops of kernels read it
                own = points if rows is None else np.take(points.T, rows, axis=1).T
                parts.append(FeatureSource(own, self.of_features, cosine))
        if self.of_texts is not None and dataset.texts is not None:
            texts = dataset.texts.values if rows is None else dataset.texts.values[rows]
            text_kernels = tuple(self.of_texts.names(self.text_names))
            parts.append(PlainSource(texts, self.of_texts, cosine, text_kernels))
        for view in dict.fromkeys(kernel.view for kernel in self.given):
            one, presence = dataset.given[view], None
            chosen = [kernel for kernel in self.given if kernel.view == view]
            numbers = [kernel.number for kernel in chosen]
            grams = one.grams if len(numbers) == len(one.grams) else one.grams[numbers]
            present = one.present if rows is None else one.present[rows]
            if not present.all():
                presence = Presence(present[None], np.zeros(len(grams), dtype=np.intp))
            names = tuple(kernel.name for kernel in chosen)
            parts.append(ArraySource(grams, cosine, rows, presence, names))
        source = parts[0] if len(parts) == 1 else JoinedSource(tuple(parts))
        if device == CPU:
            return source
        from mkldist.bank.device import on_device  # which few need

        return on_device(source, device, where)

    def cross_values(
        self,
        dataset: Dataset,
        points: Floats | None,
        kernels: Ints,
        rows: Ints,
        cols: Ints,
        *,
        cosine: bool,
    ) -> Iterator[Floats]:
        """Yield the values of some kernels, at least one, between two sets of rows of the data set.

        Kernels and rows are numbers (S,), (r,) and (c,); the rest is as for :meth:`source`.
        """
        texts = None if dataset.texts is None else dataset.texts.values

        def at(some: Ints) -> Points:
            of_texts = None if texts is None else texts[some]
            return None if points is None else points[some], of_texts

        def gram(kernel: GivenKernel) -> Floats:
            matrix = dataset.given[kernel.view].grams[kernel.number]
            return part_of_gram(matrix, rows, cols, cosine=cosine)

        yield from self.values_between(kernels, at(rows), at(cols), gram, cosine=cosine)

    def values_between(
        self,
        kernels: Ints,
        rows: Points,
        cols: Points,
        gram: Callable[[GivenKernel], Floats],
        *,
        cosine: bool,
    ) -> Iterator[Floats]:
        """Yield the values of each of some kernels between two sets of points, `rows` and `cols`.

        `gram` returns the (r, c) values of a given matrix; the rest is as for :meth:`source`.
        """
        n_own, n_texts, _ = self._sizes
        kinds = np.searchsorted([n_own, n_own + n_texts], kernels, side="right")
        for some in np.split(kernels, np.flatnonzero(np.diff(kinds)) + 1):
            kind = int(some[0] >= n_own)
            functions, left, right = (self.of_features, self.of_texts)[kind], rows[kind], cols[kind]
            if some[0] >= n_own + n_texts:
                yield from (gram(self.given[m - n_own - n_texts]) for m in some.tolist())
            elif functions is not None and left is not None and right is not None:
                chosen = functions.select(some - n_own * kind)
                yield from evaluate(chosen, left, right, cosine=cosine)


SAMPLED_ROWS, SAMPLED_KERNELS, SAMPLED_PRODUCTS = 100, 1000, 2e9
NEARLY_IDENTITY = 0.001  # mean absolute value of a pair of rows, in units of the mean diagonal
NEARLY_CONSTANT = 0.01  # range of all values, in units of their mean absolute value
DIGITS = 6  # to which equal kernels agree, in units of the mean diagonal


@dataclass(frozen=True)
class SayNothing:
    """Numbers of kernels that say nothing of the rows, or nothing that another does not."""

    of: int  # kernels of the bank
    seen: int  # kernels that were looked at
    identity: int
    constant: int
    equal: int  # as another on all pairs of rows, but for a factor
    rows: int  # sampled of a training part

    @classmethod
    def in_bank(
        cls,
        kernels: BankKernels | None,
        dataset: Dataset,
        train: Ints,
        preprocessing: PreprocessingSpec,
        *,
        cosine: bool,
        seed: int,
    ) -> SayNothing:
        """Look at up to 1000 kernels on up to 100 rows of a training part, drawn with the seed.

        Kernels are None for the Gram matrices of the data set itself.  A kernel is nearly the
        identity if pairs of rows have a mean absolute value below ``NEARLY_IDENTITY``, in units of
        its mean diagonal; constant if its values differ by less than ``NEARLY_CONSTANT`` of their
        mean size.
        """
        random = np.random.default_rng(seed)
        given = dataset.grams
        n_kernels = len(kernels) if kernels is not None else 0 if given is None else len(given)
        rows = np.sort(random.permutation(train)[:SAMPLED_ROWS])
        own = None if kernels is None else kernels.of_features
        size = 1.0 if own is None else len(own.subset_indices) / (len(own.subset_indptr) - 1)
        most = max(1, min(SAMPLED_KERNELS, int(SAMPLED_PRODUCTS / (size * len(rows) ** 2))))
        some = np.sort(random.permutation(n_kernels)[:most])
        known: set[bytes] = set()
        grams = _sampled_grams(kernels, dataset, rows, some, preprocessing, cosine=cosine)
        counts = Counter(_kind(gram, known) for gram in grams)
        identity, constant, equal = (counts[kind] for kind in ("identity", "constant", "equal"))
        return cls(n_kernels, len(some), identity, constant, equal, len(rows))

    @property
    def words(self) -> str:
        """The numbers in words; empty if every kernel says something of its own."""
        parts = ((self.identity, "nearly the identity"), (self.constant, "constant"),
                 (self.equal, "equal to others"))  # fmt: skip
        found = [f"{count} {'are' if count > 1 else 'is'} {what}" for count, what in parts if count]
        seen = f"{self.seen} drawn of {self.of}" if self.seen < self.of else f"{self.of}"
        hint = "; relative_widths follow the spread of features" if self.identity else ""
        return f"of {seen}, {', '.join(found)} on {self.rows} training rows{hint}" if found else ""


def _sampled_grams(
    kernels: BankKernels | None,
    dataset: Dataset,
    rows: Ints,
    some: Ints,
    preprocessing: PreprocessingSpec,
    *,
    cosine: bool,
) -> Iterator[Floats]:
    """Yield the values of some kernels between some rows; scaling is fitted on these."""
    if kernels is None:
        if dataset.grams is not None:
            for number in some.tolist():
                yield part_of_gram(dataset.grams[number], rows, rows, cosine=cosine)
        return
    sample = replace(
        dataset,
        x=None if dataset.x is None else dataset.x[rows],
        sparse=None if dataset.sparse is None else dataset.sparse[rows],
        y=dataset.y[rows],
        weights=None if dataset.weights is None else dataset.weights[rows],
        texts=None if dataset.texts is None else dataset.texts.of_rows(rows),
        given={name: one.of(rows) for name, one in dataset.given.items()},
    )
    points, every = None, np.arange(len(rows))
    if kernels.of_features is not None:
        points = preprocessed(preprocessing.model_copy(update={"fit": "all"}), sample)
    yield from kernels.cross_values(sample, points, some, every, every, cosine=cosine)


def _kind(gram: Floats, known: set[bytes]) -> str:
    """Return how a Gram matrix says nothing, and add its digits to those that are known."""
    present = np.diagonal(gram) > 0.0
    values = gram[present][:, present]
    size = float(np.abs(values).mean()) if values.size else 0.0
    if size == 0.0 or float(np.ptp(values)) <= NEARLY_CONSTANT * size:
        return "constant"
    values = values / np.diagonal(values).mean()
    apart = np.abs(values).sum() - np.trace(values)
    if apart <= NEARLY_IDENTITY * (values.size - len(values)):
        return "identity"
    digits = present.tobytes() + (np.round(values, DIGITS) + 0.0).tobytes()
    if digits in known:
        return "equal"
    known.add(digits)
    return ""


def part_of_gram(gram: Floating, rows: Ints, columns: Ints, *, cosine: bool) -> Floats:
    """Return some rows and columns of a Gram matrix, as cosines if asked for."""
    values = np.asarray(gram[rows[:, None], columns], dtype=np.float64)
    if cosine:
        inverse = inverse_lengths(np.diagonal(gram).astype(np.float64))
        values = values * inverse[rows, None] * inverse[columns]
    return values


def _words(entry: KernelSpec) -> Sequence[object]:
    """Return the words for features of an entry."""
    return entry.features if isinstance(entry.features, list) else [entry.features]


def _default_family(dataset: Dataset) -> tuple[KernelSpec, ...]:
    """Return the default kernels on the features of a data set, or on each view, and beside them.

    Features of no view, besides others, make kernels on all features too.
    """
    sizes = {name: len(view.columns) for name, view in dataset.views.items()}
    sizes = {name: size for name, size in sizes.items() if size}
    of_views = {column for view in dataset.views.values() for column in view.columns}
    if len(of_views) < dataset.n_features:
        sizes["all"] = dataset.n_features
    return default_family(
        sizes,
        sparse=dataset.sparse is not None,
        texts=dataset.texts is not None,
        given=list(dataset.given),
    )


def _is_of_texts(entry: KernelSpec, dataset: Dataset, place: str) -> bool:
    """Return True for an entry of texts: a function of texts, or of the user on columns of texts.

    Raise SpecError for a function of texts without texts or on features, a function of numbers on
    texts, and a function of the user on both.
    """
    numbers = {*dataset.groups, *dataset.feature_names}
    named = [word for word in _words(entry) if isinstance(word, str)]
    texts = () if dataset.texts is None else (*dataset.texts.names, *dataset.texts.views)
    own = [word for word in named if word in texts and word not in numbers]
    function = FUNCTIONS.get(entry.function) if isinstance(entry.function, str) else None
    where, words = f"{place}.features", kernel_words(entry.label)
    if function is not None and function.takes is Takes.TEXTS:
        if not texts:
            expected = "texts = [columns] of the data set, or a kernel function of numbers"
            hint = "In Python, mkldist.kernels.spectrum_gram computes Gram matrices of texts"
            raise SpecError(f"{place}.function", f"{words} for data without texts", expected, hint)
        other = next((word for word in named if word not in (*texts, *EVERY)), None)
        if other is not None:
            kind = ", a feature or group of numbers," if other in numbers else ""
            expected = f"columns of texts: {truncate(list(texts), SHOWN)}"
            raise SpecError(where, f"{other!r}{kind} for {words}", expected, nearest(other, texts))
        return True
    if own and function is not None:
        found, hint = f"{own[0]!r}, a column of texts, for {words}", 'Set function = "spectrum"'
        raise SpecError(where, found, "features of numbers", f"{hint} for texts")
    if own and len(own) < len(named):
        other = next(word for word in named if word not in own)
        found = f"{own[0]!r}, a column of texts, and {other!r}"
        expected = "columns of texts alone, or features alone"
        raise SpecError(where, found, expected, "Write an entry for each")
    return bool(own)


def _check_sparse(kernels: KernelList, dataset: Dataset, where: str) -> None:
    """Refuse kernels that would make sparse features dense."""
    for m in np.unique(kernels.function, return_index=True)[1].tolist():
        function = kernels.function_of(m)
        if function.base not in (INNER_PRODUCT, SQUARED_DISTANCE):
            size = readable_bytes(8 * dataset.n_points * dataset.n_features)
            found = f"a {function.label} kernel of sparse features, dense {size}"
            expected = "gaussian, polynomial or linear kernels, which sparse products give"
            raise SpecError(where, found, expected, "Use dense features for it")


def _given(entry: KernelSpec, dataset: Dataset, place: str) -> Iterator[GivenKernel]:
    """Yield the matrices that an entry names."""
    for key in (*PARAMETERS, RELATIVE):
        if key in entry.model_fields_set and getattr(entry, key) is not None:
            raise SpecError(f"{place}.{key}", f"{key} of a {PRECOMPUTED} kernel", "none")
    known = list(dataset.given)
    listed = f"one of {', '.join(map(repr, known))}" if known else "a view with grams = a file"
    for word in _words(entry):
        if not isinstance(word, str) or word not in dataset.given:
            found = "no view" if "features" not in entry.model_fields_set else f"{word!r}"
            hint = nearest(word, known) if isinstance(word, str) else ""
            if word in dataset.groups or word in dataset.feature_names:
                hint = 'Set function = "gaussian" or the like for kernels of features'
            found += f" for a {PRECOMPUTED} kernel on data set {dataset.name!r}"
            expected = f"the name of a view of Gram matrices: {listed}"
            raise SpecError(f"{place}.features", found, expected, hint)
        yield from _of(word, dataset)


def _of(view: str, dataset: Dataset) -> Iterator[GivenKernel]:
    """Yield the matrices of a view."""
    count, names = len(dataset.given[view].grams), dataset.given[view].names
    for number in range(count):
        yield GivenKernel(view, number, names[number] if names else str(number) * (count > 1))


def _check_features(entry: KernelSpec, dataset: Dataset, place: str) -> None:
    """Refuse kernel functions on a view of Gram matrices."""
    for word in _words(entry):
        if word in dataset.given and word not in (*dataset.groups, *dataset.feature_names):
            found = f"{word!r}, a view of Gram matrices, for a {entry.label} kernel"
            hint = f'Set function = "{PRECOMPUTED}" for this view, in an entry of its own'
            raise SpecError(f"{place}.features", found, "features", hint)
