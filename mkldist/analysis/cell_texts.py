"""Texts of the cells of tables, wherever they are shown."""

from __future__ import annotations

LEAST_P = 0.001  # p-values below it are not told apart
NOTHING = "–"  # noqa: RUF001, the dash that stands for a missing number


def p_value_text(value: float) -> str:
    """Return a p-value with three decimals, of which small ones are ``< 0.001``.

    Examples
    --------
    >>> p_value_text(0.0421), p_value_text(2e-5)
    ('0.042', '< 0.001')
    """
    if value < LEAST_P:
        return f"< {LEAST_P}"
    return f"{value:.3f}" if value >= LEAST_P else NOTHING
