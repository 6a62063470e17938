"""An alphabet that is one message short: the law of a message, and the bias of the sum."""

import math

import numpy as np
from numpy.typing import NDArray


def level_table(n_levels: int, blanket_mass: float, lowest: int) -> NDArray[np.float64]:
    """Law of a message in {0..n_levels}, one row a value, when the blanket is uniform on {lowest..n_levels}.

    >>> level_table(2, 0.3, 0)[0].round(3).tolist(), level_table(2, 0.3, 1)[0].round(3).tolist()
    ([0.8, 0.1, 0.1], [0.7, 0.15, 0.15])
    """
    blanket = np.zeros(n_levels + 1)
    blanket[lowest:] = blanket_mass / (n_levels + 1 - lowest)
    return (1 - blanket_mass) * np.eye(n_levels + 1) + blanket


def bias_of_alphabet(n_users: int, n_levels: int, blanket_mass: float, lowest: int) -> float:
    """Exact bias of the estimated sum (in users' values) when messages are debiased as if uniform on {0..k}.

    >>> round(bias_of_alphabet(1000, 5, 0.2, lowest=1), 9), bias_of_alphabet(1000, 5, 0.2, lowest=0)
    (25.0, 0.0)
    """
    table, levels = level_table(n_levels, blanket_mass, lowest), np.arange(n_levels + 1)
    mean = math.fsum(table[0] * levels) / n_levels
    return n_users * (mean - blanket_mass / 2) / (1 - blanket_mass)
