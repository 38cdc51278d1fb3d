"""The box-constrained quadratic program, where the machines look for it."""

from mkldist.box_qp import newton_direction, newton_steps, pair_updates

__all__ = ["newton_direction", "newton_steps", "pair_updates"]
