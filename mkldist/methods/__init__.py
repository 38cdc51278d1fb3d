"""MKL methods: a file reads as its paper, objective first; the registry names them all.

What several methods share stands beside them: :mod:`.block_norm`, its dual, losses and
regularisers; :mod:`.cut_bundle`, :mod:`.reduced_gradient` and :mod:`.weight_newton` of methods
around a support vector machine; :mod:`.smooth_dual`; and :mod:`.deformed` of methods on a graph.
"""
