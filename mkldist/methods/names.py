"""Names of all methods and what each finds, for lists and completions, which load no method.

``python -m tests.manual`` writes this file from the methods.
"""

from __future__ import annotations

TITLES = {
    "spicymkl": "SpicyMKL, dual augmented Lagrangian",
    "elastmkl": "ElastMKL, one-step dual Newton",
    "level": "Extended Level method",
    "simplemkl": "SimpleMKL, reduced gradient (SD)",
    "silp": "Semi-infinite linear programme",
    "hessianmkl": "HessianMKL, Newton's method",
    "gmkl": "GMKL with l1 penalty, spectral projected gradient",
    "rmkl": "R-MKL, margin and radius",
    "lp_mkl": "lp-norm MKL, closed-form weights",
    "l0_mkl": "MKL with at most k kernels, greedy with exchanges",
    "group_mkl": "MKL over groups of kernels",
    "smo_mkl": "SMO-MKL, squared p-norm",
    "skm": "Support kernel machine, SMO on the Moreau-Yosida regularised dual",
    "primalmkl": "PrimalMKL, truncated Newton and projected gradients",
    "lapmkl": "LapMKL, manifold regularisation with many kernels",
    "lapsvm": "Laplacian support vector machine in the primal",
    "mklsvm": "MK-LSVM, Laplacian SVM with many kernels",
    "lsvm": "Laplacian support vector machine in the dual",
    "glks": "GLKS, convex combinations of graph kernels",
    "rls": "Regularised least squares",
    "laprls": "Laplacian regularised least squares",
    "easymkl": "EasyMKL",
    "align": "Independent centred alignment (ALIGN)",
    "alignf": "Centred alignment (ALIGNF)",
    "uniform": "Uniform weights",
    "svm": "Support vector machine, kernel and C by cross-validation",
    "best_single": "Best single kernel by cross-validation",
    "majority": "Majority class",
}
