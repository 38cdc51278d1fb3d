"""Labels that splits need: for unlabelled points that are scored, and for inner folds."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.planning.data_checks import check_folds, check_unlabelled
from mkldist.planning.spec_checks import resolve_methods
from tests.planning.words import dataset, split, sweep

SIGNS_AND_ZERO = dataset([0, 1, 2, 0, 1, 2], classes=("-1", "0", "1"))


def test_zero_may_stand_for_no_label_only_where_the_entry_says_nothing():
    entry = sweep('[[methods]]\nname = "level"').datasets[0]
    with pytest.raises(
        SpecError, match=r"datasets\.a: found labels -1, 0 and 1, and unlabelled points"
    ):
        check_unlabelled(entry, SIGNS_AND_ZERO, [split(4, 0, 2), split(3, 2)])
    check_unlabelled(entry, SIGNS_AND_ZERO, [split(4, 0, 2)])
    named = entry.model_copy(update={"classes": ("-1", "0", "1")})
    check_unlabelled(named, SIGNS_AND_ZERO, [split(3, 2)])
    check_unlabelled(entry, dataset([-1, 1, -1, 1]), [split(2, 1)])


def test_folds_that_the_user_gave_fit_the_smallest_class_of_every_split():
    given = dataset([-1, 1, -1, 1, -1, 1])
    splits = [split(5), split(4, 0, 2)]  # the second has two labelled points of each class
    three = resolve_methods(sweep('[[methods]]\nname = "svm"\nfolds = 3\n'))["a"]
    check_folds(three, dataset([0.5] * 6, classes=None), splits)
    with pytest.raises(SpecError) as caught:
        check_folds(three, given, splits)
    assert str(caught.value) == (
        "methods.svm.folds: found 3; expected at most 2, the labelled points of the smallest class "
        "in a training part of 'a'. Lower it, or omit it."
    )
    for words in ("folds = 2\n", ""):
        grids = resolve_methods(sweep('[[methods]]\nname = "svm"\n' + words))["a"]
        check_folds(grids, given, splits)
