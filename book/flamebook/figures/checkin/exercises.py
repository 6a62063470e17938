"""What the exercises on self check-in tabulate: the wrong inner rate, noise for a target, more rounds, dropouts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flamebook.statements import AtLeast, AtMost, Finding, compared, every, silent, times
from flamelib.accounting.checkin.summed import (
    distributed_noise,
    distributed_rounds,
    distributed_rounds_lower,
    effective_rate,
)
from flamelib.accounting.checkin.theorems import binary_renyi
from flamelib.core.arrays import Reals

DROPOUT_ROUNDS = 100


def wrong_over_right(epsilon0: float, n_users: int, means: Sequence[float]) -> Reals:
    """Moments less one with the inner rate gamma over those with k/n, at order 2, by expected check-ins.

    >>> [round(float(x), 3) for x in wrong_over_right(1.0, 200, [0.1, 2, 5])]
    [0.009, 0.999, 1.274]
    """
    paper, exact = (
        np.expm1([binary_renyi(2, epsilon0, n_users, mean / n_users, inner) for mean in means])
        for inner in ("paper", "exact")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(paper / exact)


@dataclass(frozen=True, slots=True)
class Design:
    """Clients, their rate, the least noise for the target, and the epsilon that it reaches.

    The noise is 0 where none is needed and infinite where none was found; what it reaches is 0 and NaN then.
    """

    name: str
    n_users: int
    checkin_rate: float
    noise_std: float
    reached: float

    def row(self) -> tuple[object, ...]:
        """For a table."""
        return self.name, self.n_users, self.checkin_rate, AtMost(self.noise_std), AtMost(self.reached)


def compute_designs(n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float) -> list[Design]:
    """The deployment as given, with twice the clients, and with twice the rate, or as much more as there can be."""
    twice = min(1.0, 2 * checkin_rate)
    found = []
    for name, n, rate in (
        ("as given", n_users, checkin_rate),
        ("twice the clients", 2 * n_users, checkin_rate),
        ("twice the rate" if twice < 1 or checkin_rate == 0.5 else "everybody in every round", n_users, twice),
    ):
        noise = distributed_noise(n, rate, rounds, epsilon, delta)
        known = 0.0 if noise == 0 else math.nan
        reached = float(distributed_rounds(n, rate, noise, rounds, delta=delta)) if 0 < noise < math.inf else known
        found.append(Design(name, n, rate, noise, reached))
    return found


def design_findings(designs: Sequence[Design], epsilon: float) -> tuple[Finding, Finding, Finding]:
    """That the target is kept, that more clients save noise, that a larger rate costs some."""
    given, clients, rate = (one.noise_std for one in designs)
    if not all(0 < noise < math.inf for noise in (given, clients, rate)):
        none = silent("no noise is needed, or none was found")
        return compared([one.reached for one in designs], "<=", epsilon), none, none
    more = silent("everybody checks in to every round") if designs[2].checkin_rate == designs[0].checkin_rate else None
    return (
        compared([one.reached for one in designs], "<=", epsilon),
        compared(clients, "<", given),
        more or compared(given, "<", rate),
    )


def design_words(designs: Sequence[Design]) -> str:
    """By how much more clients, or a larger rate, change the noise."""
    given, clients, rate = (one.noise_std for one in designs)
    if not all(0 < noise < math.inf for noise in (given, clients, rate)):
        return "Here nothing can be compared: no noise is needed, or none was found."
    return (
        f"Here the noise as given is {times(given / clients, 3)} that of twice the clients, and that of "
        f"{designs[2].name} is {times(rate / given, 3)} that as given."
    )


def doubled(spent: Sequence[float]) -> Finding:
    """Whether twice the rounds, the second entry, cost less than twice epsilon."""
    if not 0 < spent[0] < math.inf:
        return silent("nothing is spent at first" if spent[0] == 0 else "nothing is certified")
    return compared(spent[1], "<", 2 * spent[0])


def doubled_words(factors: Sequence[int], spent: Sequence[float]) -> str:
    """After how many times the rounds epsilon has doubled, between the entries of a table by a straight line.

    >>> doubled_words([1, 2, 4], [1.0, 1.5, 2.5])
    'Here it has doubled after about 3 times the rounds.'
    >>> doubled_words([1, 2], [1.0, 1.5]), doubled_words([1, 2], [0.0, 0.1])
    ('Here it has not doubled after 2 times the rounds.', 'Here nothing can be said: it is 0 at first.')
    """
    if not 0 < spent[0] < math.inf:
        return f"Here nothing can be said: it is {spent[0]:g} at first."
    ratio = np.array(spent) / spent[0]
    if ratio[-1] < 2:
        return f"Here it has not doubled after {factors[-1]} times the rounds."
    return f"Here it has doubled after about {times(float(np.interp(2.0, ratio, factors)))} the rounds."


@dataclass(frozen=True, slots=True)
class Dropouts:
    """A deployment after some rounds: what an account says that does not count dropouts, and what is true with them."""

    name: str
    uncounted: float
    least: float
    counted: float
    bounded: float

    def row(self) -> tuple[object, ...]:
        """For a table."""
        return self.name, AtMost(self.uncounted), AtLeast(self.least), AtMost(self.counted), AtMost(self.bounded)

    @property
    def bound(self) -> Finding:
        """Whether the account for a chance that is known, and that for one that is bounded, are bounds."""
        return compared(self.least, "<=", self.counted, "<=", self.bounded)

    @property
    def verdict(self) -> str:
        """What becomes of the account that does not count them.

        >>> [Dropouts("", 1.0, least, most, 3.0).verdict for least, most in ((0.5, 0.6), (1.5, 1.6), (0.5, 1.2))]
        ['is still valid', 'is exceeded', 'is not known to be valid']
        """
        if self.counted <= self.uncounted:
            return "is still valid"
        return "is exceeded" if self.least > self.uncounted else "is not known to be valid"


def compute_dropouts(
    n_users: int, checkin_rate: float, noise_std: float, dropout: float, delta: float
) -> list[Dropouts]:
    """The deployment as given, and one with a tenth of the check-ins and a twentieth of the noise.

    >>> [one.verdict for one in compute_dropouts(60_000, 0.1, 2.0, 0.5, 1e-6)]
    ['is still valid', 'is exceeded']
    """
    found = []
    for name, rate, noise in (
        ("as given", checkin_rate, noise_std),
        ("few, with little noise", checkin_rate / 10, noise_std / 20),
    ):
        there = effective_rate(rate, dropout)
        found.append(Dropouts(
            name,
            float(distributed_rounds(n_users, rate, noise, DROPOUT_ROUNDS, delta=delta)),
            distributed_rounds_lower(n_users, there, noise, DROPOUT_ROUNDS, delta=delta),
            float(distributed_rounds(n_users, there, noise, DROPOUT_ROUNDS, delta=delta)),
            float(distributed_rounds(n_users, rate, noise, DROPOUT_ROUNDS, delta=delta, dropout=dropout)),
        ))  # fmt: skip
    return found


def dropout_findings(found: Sequence[Dropouts], dropout: float) -> tuple[Finding, Finding]:
    """That what counts dropouts is a bound, and that what does not count them falls below what few clients lose."""
    few = compared(found[1].uncounted, "<", found[1].least) if dropout else silent("nobody drops out")
    return every(*(one.bound for one in found)), few
