"""Answers that read like sentences: a guarantee, the bracket around the truth, a parameter that keeps a budget.

Printed numbers are rounded to the safe side: a budget up, a lower bound down.  Standard library only.
"""

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from importlib import import_module
from typing import Any

from flamelib.core.guarantees import ARITHMETIC, Adjacency, ApproxDP, RestsOn
from flamelib.core.vocabulary import check, keep
from flamelib.front.trade_off import GaussianDP, Profile

# Digits of a printed bound: enough to tell bounds apart that matter, few enough to be read.
DIGITS = 4


def rounded(value: float, up: bool = True, digits: int = DIGITS) -> str:
    """The number rounded up to so many digits (or, with ``up=False``, rounded down).

    >>> rounded(0.0307389), rounded(0.0307389, up=False), rounded(1e-8)
    ('0.03074', '0.03073', '1e-08')
    """
    if math.isinf(value) or float(short := f"{value:.{digits}g}") == value:
        return str(value) if math.isinf(value) else short
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(context.create_decimal(Decimal(value))):.{max(digits, 6)}g}"


def table(rows: Mapping[str, Any], caption: str) -> str:
    """A table of two columns for a notebook, of the class that themes style in light and dark."""
    cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in rows.items())
    return f'<table class="dataframe"><caption>{html.escape(caption)}</caption>{cells}</table>'


def _assumed(rests_on: RestsOn, condition: str) -> str:
    return "; ".join(filter(None, (condition, ARITHMETIC if rests_on == RestsOn.PROVEN else "")))


@dataclass(frozen=True, slots=True)
class Guarantee(ApproxDP):
    """The (epsilon, delta)-differential privacy of a protocol, with an epsilon that is never too small.

    Parameters
    ----------
    epsilon, delta : float
        The budget; an infinite epsilon promises nothing.  The numerical error is already added to the number that was
        asked for.
    adjacency : Adjacency
        Which two data sets are compared.
    rests_on : RestsOn
        ``proven`` (theorem and numerical error are both proven in this project), ``cited`` (a theorem of others is
        used unproven), or ``estimated`` (some numerical error is only estimated).
    uncertainty : float
        Width of the numerical error of the number that was asked for.
    condition : str
        What must hold of the protocol besides; empty where nothing must.
    profile : Profile, optional
        Further points of the same account, from which ``trade_off``, ``advantage`` and ``gdp`` come.

    Examples
    --------
    >>> found = Guarantee(0.03073895, 1e-8, Adjacency.REPLACE_ONE)
    >>> found
    (0.03074, 1e-08)-DP, replace-one; proven
    >>> found.assumes
    'IEEE doubles, and rounding of functions and Fourier transforms within its bounds'
    """

    rests_on: RestsOn = RestsOn.PROVEN
    uncertainty: float = 0.0
    condition: str = ""
    profile: Profile | None = field(default=None, repr=False, compare=False)

    def trade_off(self, alpha: Any) -> Any:
        """Rate at which an attacker misses who has the rate ``alpha`` of false alarms (lower).

        The attacker must tell two neighbouring data sets apart.  No test hits more often than 1 less this number.

        Parameters
        ----------
        alpha : float or array_like
            In [0, 1].

        Examples
        --------
        >>> round(Guarantee(1.0, 1e-8, Adjacency.REPLACE_ONE).trade_off(0.1), 4)
        0.7282
        """
        if hasattr(alpha, "__len__"):
            # Where alpha is an array there is numpy; the browser, which loads this file too, has none.
            return import_module("numpy").vectorize(self.trade_off, otypes=[float])(alpha)
        return self._profile.misses(check(alpha=alpha)["alpha"])

    @property
    def advantage(self) -> float:
        """Membership advantage, hits less false alarms of the best attacker: total variation (upper)."""
        return self._profile.advantage

    @property
    def gdp(self) -> GaussianDP:
        """``mu`` of Gaussian differential privacy (upper), and the ``regret`` of quoting it alone.

        The profile is followed down to the first delta of 1e-12, 1e-9, 1e-6 and 1e-3 at which epsilon is finite, and
        the trade-off curve may be lower than that of ``mu`` by as much.
        """
        return self._profile.gaussian

    @property
    def _profile(self) -> Profile:
        """Points of the account, or this one alone where the guarantee was written down by hand."""
        return self.profile or Profile(lambda: [(self.epsilon, self.delta)])

    @property
    def assumes(self) -> str:
        """Everything that must hold beside the theorem: the condition, and what a proven number assumes anyway."""
        return _assumed(self.rests_on, self.condition)

    def __post_init__(self) -> None:
        asked = {} if self.epsilon == math.inf else {"epsilon": self.epsilon}
        keep(self, **({"epsilon": math.inf} | check(delta=self.delta, **asked)))

    def __repr__(self) -> str:
        assumed = f", if {self.condition}" if self.condition else ""
        return f"({rounded(self.epsilon)}, {rounded(self.delta)})-DP, {self.adjacency}; {self.rests_on}{assumed}"

    def _repr_html_(self) -> str:
        rows = {"epsilon, at most": rounded(self.epsilon), "delta": rounded(self.delta), "adjacency": self.adjacency}
        rows |= {"rests on": self.rests_on} | ({"assumes": self.assumes} if self.assumes else {})
        return table(rows, "Differential privacy")


def guarantee(
    found: float,
    rests_on: RestsOn,
    epsilon: float | None,
    delta: float | None,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    condition: str = "",
) -> Guarantee:
    """The guarantee from the number that was asked for: delta where epsilon is given, else epsilon."""
    least, most = (float(found), delta) if delta is not None else (float(epsilon or 0.0), min(float(found), 1.0))
    return Guarantee(least, most, adjacency, rests_on, getattr(found, "uncertainty", 0.0), condition)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two numbers with the truth in between: what some data sets are known to lose, and what none can exceed.

    Parameters
    ----------
    lower, upper : float
        Both ends, each on its safe side; of epsilon where delta was given, of delta where epsilon was.
    asked : str
        ``epsilon`` or ``delta``: which of them is in between.
    adjacency : Adjacency
    rests_on, condition : str
        As for :class:`Guarantee`.

    Examples
    --------
    >>> lower, upper = Bounds(0.25, 0.34, "epsilon", Adjacency.REPLACE_ONE)
    >>> lower, upper
    (0.25, 0.34)
    """

    lower: float
    upper: float
    asked: str
    adjacency: Adjacency
    rests_on: RestsOn = RestsOn.PROVEN
    condition: str = ""

    @property
    def assumes(self) -> str:
        """As for :class:`Guarantee`."""
        return _assumed(self.rests_on, self.condition)

    def __iter__(self) -> Iterator[float]:
        yield from (self.lower, self.upper)

    def __repr__(self) -> str:
        ends = f"{rounded(self.lower, up=False)} and {rounded(self.upper)}"
        assumed = f", if {self.condition}" if self.condition else ""
        return f"{self.asked} between {ends}, {self.adjacency}; {self.rests_on}{assumed}"

    def _repr_html_(self) -> str:
        rows = {"at least": rounded(self.lower, up=False), "at most": rounded(self.upper), "adjacency": self.adjacency}
        rows |= {"rests on": self.rests_on} | ({"assumes": self.assumes} if self.assumes else {})
        return table(rows, self.asked)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A parameter that keeps a budget, under its own name, and the protocol with it.

    Parameters
    ----------
    parameter : str
        The parameter that was sought.
    value : float
        Its value, on the safe side; ``answer.epsilon0`` is the same as ``answer.value`` where epsilon0 was sought.
    protocol : record
        The protocol with that value.
    guarantee : Guarantee
        What the protocol then keeps: at most the budget that was asked for.

    Examples
    --------
    >>> kept = Guarantee(1.0, 1e-8, Adjacency.REPLACE_ONE)
    >>> Calibrated("epsilon0", 3.312, None, kept).epsilon0
    3.312
    """

    parameter: str
    value: float
    protocol: Any
    guarantee: Guarantee

    def __getattr__(self, name: str) -> float:
        if name == object.__getattribute__(self, "parameter"):
            found: float = object.__getattribute__(self, "value")
            return found
        raise AttributeError(f"{name} was not sought; {self.parameter} was")

    def __repr__(self) -> str:
        # More of a parameter that grants budget is unsafe, more of one that brings noise is safe.
        return f"{self.parameter} = {rounded(self.value, up=self.parameter != 'epsilon0', digits=6)}: {self.guarantee}"

    def _repr_html_(self) -> str:
        return table({self.parameter: repr(self).split(" = ")[1].split(":")[0], "keeps": self.guarantee}, "Calibrated")


class Answer(dict[str, Any]):
    """What a statement says to its inputs: the object that ``flamelib evaluate`` prints, its entries as attributes.

    Examples
    --------
    >>> Answer(id="flame:lem-2", value=0.5, gives="upper", adjacency="none").value
    0.5
    """

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"{name} is not one of {', '.join(self)}")

    def __repr__(self) -> str:
        return f"{self['id']} = {self['value']!r} ({self['gives']}, {self['adjacency']})"

    def _repr_html_(self) -> str:
        return table({k: v for k, v in self.items() if k != "id"}, self["id"])
