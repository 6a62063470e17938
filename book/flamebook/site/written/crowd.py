"""The table of the page "Why does a crowd protect you?": how often the best player is right, exactly."""

import numpy as np

from flamebook.statements import at_most
from flamelib.core import binomial

SIZES = (1, 10, 100, 1_000, 10_000, 1_000_000)
TRUE = 0.75  # a coin decides whether the truth is told or a second coin asked


def difference(n_users: int) -> float:
    """Total variation of a bag in which one person says yes or no, while all others would truthfully say no.

    The laws of the count differ by the message of one person: it adds one to the orange messages of the others with
    the chances 3/4 and 1/4.  The distance of a binomial law from itself moved by one is its largest probability.
    """
    counts = np.arange(n_users)
    return (2 * TRUE - 1) * float(binomial.pmf(counts, n_users - 1, 1 - TRUE).max())


def table() -> str:
    """The fragment: people, blind messages, the best player's rate and the delta, both rounded up."""
    lines = ["| people | blind messages, about | the best player is right | $\\delta$ |", "|--:|--:|--:|--:|"]
    for n in SIZES:
        found = difference(n)
        rate = at_most(50 * (1 + found), 4)
        lines.append(f"| {n:,} | {n / 2:,g} | {rate} % | {at_most(found, 3)} |")
    return "\n".join([*lines, ""])
