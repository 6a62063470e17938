"""The worst randomizer of a budget: binary beside ternary response, every randomizer among few users and many."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from scipy.optimize import linprog
from scipy.stats import norm

from flamebook.attacks.every_randomizer import Worst, columns_of, worst_randomizer
from flamebook.figures.style import Pen
from flamebook.records import Curves, words
from flamebook.statements import AtLeast, AtMost, Finding, compared, counted, every, found, listed, percent
from flamelib.accounting.checkin.shuffled import checkin_shuffled
from flamelib.accounting.shuffling import numerical
from flamelib.core.profiles import KaryProfile
from flamelib.core.search import root
from flamelib.front.results import rounded

SHARES = (Fraction(1, 20), Fraction(3, 10), Fraction(3, 5))  # of e^epsilon0 - 1, for e^epsilon - 1
LARGEST_DENOMINATOR = 8  # of e^epsilon0 in the search
SEARCHED = ((2, 1), (3, 2), (4, 3), (5, 3), (6, 2), (7, 2), (8, 1), (10, 1), (12, 1))  # users, values of the others
HUES = ("blue", "vermillion", "green", "purple", "ochre", "sky", "grey")
SETTLED = 10**6  # users at whom the delta of the contest is the one that is asked for
SAME = 1e-6  # relative: doubt of two accounts of one number


def variances(epsilon0: float) -> dict[str, float]:
    """Leading order of four accounts: the variance to which n times the squared spread of the losses tends.

    ``binary`` and ``ternary`` with others who hold one worst value, ``every`` the largest of all randomizers by a
    linear program, ``clones`` the bound for every randomizer.

    >>> found = variances(1.0)
    >>> found["binary"] < found["ternary"] < found["clones"], abs(found["every"] / found["ternary"] - 1) < 1e-9
    (True, True)
    """
    p = math.exp(epsilon0)
    columns = np.array([[float(one) for one in column] for column in columns_of(3, Fraction(p))])
    spread = (columns[:, 0] - columns[:, 1]) ** 2 / columns[:, 2]
    program = linprog(-spread, A_eq=columns.T, b_eq=np.ones(3))
    squared = math.expm1(epsilon0) ** 2
    return {
        "binary": squared / p,
        "ternary": 2 * squared / (p + 2),
        "every": -float(program.fun),
        "clones": 2 * squared / (p + 1),
    }


def leading_rows(budgets: Sequence[float]) -> list[tuple[float, ...]]:
    """The square roots: the spread of the normal limit."""
    return [(budget, *(math.sqrt(one) for one in variances(budget).values())) for budget in budgets]


def compute_contest(budgets: Sequence[float], n_users: Sequence[int], delta: float) -> Curves:
    """Epsilon that ternary response certainly loses over that of binary response, a curve for each local budget.

    ``delta`` is that of ``SETTLED`` users; it falls with the square root of their number, as the leading order does.
    """

    def ratio(budget: float, n: int) -> float:
        here = delta * math.sqrt(SETTLED / n)
        binary = float(numerical.exact_binary(budget, n, delta=here))
        return float(numerical.all_equal(KaryProfile(budget, 3), n, delta=here)) / binary if binary else math.nan

    curves = {f"lower:{budget!r}": np.array([ratio(budget, int(n)) for n in n_users]) for budget in budgets}
    return Curves("n_users", "ratio", np.asarray(n_users, float), curves, {"delta": delta})


def limit(budget: float, delta: float) -> float:
    """What such a ratio tends to, by the leading order; NaN where no loss is left."""
    target = delta * math.sqrt(SETTLED)

    def scaled(variance: float) -> float:
        spread = math.sqrt(variance)

        def excess(c: float) -> float:
            return spread * float(norm.pdf(c / spread)) - c * float(norm.sf(c / spread)) - target

        return root(excess, 0.0, 40 * spread, 1e-12) if excess(0.0) > 0 else math.nan

    leading = variances(budget)
    return scaled(leading["ternary"]) / scaled(leading["binary"])


def draw_contest(ax: Axes, record: Curves, pen: Pen) -> None:
    """The ratios on a plain axis, the level of one, and to the right what each tends to."""
    for hue, (name, values) in zip(HUES, record.curves.items(), strict=False):
        budget = float(name.partition(":")[2])
        ax.plot(record.x, values, color=pen.colour(hue), marker="o", markersize=4, label=f"local budget {budget:g}")
        end = limit(budget, float(record.parameters["delta"]))
        ax.plot(record.x[-1:], [end], color=pen.colour(hue), marker="_", markersize=22, linestyle="none")
    ax.axhline(1, color=pen.colour("grey"), linestyle=":")
    ax.set(xscale="log", xlim=(0.7 * record.x[0], 2 * record.x[-1]))
    ax.set(xlabel=words("n_users"), ylabel="epsilon of ternary over that of binary")


def words_of_contest(record: Curves) -> dict[str, str]:
    """What each response loses in the largest crowd, budget by budget, and by how much more at most."""
    last = {name.partition(":")[2]: float(values[-1]) for name, values in record.curves.items()}
    more = [name for name, one in last.items() if one > 1 + SAME]
    less = [name for name, one in last.items() if one <= 1 + SAME]
    none = [name for name, one in last.items() if math.isnan(one)]
    told = [
        f"at {_budgets(more)} ternary response loses more than binary response" if more else "",
        f"at {_budgets(less)} it is not shown to lose more" if less else "",
        f"at {_budgets(none)} nothing is lost at this failure probability" if none else "",
    ]
    gain = rounded(100 * (max(last[name] for name in more) - 1), up=False, digits=2) if more else ""
    return {
        "crowd": f"{record.x[-1]:,.0f}",
        "contest": "; ".join(one for one in told if one),
        "gain": f" The largest increase of epsilon is at least {gain} %." if more else "",
    }


def _budgets(names: Sequence[str]) -> str:
    return f"the {'budget' if len(names) == 1 else 'budgets'} {listed(names)}"


def few_rows(epsilon0: float, n_users: Sequence[int]) -> list[tuple[object, ...]]:
    """Delta of both responses and of every randomizer, in crowds so small that all data sets are tried."""
    rows: list[tuple[object, ...]] = []
    for n in n_users:
        epsilon = epsilon0 / (1 + math.sqrt(n))
        binary = float(numerical.exact_binary(epsilon0, n, epsilon=epsilon))
        ternary = float(numerical.all_equal(KaryProfile(epsilon0, 3), n, epsilon=epsilon))
        most = float(numerical.any_randomizer(epsilon0, n, "upper", epsilon=epsilon))
        rows.append((n, epsilon, binary, AtLeast(ternary), AtMost(most), "ternary" if ternary > binary else "binary"))
    return rows


def overtaken(rows: Sequence[tuple[object, ...]]) -> str:
    """In which crowds of the table ternary response loses more."""
    crowds = [str(row[0]) for row in rows if row[-1] == "ternary"]
    return f"among {listed(crowds)} users" if crowds else "in none of these crowds"


def _letters(worst: Worst) -> str:
    return f"{worst.letters}{'' if worst.is_extreme else ' mixed'}"


@dataclass(frozen=True)
class Search:
    """One search among all randomizers for each crowd with its data sets, budget and epsilon."""

    cases: list[tuple[tuple[int, int], Fraction, Fraction, Worst]]

    def table(self) -> tuple[list[str], list[tuple[object, ...]]]:
        """Heading and rows, one for each crowd: the letters of the worst, a column for each budget."""
        factors = list(dict.fromkeys(factor for _, factor, _, _ in self.cases))
        rows: list[tuple[object, ...]] = []
        for n, values in dict.fromkeys(crowd for crowd, *_ in self.cases):
            here = {at: [one for *case, one in self.cases if case[:2] == [(n, values), at]] for at in factors}
            every_one = [one for found in here.values() for one in found]
            held = "any" if values == n - 1 else f"{counted(values, 'value')} at most" if values > 1 else "one value"
            letters = [", ".join(_letters(one) for one in found) for found in here.values()]
            excess = max(one.at_most / one.largest - 1 for one in every_one)
            rows.append((n, held, *letters, AtMost(excess), sum(one.tried for one in every_one)))
        heading = ["users", "the others hold", *(f"p = {factor}" for factor in factors)]
        return [*heading, "excess of the bound: at most", "choices of vertices"], rows

    def words(self) -> dict[str, str]:
        """How far the search went, and what came out."""
        settled = [one for *_, one in self.cases if one.is_settled]
        open_ = max((one.at_most / one.largest - 1 for *_, one in self.cases if not one.is_settled), default=0.0)
        rest = f"; in the others no randomizer exceeds the worst that was found by more than {percent(open_, up=True)}"
        mixed = [one for *_, one in self.cases if not one.is_extreme]
        gain = percent(max((one.largest / one.extreme - 1 for one in mixed), default=0.0))
        return {
            "cases": counted(len(self.cases), "case"),
            "tried": f"{sum(one.tried for *_, one in self.cases):.1e}",
            "settled": "all of them" if len(settled) == len(self.cases) else f"{len(settled)} of them{rest}",
            "so": self._so(),
            "mixed": f"in {counted(len(mixed), 'case')}, with a loss up to {gain} larger than that of each vertex"
            if mixed
            else "in none of these cases",
            "shares": listed([str(share) for share in SHARES]),
        }

    def _so(self) -> str:
        """In which crowds binary response is the worst, of those whose others may hold both values in question."""
        binary, other = [], []
        for crowd in dict.fromkeys((n, values) for (n, values), *_ in self.cases if values >= min(2, n - 1)):
            here = [(factor, one) for at, factor, _, one in self.cases if at == crowd]
            more = list(dict.fromkeys(str(factor) for factor, one in here if one.letters > 2))
            if more:
                other.append(f"among {crowd[0]} users more letters are worse at p = {listed(more)}")
            elif all(one.is_settled for _, one in here):
                binary.append(str(crowd[0]))
        nothing = f"among {listed(binary)} users nothing is worse than binary response, at its worst data set"
        return ", and ".join([nothing, *other] if binary else other) or "in no crowd the worst randomizer is known"

    def agrees(self) -> Finding:
        """The worst of all is at least a known response and at most the bound for every randomizer."""
        found = []
        for (n, values), factor, growth, worst in self.cases:
            given, at = math.log(factor), math.log(growth)
            ternary = float(numerical.all_equal(KaryProfile(given, 3), n, epsilon=at))
            binary = float(numerical.exact_binary(given, n, epsilon=at)) if values >= min(2, n - 1) else 0.0
            most = float(numerical.any_randomizer(given, n, "upper", epsilon=at))
            found.append(compared(max(binary, ternary) * (1 - SAME), "<=", worst.at_most))
            found.append(compared(worst.largest, "<=", most * (1 + SAME)))
        return every(*found)


def search(budgets: Sequence[float], crowds: Sequence[tuple[int, int]] = SEARCHED) -> Search:
    """Crowds, each with how many values the others hold at most, and budgets near those given.

    The exponential of such a budget is a short fraction.
    """
    factors = list(dict.fromkeys(Fraction(math.exp(one)).limit_denominator(LARGEST_DENOMINATOR) for one in budgets))
    growths = [(factor, 1 + (factor - 1) * share) for factor in factors for share in SHARES]
    return Search([(crowd, *one, worst_randomizer(crowd[0], *one, crowd[1])) for crowd in crowds for one in growths])


def bracket_rows(budgets: Sequence[float], n_users: int, delta: float) -> list[tuple[float, ...]]:
    """What is known of every randomizer, then and now: upper ends, lower ends, and the ratio of today's."""
    rows: list[tuple[float, ...]] = []
    for budget in budgets:
        then = float(numerical.clones_2021(budget, n_users, delta=delta))
        now = float(numerical.any_randomizer(budget, n_users, "upper", delta=delta))
        exact = numerical.exact_binary(budget, n_users, delta=delta)
        binary = max(0.0, exact - exact.uncertainty)
        low = float(numerical.any_randomizer(budget, n_users, "lower", delta=delta))
        ratio = now / low if low else math.inf if now else math.nan
        rows.append((budget, AtMost(then), AtMost(now), AtLeast(low), AtLeast(binary), ratio))
    return rows


def checkin_rows(epsilon0: float, n_users: int, rate: float, rounds: int) -> list[tuple[object, ...]]:
    """The same for rounds of self check-in, at a failure probability of one over the number of users."""
    told = functools.partial(
        checkin_shuffled,
        epsilon0=epsilon0,
        n_users=n_users,
        checkin_rate=rate,
        rounds=rounds,
        delta=1 / n_users,
    )
    then, now, low = told(route="clones"), told(route="any"), told(route="any", side="lower")
    binary = told(route="kary", n_buckets=2, side="lower")
    return [
        ("every randomizer, clones of 2021: at most", AtMost(then)),
        ("every randomizer, clones of this book: at most", AtMost(now)),
        ("some k-ary response: at least", AtLeast(low)),
        ("binary response: at least", AtLeast(binary)),
    ]


def in_order(rows: Sequence[tuple[float, ...]]) -> Finding:
    """Each upper end above each lower end: then, now, the worst that is known, binary response."""
    ends = np.array([row[1:5] for row in rows])
    return every(*(compared(ends[:, at], ">=", ends[:, at + 1] * (1 - SAME)) for at in range(ends.shape[1] - 1)))


def crossing(budgets: Sequence[float]) -> Finding:
    """Whether the linear program finds the larger of both responses, and ternary wins just from log 2 on."""
    tried = [variances(budget) for budget in budgets]
    best = np.array([max(one["binary"], one["ternary"]) for one in tried])
    program = np.array([one["every"] for one in tried])
    wins = [one["ternary"] > one["binary"] for one in tried]
    expected = [budget > math.log(2) for budget in budgets]
    return every(compared(np.abs(program / best - 1), "<=", SAME), found(wins == expected))
