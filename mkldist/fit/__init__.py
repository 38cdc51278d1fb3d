"""The one way from data to a decision function: inputs, bank, problem, solvers, scores, model."""
