"""Base of the classifiers: classes, decision functions and predicted classes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from mkldist.arrays import Floats, Ints
from mkldist.estimators.base import KernelEstimator
from mkldist.estimators.class_labels import encoded
from mkldist.scores import predicted_classes


class KernelClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """Base of the classifiers: one decision function for two classes, one a class for more."""

    classes_: npt.NDArray[Any]
    _precedence: Ints

    def _learn_classes(self, y: npt.NDArray[Any]) -> Ints:
        """Keep the classes of labels and their precedence in ties; return the labels' numbers."""
        self.classes_, numbers = encoded(y)
        self._precedence = np.argsort(-np.bincount(numbers), kind="stable")
        return numbers

    def _function_names(self) -> Sequence[Hashable] | None:
        """Return the classes where there is a decision function for each."""
        names: list[Hashable] = self.classes_.tolist()
        return names if len(names) > 2 else None

    def _classes_of(self, values: Floats) -> npt.NDArray[Any]:
        """Return the classes that decision values (t, k) predict."""
        if values.shape[1] == 1:
            return self.classes_[(values[:, 0] > 0.0).astype(np.intp)]
        return self.classes_[predicted_classes(values.T, self._precedence)]

    def decision_function(self, X: Any) -> Floats:
        """Return decision values: (t,) for two classes, (t, k) for k.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        values = self._values(X)
        return values if values.shape[1] > 1 else values[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each row; a tie of several goes to the most frequent one.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows.
        """
        return self._classes_of(self._values(X))
