"""Checks that precede data: methods, their grids, searches, C from other methods, code."""

import sys
from pathlib import Path

import pytest

from mkldist.errors import SpecError
from mkldist.planning.checks import (
    check_banks,
    check_code,
    check_graph_has_use,
    check_kernel_numbers,
    check_labels,
    check_method,
    check_search,
    check_two_classes,
    code_lines,
    code_of,
    resolve_methods,
)
from mkldist.planning.model import BankFacts
from mkldist.spec.banks import BankSpec
from tests.planning.plans import labelled, sweep

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
    check_labels(grids, labelled([-1, 1]))
    with pytest.raises(SpecError) as caught:
        check_labels(grids, labelled([0.5, 2.5], classes=None))
    assert str(caught.value).startswith(said)


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


TWO_C = '[[methods]]\nname = "level"\nC = [1, 10]\nnear = 0.9\n'
SEARCH = '[search]\nkind = "random"\ntrials = 5\n[selection]\n'


def test_a_table_replaces_single_parameters_on_one_data_set():
    words = TWO_C + "[methods.on.b]\nC = { start = 1, stop = 100, num = 3, scale = 'log' }\n"
    grids = resolve_methods(sweep(words))
    assert grids["a"]["level"].dims == {"C": [1.0, 10.0]}
    assert grids["b"]["level"].dims["C"] == pytest.approx([1, 10, 100])
    assert {point.near for on in grids.values() for point in on["level"].points} == {0.9}


def test_a_parameter_may_vary_on_one_data_set_alone():
    grids = resolve_methods(sweep(TWO_C + "on = { a = { near = [0.8, 0.9] } }\n"))
    assert grids["a"]["level"].dims == {"C": [1.0, 10.0], "near": [0.8, 0.9]}
    assert list(grids["b"]["level"].dims) == ["C"]


def test_a_search_may_be_of_one_data_set_alone():
    words = SEARCH + TWO_C + "on = { b = { C = { low = 1, high = 10 } } }\n"
    grids = resolve_methods(sweep(words))
    assert grids["a"]["level"].space is None
    assert grids["b"]["level"].dims == {"trial": [0, 1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("[methods.on.c]\nC = 1\n",
         "methods.level.on.c: found the unknown data set 'c'; "
         "expected names of [[datasets]]: a, b"),
        ("[methods.on.b]\nC = 0\n", "methods.level.on.b.C: found 0; expected a number above 0"),
        ("[methods.on.b]\nD = 1\n", "methods.level.on.b.D: found an unknown parameter"),
        ("[methods.on.b]\nbanks = ['xu2008']\n",
         "methods.level.on.b.banks: found a key of the whole entry; expected parameters of level"),
    ],
)  # fmt: skip
def test_tables_that_mean_nothing_are_refused(words, said):
    with pytest.raises(SpecError) as caught:
        resolve_methods(sweep(TWO_C + words))
    assert str(caught.value).startswith(said)


DRAWN = '[[methods]]\nname = "level"\nC = { low = 0.01, high = 1000, scale = "log" }\n'
GRID = '[[methods]]\nname = "level"\nC = [1, 10]\n'
RANDOM = '[search]\nkind = "random"\ntrials = 5\n'
HALVING = '[search]\nkind = "halving"\ntrials = 9\n'


@pytest.mark.parametrize(
    ("words", "where", "said", "advice"),
    [
        (DRAWN, "methods.level.C", "a distribution without [search]", "Add [search]"),
        (RANDOM + GRID, "search", "no parameter with a distribution", "Remove [search]"),
        (RANDOM + DRAWN, "search", "[search] without inner folds", "test labels never do"),
    ],
)
def test_what_a_search_lacks_is_named(words, where, said, advice):
    with pytest.raises(SpecError) as caught:
        check_search(sweep(words))
    assert caught.value.where == where
    assert caught.value.found == said
    assert advice in str(caught.value)


def test_tolerances_fall_to_that_of_the_method():
    words = HALVING + "[selection]\n" + DRAWN + "tol = 0.003\n"
    assert resolve_methods(sweep(words))["a"]["level"].dims["tol"] == [0.3, 0.03, 0.003]
    words = HALVING + "first = 0.1\nrungs = 2\n[selection]\n" + DRAWN
    assert resolve_methods(sweep(words))["a"]["level"].dims["tol"] == [0.1, 0.01]


@pytest.mark.parametrize(
    ("keys", "tol", "said"),
    [
        ("first = 0.01\n", "", "search.first: found 0.01; expected a tolerance above 0.01"),
        ("", "tol = 0.5\n", "search.first: found 0.3 by default; expected a tolerance above 0.5"),
        ("", "tol = [0.1, 0.01]\n", "methods.level.tol: found several tolerances"),
    ],
)
def test_tolerances_that_are_no_rungs_are_refused(keys, tol, said):
    with pytest.raises(SpecError, match=said):
        resolve_methods(sweep(HALVING + keys + "[selection]\n" + DRAWN + tol))


HINGE = '[[methods]]\nname = "spicymkl"\nloss = "hinge"\nC = [0.1, 1]\n'
TAKES = '[[methods]]\nname = "level"\nC = { from = "spicymkl" }\n'


def test_the_dims_are_those_of_both_methods():
    grids = resolve_methods(sweep(TAKES + "near = [0.8, 0.9]\n" + HINGE))["a"]
    assert grids["level"].dims == {"source_C": [0.1, 1.0], "near": [0.8, 0.9]}
    assert grids["level"].run_parameters == ["C"]
    assert grids["level"].is_open
    assert not grids["spicymkl"].is_open


def test_the_dims_of_a_data_set_are_those_of_the_other_method_there():
    grids = resolve_methods(sweep(HINGE + "[methods.on.b]\nC = 5\n" + TAKES))
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
        (TAKES, "methods.level.C: found the unknown method 'spicymkl'"),
        (TAKES.replace("spicymkl", "level"), "methods.level.C: found its own method"),
        (HINGE + TAKES.replace("spicymkl", "spicymlk"), "methods.level.C: found the unknown method "
         "'spicymlk'; expected another of [[methods]]: spicymkl. Did you mean 'spicymkl'?"),
        (HINGE + TAKES + '[[methods]]\nname = "silp"\nC = { from = "level" }\n',
         "methods.silp.C: found level, whose own C comes from a method; "
         "expected a method with values of C"),
        (TAKES.replace("spicymkl", "silp") + '[[methods]]\nname = "silp"\nC = { from = "level" }\n',
         "methods.level.C: found silp, whose own C comes from a method"),
        (HINGE.replace("hinge", "logistic") + TAKES,
         "methods.level.C: found spicymkl, whose solutions give no C; "
         'expected a spicymkl with loss = "hinge" and regularizer = "block1", by its label'),
        (HINGE + 'regularizer = "uniform"\n' + TAKES,
         "methods.level.C: found spicymkl, whose solutions give no C"),
        ('[[methods]]\nname = "uniform"\n' + TAKES.replace("spicymkl", "uniform"),
         "methods.level.C: found uniform, whose solutions give no C"),
        (HINGE + TAKES.replace("C =", "near ="), "methods.level.near: found {from = \"spicymkl\"}; "
         "expected a value. Another method may give C."),
        (HINGE + TAKES.replace("level", "elastmkl"),
         "methods.elastmkl.C: found {from = \"spicymkl\"} for elastmkl; "
         "expected a method whose C weighs the hinge loss: level,"),
        (HINGE + TAKES.replace(" }", ", low = 1 }"), "methods.level.C: found "),
        (HINGE + TAKES + "near = { low = 0.8, high = 0.9 }\n" + SEARCH,
         "methods.level.C: found {from = \"spicymkl\"} beside a distribution"),
        (HINGE.replace("[0.1, 1]", "{ low = 0.1, high = 1 }") + TAKES + SEARCH,
         "methods.level.C: found spicymkl, whose settings are searched"),
        (HINGE + 'banks = ["xu2008"]\n' + TAKES + '[[banks]]\nfamily = "do2009"\n',
         "methods.level.C: found spicymkl, which does not run on bank 'do2009' as level does"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(words, said):
    with pytest.raises(SpecError) as caught:
        resolve_methods(sweep(words))
    assert str(caught.value).startswith(said)


def test_classes_against_the_rest_are_refused():
    grids = resolve_methods(sweep(HINGE + TAKES))["a"]
    check_two_classes(grids, labelled([-1, 1]))
    three = labelled([0, 1, 2], classes=("u", "v", "w"))
    with pytest.raises(SpecError) as caught:
        check_two_classes(grids, three)
    assert str(caught.value).startswith(
        "methods.level.C: found C from spicymkl for the 3 classes of data set 'a'; "
        "expected a data set of two classes"
    )


PLAIN = sweep('[[methods]]\nname = "level"')
OWN = PLAIN.model_copy(
    update={
        "banks": (
            PLAIN.banks[0],
            BankSpec(
                name="mine",
                kernels=[
                    {"function": "linear"},
                    {"function": max},
                    {"function": "mine:k", "parameters": {"a": 1}},
                    {"function": "mine:k"},
                ],
            ),
        )
    }
)


def test_code_is_told_by_place_and_said_once():
    places = [("banks.mine.kernels[2]", "mine:k"), ("banks.mine.kernels[3]", "mine:k")]
    assert list(code_of(OWN)) == places
    assert list(code_lines(OWN)) == ["runs code that is not mkldist's: mine:k"]
    assert list(code_lines(PLAIN)) == []


def test_code_is_refused_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    with pytest.raises(SpecError) as caught:
        check_code(OWN, Path("some"), allowed=False)
    assert str(caught.value) == (
        "banks.mine.kernels[2].function: found 'mine:k', code that would run on this machine and "
        "on all workers; expected what mkldist has, or --allow-code. Repeat the "
        "command with --allow-code if you trust this code."
    )
    assert sys.path == before


def test_allowed_code_is_searched_in_the_folder_of_the_sweep_file(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    assert check_code(OWN, tmp_path, allowed=True) == str(tmp_path)
    check_code(OWN, tmp_path, allowed=True)
    assert sys.path == [str(tmp_path), *before]
    assert check_code(PLAIN, tmp_path / "other", allowed=True) == ""
    assert sys.path == [str(tmp_path), *before]
