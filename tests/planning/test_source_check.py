"""C from another method: who can take it, who can give it, and the dims of the results."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.planning.data_checks import check_two_classes
from mkldist.planning.spec_checks import resolve_methods
from tests.planning.words import dataset, sweep

HINGE = '[[methods]]\nname = "spicymkl"\nloss = "hinge"\nC = [0.1, 1]\n'
LEVEL = '[[methods]]\nname = "level"\nC = { from = "spicymkl" }\n'
SEARCH = '[search]\nkind = "random"\ntrials = 5\n[selection]\n'


def test_the_dims_are_those_of_both_methods():
    grids = resolve_methods(sweep(LEVEL + "near = [0.8, 0.9]\n" + HINGE))["a"]
    assert grids["level"].dims == {"source_C": [0.1, 1.0], "near": [0.8, 0.9]}
    assert grids["level"].run_parameters == ["C"]
    assert grids["level"].is_open
    assert not grids["spicymkl"].is_open


def test_the_dims_of_a_data_set_are_those_of_the_other_method_there():
    grids = resolve_methods(sweep(HINGE + "[methods.on.b]\nC = 5\n" + LEVEL))
    assert grids["a"]["level"].dims == {"source_C": [0.1, 1.0]}
    assert grids["b"]["level"].dims == {"source_C": [5.0]}


def test_c_may_come_from_a_method_on_one_data_set_alone():
    grids = resolve_methods(
        sweep(HINGE + '[[methods]]\nname = "level"\non = { b = { C = { from = "spicymkl" } } }\n')
    )
    assert grids["a"]["level"].dims == {"C": [1.0]}
    assert grids["b"]["level"].source == "spicymkl"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (LEVEL, "methods.level.C: found the unknown method 'spicymkl'"),
        (LEVEL.replace("spicymkl", "level"), "methods.level.C: found its own method"),
        (HINGE + LEVEL.replace("spicymkl", "spicymlk"), "methods.level.C: found the unknown method "
         "'spicymlk'; expected another of [[methods]]: spicymkl. Did you mean 'spicymkl'?"),
        (HINGE + LEVEL + '[[methods]]\nname = "silp"\nC = { from = "level" }\n',
         "methods.silp.C: found level, whose own C comes from a method; "
         "expected a method with values of C"),
        (LEVEL.replace("spicymkl", "silp") + '[[methods]]\nname = "silp"\nC = { from = "level" }\n',
         "methods.level.C: found silp, whose own C comes from a method"),
        (HINGE.replace("hinge", "logistic") + LEVEL,
         "methods.level.C: found spicymkl, whose solutions give no C; "
         'expected a spicymkl with loss = "hinge" and regularizer = "block1", by its label'),
        (HINGE + 'regularizer = "uniform"\n' + LEVEL,
         "methods.level.C: found spicymkl, whose solutions give no C"),
        ('[[methods]]\nname = "uniform"\n' + LEVEL.replace("spicymkl", "uniform"),
         "methods.level.C: found uniform, whose solutions give no C"),
        (HINGE + LEVEL.replace("C =", "near ="), "methods.level.near: found {from = \"spicymkl\"}; "
         "expected a value. Another method may give C."),
        (HINGE + LEVEL.replace("level", "elastmkl"),
         "methods.elastmkl.C: found {from = \"spicymkl\"} for elastmkl; "
         "expected a method whose C weighs the hinge loss: level,"),
        (HINGE + LEVEL.replace(" }", ", low = 1 }"), "methods.level.C: found "),
        (HINGE + LEVEL + "near = { low = 0.8, high = 0.9 }\n" + SEARCH,
         "methods.level.C: found {from = \"spicymkl\"} beside a distribution"),
        (HINGE.replace("[0.1, 1]", "{ low = 0.1, high = 1 }") + LEVEL + SEARCH,
         "methods.level.C: found spicymkl, whose settings are searched"),
        (HINGE + 'banks = ["xu2008"]\n' + LEVEL + '[[banks]]\nfamily = "do2009"\n',
         "methods.level.C: found spicymkl, which does not run on bank 'do2009' as level does"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(words, said):
    with pytest.raises(SpecError) as caught:
        resolve_methods(sweep(words))
    assert str(caught.value).startswith(said)


def test_classes_against_the_rest_are_refused():
    grids = resolve_methods(sweep(HINGE + LEVEL))["a"]
    check_two_classes(grids, dataset([-1, 1]))
    three = dataset([0, 1, 2], classes=("u", "v", "w"))
    with pytest.raises(SpecError) as caught:
        check_two_classes(grids, three)
    assert str(caught.value).startswith(
        "methods.level.C: found C from spicymkl for the 3 classes of data set 'a'; "
        "expected a data set of two classes"
    )
