"""Methods and kernels by the names that sweeps use, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def list_methods() -> pd.DataFrame:
    """Return all methods, a row each; ``mkldist show NAME`` says more of one.

    Returns
    -------
    pandas.DataFrame
        By ``method``: what it ``finds``, its ``problem``, ``loss`` and ``regularizer``, the
        ``labels`` that it learns, its ``hyperparameters``, whether it ``needs_graph``, and the
        ``reference``.

    Examples
    --------
    >>> import mkldist
    >>> mkldist.list_methods().loc["level", "loss"]
    'hinge'
    """
    import pandas as pd

    from mkldist.methods.registry import METHODS
    from mkldist.solvers.targets import losses_by_target

    rows = {
        name: {
            "finds": method.title,
            "problem": method.problem,
            "loss": method.loss,
            "regularizer": method.regularizer,
            "labels": tuple(str(target) for target in losses_by_target(method.params)),
            "hyperparameters": method.hyperparameters,
            "needs_graph": method.needs_laplacian,
            "reference": method.reference,
        }
        for name, method in METHODS.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def list_kernels() -> pd.DataFrame:
    """Return all kernel functions and named families, a row each.

    A function is for entries of ``kernels``, also as ``mkldist.kernels.Gaussian(...)``; a family is
    for ``family``.

    Returns
    -------
    pandas.DataFrame
        By ``kernel``: its ``kind``, function or family; the ``formula`` of a function, or the
        kernels of a family; and the ``parameters`` of a function.

    Examples
    --------
    >>> import mkldist
    >>> mkldist.list_kernels().loc["polynomial", "parameters"]
    'degrees, offset'
    """
    import pandas as pd

    from mkldist.from_python.known import known_of
    from mkldist.kernel_functions.registry import FUNCTIONS

    rows = [
        *((name, "function", one.formula, ", ".join(one.keys)) for name, one in FUNCTIONS.items()),
        *((one.name, "family", one.line, "") for one in known_of("family")),
    ]
    return pd.DataFrame(rows, columns=["kernel", "kind", "formula", "parameters"]).set_index(
        "kernel"
    )
