"""Check that the methods of a sweep can solve its problems, and that its words have a use.

A method says itself what it refuses (:meth:`mkldist.solvers.base.Method.refuses`).  The checks
state the facts of the sweep file and of its data sets, ask, and name the place of the mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mkldist.counted import counted
from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError, nearest
from mkldist.methods.registry import METHODS, methods_for
from mkldist.planning.facts import BankFacts
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.refusals import ProblemFacts, Refusal, one_of
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.targets import losses_by_target
from mkldist.spec.model import MethodSpec, SweepSpec
from mkldist.target import Target


def check_method(spec: SweepSpec, where: str, entry: MethodSpec) -> None:
    """Refuse a method that lacks a graph, or can neither weigh points nor share kernel weights.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first such data set, and the methods that can.
    """
    method = METHODS[entry.name]
    for dataset in spec.datasets:
        has_graph = spec.graph_of(dataset) is not None
        refusal = None if has_graph else method.refuses(ProblemFacts(laplacian=False))
        if refusal is not None:
            raise SpecError(
                f"{where}.name",
                f"{entry.name}, which {refusal.reason}, but data set {dataset.name!r} has none",
                "a table [graph], or graph = {...} under each data set",
                "An empty [graph] joins each point to its 10 nearest neighbours",
            )
        weighted = [key for key in ("class_weight", "weights") if getattr(dataset, key) is not None]
        problem = ProblemFacts(weighted=bool(weighted))
        refusal = method.refuses(problem)
        if refusal is not None:
            raise SpecError(
                f"{where}.name",
                f"{entry.name}, which {refusal.reason}, but data set {dataset.name!r} has "
                f"{weighted[0]}",
                f"{refusal.others}: {one_of(methods_for(problem))}",
                f"Or remove the method, or {weighted[0]}",
            )
    problem = ProblemFacts(shared_weights=entry.kernel_weights == "shared")
    refusal = method.refuses(problem)
    if refusal is not None:
        raise SpecError(
            f"{where}.kernel_weights",
            f'"shared" for {entry.name}, which {refusal.reason}',
            f"{refusal.others}: {one_of(methods_for(problem))}",
            'Or remove it: kernel_weights = "per-class" is for every method',
        )


def check_graph_has_use(spec: SweepSpec) -> None:
    """Refuse graphs in a sweep whose methods all refuse one.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first graph, and the methods that need one.
    """
    problem = ProblemFacts(laplacian=True)
    refusals = [METHODS[entry.name].refuses(problem) for entry in spec.methods]
    given = ["graph"] if spec.graph else []
    given += [f"datasets.{entry.name}.graph" for entry in spec.datasets if entry.graph]
    if given and all(refusals):
        [refusal, *_] = filter(None, refusals)
        raise SpecError(
            given[0],
            "a graph, which no method of this sweep uses",
            f"{refusal.expected}, or {refusal.others}: {one_of(methods_for(problem))}",
            "Remove it, or add such a method",
        )


def check_banks(spec: SweepSpec) -> None:
    """Refuse methods on banks that are not there, and banks on which no method runs.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first.
    """
    names = list(dict.fromkeys(n for bank in spec.sized_banks for n in (bank.series, bank.label)))
    for entry in spec.methods:
        for name in entry.banks or ():
            if name not in names:
                raise SpecError(
                    f"methods.{entry.key}.banks",
                    f"the unknown bank {name!r}",
                    f"names of [[banks]]: {', '.join(names)}",
                    nearest(name, names),
                )
    for bank in spec.sized_banks:
        if not any(entry.runs_on(bank) for entry in spec.methods):
            raise SpecError(
                f"banks.{bank.label}",
                "a bank on which no method runs",
                f"a method without banks, or one whose banks hold {bank.label!r}",
                "Remove it, or add it to the banks of a method",
            )


def check_kernel_numbers(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
) -> None:
    """Refuse the number of a kernel that a bank does not have.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    grids : mapping of str to mapping of str to MethodGrid
        All settings of the sweep's methods, by data set and key.
    banks : mapping of (str, str) to BankFacts
        Facts by data set and bank label.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first method with such a number, and the bank.
    """
    keys = {
        bank.label: [entry.key for entry in spec.methods if entry.runs_on(bank)]
        for bank in spec.sized_banks
    }
    for (dataset, bank), facts in banks.items():
        for key in keys[bank]:
            grid = grids[dataset][key]
            highest = max((point.chosen_kernel or 0 for point in grid.points), default=0)
            if highest >= facts.n_kernels:
                raise SpecError(
                    f"methods.{key}.kernel_number",
                    f"{highest}",
                    f"a number from 0 to {facts.n_kernels - 1}: bank {bank!r} of data set "
                    f"{dataset!r} has {counted(facts.n_kernels, 'kernel')}",
                )


def check_labels(grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse methods that cannot learn the labels of a data set.

    Every method can learn -1 and +1.  Only methods with a loss of regression learn real values.

    Parameters
    ----------
    grids : mapping of str to MethodGrid
        All settings of the sweep's methods by their keys.
    dataset : Dataset
        The data set.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first method and loss that cannot, and what can.
    """
    targets = tuple(Target) if dataset.task == "classification" else (Target.VALUES,)
    problem = ProblemFacts(targets=targets)
    for key, grid in grids.items():
        for params in grid.points:
            refusal = grid.method.refuses(problem, params.target)
            if refusal is not None:
                raise _refused_values(key, grid, params, refusal, dataset)


def check_sharing_has_use(methods: Sequence[MethodSpec], datasets: Sequence[Dataset]) -> None:
    """Refuse shared kernel weights where no data set has classes that could share them.

    Parameters
    ----------
    methods : sequence of MethodSpec
        The sweep's methods.
    datasets : sequence of Dataset
        Its data sets; one of more than two classes is enough.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first such method.
    """
    if any(dataset.multiclass for dataset in datasets):
        return
    for entry in methods:
        if entry.kernel_weights == "shared":
            raise SpecError(
                f"methods.{entry.key}.kernel_weights",
                '"shared" in a sweep where no data set has more than two classes',
                "classes that share weights: two have one function, and one vector of weights",
                "Remove it",
            )


def _refused_values(
    key: str, grid: MethodGrid, params: SolverParams, refusal: Refusal, dataset: Dataset
) -> SpecError:
    """Return the error of a method that cannot learn real values with its loss."""
    method = grid.method
    able = losses_by_target(method.params).get(Target.VALUES, [])
    if able:
        expected = "loss = " + one_of([f'"{loss}"' for loss in able])
    else:
        others = methods_for(ProblemFacts(targets=(Target.VALUES,)))
        expected = f"{refusal.others}: {one_of(others)}"
    return SpecError(
        f"methods.{key}",
        f"{method.name} with loss {getattr(params, 'loss', method.loss)}, which {refusal.reason}, "
        f"but data set {dataset.name!r} is one of regression",
        expected,
        "Or remove the method or the data set",
    )
