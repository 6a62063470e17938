r"""Theorem 1 of self check-in with the inner rate of its proof, refuted by two clients: by enumeration, and by running.

Clients answer by binary randomized response.  All hold 0, and one may hold 1 instead.  Whoever sees a round sees how
many messages came and how many of them say 1.  That view is enumerated over every set of clients and every set of
reports; nothing is shared with the library's accounting.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import expit, logsumexp, xlog1py, xlogy
from scipy.stats import binomtest

from flamelib.core.vocabulary import DomainError, check

CONFIDENCE = 0.95
MOST_LISTED = 8
AT_ONCE = 2**18
View = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BinaryCheckin:
    """A few clients with a bit each, binary randomized response, and a coin for checking in."""

    n_users: int = 2
    checkin_rate: float = 0.3
    epsilon0: float = 1.0

    def __post_init__(self) -> None:
        given = check(n_users=self.n_users, checkin_rate=self.checkin_rate, epsilon0=self.epsilon0)
        if given["n_users"] > MOST_LISTED:
            raise DomainError(f"n_users must be at most {MOST_LISTED}, where views are listed, got {self.n_users!r}")

    @property
    def flip(self) -> float:
        """Probability that a report differs from its bit."""
        return float(expit(-self.epsilon0))

    def log_view(self, bits: Sequence[int]) -> dict[View, float]:
        """Logarithm of the probability of every pair of messages and ones, over all sets of clients and all reports."""
        wrong, right = -float(np.logaddexp(0.0, self.epsilon0)), -float(np.logaddexp(0.0, -self.epsilon0))
        terms: dict[View, list[float]] = defaultdict(list)
        for present in product((0, 1), repeat=len(bits)):
            inside = [bit for bit, here in zip(bits, present, strict=True) if here]
            for reports in product((0, 1), repeat=len(inside)):
                flips = sum(bit != report for bit, report in zip(inside, reports, strict=True))
                said = flips * wrong + (len(inside) - flips) * right
                terms[len(inside), sum(reports)].append(said + self._log_chance(len(inside), len(bits)))
        return {view: float(logsumexp(logs)) for view, logs in terms.items() if max(logs) > -math.inf}

    def view(self, bits: Sequence[int]) -> dict[View, float]:
        """Probability of every pair of messages and ones."""
        return {view: math.exp(log) for view, log in self.log_view(bits).items()}

    def counts(self, bits: Sequence[int]) -> list[float]:
        """Probability of every number of messages, from none on."""
        view = self.view(bits)
        law = [math.fsum(chance for (size, _), chance in view.items() if size == k) for k in range(len(bits) + 1)]
        return [chance / math.fsum(law) for chance in law]

    def renyi(self, order: int) -> float:
        """Exact divergence of a round where the last client holds 1 from one where nobody does."""
        zeros = [0] * self.n_users
        return _divergence(self.log_view([*zeros[:-1], 1]), self.log_view(zeros), order)

    def profile(self, others: Sequence[int], epsilon: float) -> float:
        """Exact delta at ``epsilon``: the last client holds 1 rather than 0, the others hold what is said."""
        p, q = self.log_view([*others, 1]), self.log_view([*others, 0])
        return math.fsum(max(0.0, math.exp(p[view]) - math.exp(epsilon + q[view])) for view in p)

    def run(self, repeats: int, differing: bool, rng: np.random.Generator) -> int:
        """In how many of ``repeats`` rounds some message says 1; every coin of every client is drawn."""
        bits = np.zeros(self.n_users, dtype=bool)
        bits[-1] = differing
        sizes = [min(AT_ONCE, repeats - start) for start in range(0, repeats, AT_ONCE)]
        return sum(self._shown(bits, size, rng) for size in sizes)

    def _shown(self, bits: np.ndarray, repeats: int, rng: np.random.Generator) -> int:
        present = rng.random((repeats, self.n_users)) < self.checkin_rate
        reports = bits ^ (rng.random((repeats, self.n_users)) < self.flip)
        return int(np.count_nonzero((present & reports).any(axis=1)))

    def _log_chance(self, inside: int, clients: int) -> float:
        return float(xlogy(inside, self.checkin_rate) + xlog1py(clients - inside, -self.checkin_rate))


def _divergence(log_p: dict[View, float], log_q: dict[View, float], order: int) -> float:
    moment = logsumexp([_log_term(log_p[view], log_q[view], order) for view in log_q])
    return max(0.0, float(moment) / (order - 1))


def event_divergence(p: float, q: float, order: int) -> float:
    """Rényi divergence of two coins; by data processing a lower bound for laws in which an event has these chances.

    >>> event_divergence(0.5, 0.5, 2), event_divergence(0.5, 0.0, 2)
    (0.0, inf)
    """
    with np.errstate(divide="ignore"):
        happens = _log_term(float(np.log(p)), float(np.log(q)), order)
        does_not = _log_term(float(np.log1p(-p)), float(np.log1p(-q)), order)
    return max(0.0, float(np.logaddexp(happens, does_not)) / (order - 1))


def _log_term(log_p: float, log_q: float, order: int) -> float:
    r"""Logarithm of :math:`p^\lambda q^{1-\lambda}`."""
    return -math.inf if log_p == -math.inf else order * log_p + (1 - order) * log_q


@dataclass(frozen=True, slots=True)
class Attack:
    """Rounds that were run with the differing client and without, and in how many of each some message said 1."""

    clients: BinaryCheckin
    order: int
    seen: tuple[int, int]
    repeats: int

    @property
    def estimate(self) -> float:
        """Divergence of the two coins by the shares themselves."""
        return event_divergence(self.seen[0] / self.repeats, self.seen[1] / self.repeats, self.order)

    @property
    def least(self) -> float:
        """Lower bound with ``CONFIDENCE``: the ends of the two Clopper-Pearson intervals that face each other."""
        each = (1 + CONFIDENCE) / 2
        with_one, without = (binomtest(n, self.repeats).proportion_ci(each, method="exact") for n in self.seen)
        return event_divergence(with_one.low, without.high, self.order) if with_one.low > without.high else 0.0


def compute_attack(clients: BinaryCheckin, order: int, repeats: int, seed: int) -> Attack:
    """The rounds of both data sets, run.

    Examples
    --------
    >>> found = compute_attack(BinaryCheckin(), order=2, repeats=20_000, seed=1)
    >>> round(found.clients.renyi(2), 5), found.least > 0.1
    (0.15094, True)
    """
    check(order=order, repeats=repeats, seed=seed)
    worlds = np.random.default_rng(seed).spawn(2)
    with_one, without = (clients.run(repeats, bit, rng) for bit, rng in zip((True, False), worlds, strict=True))
    return Attack(clients, order, (with_one, without), repeats)
