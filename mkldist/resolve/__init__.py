"""Data, kernels and grids of a sweep, and the checks that precede every run.

A sweep passes through these forms, each made of the last one alone:

``SweepSpec``
    the words of the sweep file, well-formed;
``Resolved``
    data sets, splits, kernels and grids of settings, loaded and checked: large arrays;
``DatasetFacts``, ``BankFacts`` and ``MethodGrid``
    the sizes, content hashes and settings on which a plan depends, without arrays;
``Plan``
    every run, bank and batch with its id, made of facts alone and therefore a pure function of
    them;
``TreeFacts``
    names and labels that the results store beside the runs of a plan.
"""
