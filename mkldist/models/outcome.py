"""Meaning of decision values: classes of the user's, or real values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.data.dataset import Dataset
from mkldist.data.number_texts import name_of_number, number_name, number_of_name
from mkldist.scores import predicted_classes

Labels = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The step from decision values to predictions.

    Parameters
    ----------
    classes : (k,) array, or None
        Labels of the classes in the user's type: numbers, truth values or text.  Of two, the second
        has positive decision values.  None for real values, which are predictions themselves.
    order : tuple of int
        Of more than two classes: their positions by precedence, a tie goes to the first.
    positive_at_zero : bool
        True if a decision value of 0 predicts the second of two classes.
    """

    classes: Labels | None
    order: tuple[int, ...] = ()
    positive_at_zero: bool = True

    @classmethod
    def of_dataset(cls, dataset: Dataset, numbers: npt.NDArray[np.intp]) -> Outcome:
        """Return the outcome of a data set.

        Parameters
        ----------
        dataset : Dataset
            The data set, whose classes have names.
        numbers : (n,) intp
            Positions of the classes of the labelled rows; ties go to the most frequent class.
        """
        if dataset.classes is None:
            return cls(None)
        order: tuple[int, ...] = ()
        if dataset.multiclass:
            counts = np.bincount(numbers, minlength=len(dataset.classes))
            order = tuple(np.argsort(-counts, kind="stable").tolist())
        return cls(_typed(dataset.classes), order)

    @property
    def function_names(self) -> tuple[str, ...]:
        """Names of the decision functions: the classes where each has one, else empty."""
        if self.classes is None or not self.is_multiclass:
            return ()
        return tuple(map(str, self.classes.tolist()))

    @property
    def is_multiclass(self) -> bool:
        """True if there are more than two classes."""
        return self.classes is not None and len(self.classes) > 2

    @property
    def task(self) -> str:
        """``"regression"`` for real values, else ``"classification"``."""
        return "regression" if self.classes is None else "classification"

    def predictions(self, values: Floats) -> Labels:
        """Return the predictions of decision values (t, k), (t,): labels, or real values."""
        if self.classes is None:
            return values[:, 0]
        if self.is_multiclass:
            return self.classes[predicted_classes(values.T, np.array(self.order))]
        positive = values[:, 0] >= 0.0 if self.positive_at_zero else values[:, 0] > 0.0
        return self.classes[positive.astype(np.intp)]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        classes = None if self.classes is None else self.classes.tolist()
        return {
            "classes": classes,
            "type": None if self.classes is None else self.classes.dtype.str,
            "order": list(self.order),
            "positive_at_zero": self.positive_at_zero,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome of which :meth:`as_dict` gave the fields."""
        if fields["classes"] is None:
            return cls(None)
        kind = str(fields["type"])
        classes = np.array(fields["classes"], dtype=object if kind.endswith("O") else kind)
        return cls(classes, tuple(fields["order"]), bool(fields["positive_at_zero"]))


def _typed(names: tuple[str, ...]) -> Labels:
    """Return names of classes as whole numbers or numbers where all are, else as text.

    A text such as ``01`` or ``1_2`` names no number: written as one, it would read otherwise.
    """
    if not all(name_of_number(name) == name for name in names):
        return np.array(names)
    numbers = [number_of_name(name) for name in names]
    if all(isinstance(number, int) for number in numbers):
        whole = np.array(numbers)
        return whole if whole.dtype.kind in "iu" else np.array(numbers, dtype=object)
    exact = all(
        number_name(float(number)) == name for number, name in zip(numbers, names, strict=True)
    )
    return np.array(numbers, dtype=np.float64) if exact else np.array(names)
