"""Methods that a sweep cannot use, and words of a sweep that no method uses."""

from __future__ import annotations

import pytest

from mkldist.errors import SpecError
from mkldist.planning.data_checks import check_kernel_numbers, check_labels, check_sharing_has_use
from mkldist.planning.model import BankFacts
from mkldist.planning.spec_checks import (
    check_banks,
    check_graph_has_use,
    check_method,
    resolve_methods,
)
from tests.planning.words import dataset, sweep

LAPSVM = '[[methods]]\nname = "lapsvm"\n'
LEVEL = '[[methods]]\nname = "level"\n'
SHARED = 'kernel_weights = "shared"\n'


def test_a_method_on_graphs_needs_a_graph_for_every_data_set():
    with pytest.raises(SpecError) as caught:
        resolve_methods(sweep(LAPSVM))
    assert str(caught.value) == (
        "methods.lapsvm.name: found lapsvm, which needs a graph, but data set 'a' has none; "
        "expected a "
        "table [graph], or graph = {...} under each data set. "
        "An empty [graph] joins each point to its 10 nearest neighbours."
    )
    given = sweep(LAPSVM + "[graph]\n")
    check_method(given, "methods.lapsvm", given.methods[0])
    entries = [entry.model_copy(update={"graph": given.graph}) for entry in given.datasets]
    each = given.model_copy(update={"graph": None, "datasets": tuple(entries)})
    check_method(each, "methods.lapsvm", each.methods[0])
    one = given.model_copy(update={"graph": None, "datasets": (entries[0], given.datasets[1])})
    with pytest.raises(SpecError, match="data set 'b' has none"):
        check_method(one, "methods.lapsvm", one.methods[0])


def test_a_graph_needs_one_method_that_uses_it():
    check_graph_has_use(sweep(LEVEL))
    check_graph_has_use(sweep(LEVEL + LAPSVM + "[graph]\n"))
    with pytest.raises(SpecError) as caught:
        check_graph_has_use(sweep(LEVEL + "[graph]\n"))
    assert str(caught.value) == (
        "graph: found a graph, which no method of this sweep uses; expected none, or a method on "
        "graphs: "
        "lapmkl, lapsvm, mklsvm, lsvm, glks or laprls. Remove it, or add such a method."
    )


def test_only_some_methods_share_kernel_weights():
    resolve_methods(sweep(LEVEL + SHARED))
    with pytest.raises(SpecError) as caught:
        resolve_methods(sweep('[[methods]]\nname = "gmkl"\n' + SHARED))
    said = str(caught.value)
    assert said.startswith(
        'methods.gmkl.kernel_weights: found "shared" for gmkl, which finds kernel weights '
        "for one "
        "class at a time; expected a method whose classes can share kernel weights: level, "
    )
    assert said.endswith('. Or remove it: kernel_weights = "per-class" is for every method.')


def test_shared_weights_need_a_data_set_of_more_than_two_classes():
    two = dataset([-1, 1])
    three = dataset([0, 1, 2], classes=("x", "y", "z"))
    check_sharing_has_use(sweep(LEVEL).methods, [two])
    check_sharing_has_use(sweep(LEVEL + SHARED).methods, [two, three])
    with pytest.raises(
        SpecError, match=r"methods\.level\.kernel_weights: .* more than two classes"
    ):
        check_sharing_has_use(sweep(LEVEL + SHARED).methods, [two])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (LEVEL, "methods.level: found level with loss hinge, which learns two classes, but data "
         "set 'a' is one "
         "of regression; expected a method that learns real values: spicymkl, elastmkl"),
        ('[[methods]]\nname = "spicymkl"\nloss = ["squared", "hinge"]\n', "methods.spicymkl: "
         "found spicymkl with loss hinge, which learns two classes, but data set 'a' is one of "
         "regression; "
         'expected loss = "squared" or "epsilon". Or remove the method or the data set.'),
        ('[[methods]]\nname = "primalmkl"\nloss = "one-class"\n', "methods.primalmkl: found "
         "primalmkl "
         "with loss one-class, which learns one class, but data set 'a' is one of regression; "
         'expected loss = "squared" or "epsilon-squared"'),
    ],
)  # fmt: skip
def test_real_values_are_for_losses_of_regression(words, said):
    grids = resolve_methods(sweep(words))["a"]
    check_labels(grids, dataset([-1, 1]))
    with pytest.raises(SpecError) as caught:
        check_labels(grids, dataset([0.5, 2.5], classes=None))
    assert str(caught.value).startswith(said)


def test_losses_of_regression_learn_classes_and_values():
    grids = resolve_methods(sweep('[[methods]]\nname = "spicymkl"\nloss = "squared"\n'))["a"]
    for given in (dataset([-1, 1]), dataset([0.5, 2.5], classes=None)):
        check_labels(grids, given)


TWO_BANKS = '[[banks]]\nfamily = "do2009"\nn_kernels = [5, 9]\n'


def test_banks_of_methods_are_there_and_every_bank_has_a_method():
    check_banks(sweep(TWO_BANKS + LEVEL))
    check_banks(sweep(TWO_BANKS + LEVEL + 'banks = ["xu2008", "do2009"]\n'))
    with pytest.raises(SpecError) as caught:
        check_banks(sweep(TWO_BANKS + LEVEL + 'banks = ["xu208"]\n'))
    assert str(caught.value) == (
        "methods.level.banks: found the unknown bank 'xu208'; expected names of [[banks]]: "
        "xu2008, do2009, do2009-5, do2009-9. Did you mean 'xu2008'?"
    )
    with pytest.raises(SpecError, match=r"^banks\.do2009-9: found a bank on which no method runs"):
        check_banks(sweep(TWO_BANKS + LEVEL + 'banks = ["xu2008", "do2009-5"]\n'))


def test_the_number_of_a_kernel_is_one_of_the_banks_of_its_method():
    wide = '[[banks]]\nname = "wide"\nn_kernels = 2\nfamily = "xu2008"\n'
    words = '[[methods]]\nname = "svm"\nkernel_number = [0, 5]\n'
    sizes = {("a", "xu2008"): BankFacts(39, "k"), ("a", "wide"): BankFacts(2, "w")}
    spec = sweep(f'{wide}[[methods]]\nname = "level"\n{words}banks = ["xu2008"]\n')
    check_kernel_numbers(spec, resolve_methods(spec), sizes)
    spec = sweep(f"{wide}{words}")
    with pytest.raises(SpecError, match=r"kernel_number: found 5; expected a number from 0 to 1"):
        check_kernel_numbers(spec, resolve_methods(spec), sizes)
