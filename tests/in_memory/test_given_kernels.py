"""Kernels of a user in the words of a sweep file, and the messages of sweep files about them."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

import mkldist
from mkldist.bank.bank_kernels import BankKernels
from mkldist.errors import DataError, SpecError
from mkldist.fit.bank import as_dataset, normalisation_steps
from mkldist.fit.inputs import Features
from mkldist.kernels.families import kernel_choice
from mkldist.spec.banks import BankSpec, KernelChoice

GAUSSIAN = {"function": "gaussian", "widths": [0.5, 1.0]}
FEATURES = Features.of(np.arange(12.0).reshape(4, 3))


def test_entries_are_those_of_a_sweep_file():
    written = tomllib.loads("""
        normalisation = ["cosine", "trace"]
        [[kernels]]
        function = "gaussian"
        widths = {start = 1.0, stop = 2.0, num = 2}
        features = ["all", {count = 3, size = 2}]
        [[kernels]]
        function = "polynomial"
        degrees = [1, 2]
    """)
    entries = [
        {
            "function": "gaussian",
            "widths": {"start": np.float64(1), "stop": 2, "num": np.int64(2)},
            "features": ("all", {"count": 3, "size": 2}),
        },
        {"function": "polynomial", "degrees": range(1, 3)},
    ]
    spec = BankSpec.model_validate(written)
    assert kernel_choice(entries).kernels == spec.kernels
    assert normalisation_steps(("cosine", "trace")) == spec.normalisations
    assert kernel_choice("xu2008") == KernelChoice(family="xu2008")
    [entry] = kernel_choice([{"function": "gaussian", "widths": np.array([1, 2])}]).kernels
    widths = entry.widths
    assert widths == [1, 2]


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ("xu2009", "kernels: found \"xu2009\"; .* Did you mean 'xu2008'"),
        ([], "kernels: found an empty list; expected the name of a family"),
        (GAUSSIAN, "kernels: found {'function'"),
        (None, "kernels: found None"),
        (np.array([GAUSSIAN]), "kernels: found array"),
        (["gaussian"], r'kernels\[0\]: found "gaussian"; expected a table'),
        (
            [GAUSSIAN | {"width": 1}],
            r"kernels\[0\].width: found an unknown key; .* mean 'widths'",
        ),
        ([{"function": "gausian"}], r"kernels\[0\].function: found .* mean 'gaussian'"),
        ([GAUSSIAN, GAUSSIAN | {"widths": [1, -1]}], r"kernels\[1\].widths\[1\]: found -1"),
    ],
)
def test_mistakes_are_named_in_the_words_of_sweep_files(kernels, said):
    with pytest.raises(SpecError, match=said):
        kernel_choice(kernels)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"normalisation": "zscore"}, "normalisation"),
        ({"normalisation": ["trace", 1]}, "normalisation"),
        ({"normalisation": ["trace", "cosine"]}, "normalisation"),
        ({"backend": "disk"}, "backend"),
        ({"backend": None}, "backend"),
        ({"dtype": np.float32}, "dtype"),
        ({"backend": "recompute", "dtype": "float32"}, "dtype"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_their_argument(settings, where):
    with pytest.raises(SpecError) as caught:
        mkldist.KernelBank(np.eye(3), "xu2008", **settings)
    assert caught.value.where == where


def test_groups_name_features():
    choice = kernel_choice([GAUSSIAN | {"features": ["edge", "x1"]}])
    dataset = as_dataset(FEATURES, {"edge": ["x0", 2]}, {}, {})
    kernels = BankKernels.of(choice, dataset, 0).of_features
    assert kernels is not None
    assert [kernels.features_of(m).tolist() for m in range(4)] == [[0, 2], [0, 2], [1], [1]]
    with pytest.raises(DataError, match=r"X: groups\.edge: found no feature 'y0'; expected names"):
        as_dataset(FEATURES, {"edge": ["y0"]}, {}, {})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (GAUSSIAN | {"features": "x3"}, r"kernels\[0\].features: found 'x3'; .* Choose from x0"),
        ({"function": "gaussian"}, r"kernels\[0\]: found a gaussian kernel without widths"),
        (
            {"function": "linear", "degrees": 2},
            r"kernels\[0\].degrees: found degrees of a linear kernel",
        ),
        (
            GAUSSIAN | {"features": {"count": 2, "size": 4}},
            "size: found 4; expected at most 3 features",
        ),
    ],
)
def test_kernels_that_do_not_fit_the_features_are_refused(entry, said):
    with pytest.raises(SpecError, match=said) as caught:
        BankKernels.of(kernel_choice([entry]), as_dataset(FEATURES, {}, {}, {}), 0)
    assert caught.value.where.startswith("kernels[0]")


@pytest.mark.parametrize(
    ("groups", "views", "said"),
    [
        ({"v": [0]}, {"v": [1]}, "groups: found 'v', the name of a view too; expected a name of"),
        ({}, {"v": None}, r"views\['v'\]: found None; expected features in lists"),
        ({"g": "x0"}, {}, r"groups\['g'\]: found 'x0'; expected features in lists"),
        ({"g": [True, False]}, {}, r"groups\['g'\]: .* numbers of the columns of a mask"),
        ({}, [1], r"views: found \[1\]; expected features in lists"),
    ],
)
def test_groups_and_views_that_do_not_fit_are_refused(groups, views, said):
    with pytest.raises(SpecError, match=said):
        as_dataset(FEATURES, groups, views, {})


def test_groups_do_not_have_the_names_of_views_that_the_features_are_given_in():
    features = Features.of({"v": np.eye(3)})
    for given in (({"v": [0]}, {}), ({}, {"v": [0]})):
        with pytest.raises(SpecError, match="found 'v', the name of a view too"):
            as_dataset(features, *given, {})


def test_mistakes_are_told_as_python_spells_them():
    with pytest.raises(SpecError) as caught:
        mkldist.KernelBank(np.eye(3), ["gaussian"])
    assert caught.value.expected == 'a table such as {"function": "gaussian", "widths": [1]}'
    with pytest.raises(SpecError) as caught:
        mkldist.KernelBank(np.eye(3), [{"function": "gaussian", "widths": [1], "seed": 3}])
    assert caught.value.hint == "Leave it out"
