"""Google's ``dp-accounting``: events for rounds that it does not know, an accountant, loss distributions both ways.

:class:`CertifiedAccountant` composes what their ``PLDAccountant`` supports with shuffled rounds, self check-in and
random participation.  Gaussian noise, on a Poisson sample or not, is accounted for here; every other event of theirs is
taken from their privacy loss distribution of a single one, and the answer is then ``cited``: those distributions are
pessimistic by construction, but for their own round-off.

:func:`exported` hands a round of this library over to them, :func:`imported` takes a distribution of theirs.

Source: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, Connect the Dots, 2022 (their distributions).
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from flamelib.accounting.composition.dominating_pair import RTOL_MASS, DominatingPair, to_dp_accounting
from flamelib.bridges.histories import NOISE, RATE, Pair, Round, Sampled, disclosing, dominating_pair, history_account
from flamelib.core.extras import extra
from flamelib.core.guarantees import Adjacency, RestsOn
from flamelib.core.vocabulary import LARGEST_WHOLE, Domain, DomainError, check
from flamelib.front.checkin import Checkin
from flamelib.front.results import Guarantee
from flamelib.front.shuffled import Shuffled
from flamelib.protocols.participation import Participation

with extra("dp-accounting"):
    import attr
    from dp_accounting import dp_event
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant

ADJACENCIES = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: Adjacency.ADD_REMOVE,
    NeighboringRelation.REPLACE_ONE: Adjacency.REPLACE_ONE,
}
# What events of theirs hold, whatever their kind.
_WHOLE, _LEAST = Domain("", whole=True, low=0, high=LARGEST_WHOLE), Domain("", low=0)
_HELD = {
    "noise_multiplier": NOISE, "standard_deviation": NOISE, "sampling_probability": RATE, "num_buckets": _WHOLE,
    "sensitivity": _WHOLE, "dataset_size": _WHOLE, "truncated_batch_size": _WHOLE, "noise_parameter": _LEAST,
    "sensitivities": replace(_LEAST, several=True), "sampling_probs": replace(RATE, several=True),
}  # fmt: skip
# Distance of losses in what is handed on, theirs too; the part of delta that is given to losses too large for a grid.
STEP, SPARED_SHARE = 1e-4, 1e-4
STEP_DOMAIN = Domain("distance of losses", low=0, open_low=True, high=1)


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ShuffledDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """A round in which all users' messages are shuffled; replacing one user's value."""

    protocol: Shuffled


@attr.s(frozen=True, slots=True, auto_attribs=True)
class CheckinDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """A round that users join by coins of their own, shuffled or summed; replacing one user's value."""

    protocol: Checkin


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ParticipationDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """A round of learning that clients join at random, unseen; adding or removing one record."""

    protocol: Participation


OURS = {ShuffledDpEvent: Shuffled, CheckinDpEvent: Checkin, ParticipationDpEvent: Participation}


class CertifiedAccountant(PrivacyAccountant):  # type: ignore[misc]
    """Composes events of ``dp-accounting`` and of this module; its epsilon and delta are certified from above.

    Parameters
    ----------
    neighboring_relation : NeighboringRelation
        ``ADD_OR_REMOVE_ONE``, under which users cannot shuffle or check in, or ``REPLACE_ONE``, which is taken as one
        record removed and another one added where an event is about records that are added or removed.
    value_discretization_interval : float
        Of the distributions that are taken from their library.

    Examples
    --------
    >>> from flamelib import KaryResponse
    >>> survey = ShuffledDpEvent(Shuffled(KaryResponse(epsilon0=1.0, n_buckets=2), n_users=10_000))
    >>> accountant = CertifiedAccountant(NeighboringRelation.REPLACE_ONE).compose(survey, 20)
    >>> accountant.compose(dp_event.GaussianDpEvent(10.0)).guarantee(1e-6)
    (0.8587, 1e-06)-DP, replace-one; proven
    """

    def __init__(
        self,
        neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval: float = STEP,
    ) -> None:
        if neighboring_relation not in ADJACENCIES:
            raise DomainError(
                f"neighboring_relation must be ADD_OR_REMOVE_ONE or REPLACE_ONE, got {neighboring_relation!r}"
            )
        super().__init__(neighboring_relation)
        self._step = STEP_DOMAIN.accept("value_discretization_interval", value_discretization_interval)
        self._history: list[tuple[Round, int]] = []

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        try:
            count = _WHOLE.accept("count", count)
            if isinstance(event, dp_event.SelfComposedDpEvent):
                return self._maybe_compose(event.event, _WHOLE.accept("count", event.count) * count, do_compose)
            if isinstance(event, dp_event.ComposedDpEvent) and not isinstance(event.events, list | tuple):
                raise DomainError(f"events must be a list of events, got {event.events!r}")
        except DomainError as error:
            return PrivacyAccountant.CompositionErrorDetails(event, str(error))
        if isinstance(event, dp_event.ComposedDpEvent):
            errors = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((error for error in errors if error is not None), None)
        try:
            found = self._round(event, do_compose)
        except DomainError as error:
            return PrivacyAccountant.CompositionErrorDetails(event, str(error))
        if do_compose and found is not None and count:
            self._history.append((found, count))
        return None

    def _round(self, event: Any, wanted: bool) -> Round | None:
        """What an event shows, if it is ``wanted`` and shows anything."""
        adjacency = ADJACENCIES[self.neighboring_relation]
        if isinstance(event, dp_event.NoOpDpEvent):
            return None
        if isinstance(event, dp_event.NonPrivateDpEvent):
            return Pair(disclosing(1.0), adjacency=adjacency)
        kind = OURS.get(type(event))
        if kind is not None:
            protocol: Round = event.protocol
            if not isinstance(protocol, kind):
                raise DomainError(f"protocol must be {kind.__name__}, got {protocol!r}")
            if adjacency == Adjacency.ADD_REMOVE and kind is not Participation:
                raise DomainError("neighboring_relation must be REPLACE_ONE where users shuffle or check in")
            return protocol
        event = _checked(event)
        inner = event.event if isinstance(event, dp_event.PoissonSampledDpEvent) else event
        if isinstance(inner, dp_event.GaussianDpEvent):
            rate = 1.0 if inner is event else event.sampling_probability
            return Sampled(inner.noise_multiplier, rate)
        # Replacing moves the sum of a Laplace mechanism twice as far; else it is removing and adding.
        known = [(event, self.neighboring_relation, adjacency)]
        if adjacency == Adjacency.REPLACE_ONE:
            twice = _twice_as_far(event)
            as_if = adjacency if twice is not event else Adjacency.ADD_REMOVE
            known.append((twice, NeighboringRelation.ADD_OR_REMOVE_ONE, as_if))
        for asked, relation, holds in known:
            theirs = PLDAccountant(relation, self._step)
            if theirs.supports(asked):
                try:
                    return _shown(theirs.compose(asked), holds) if wanted else None
                except (ValueError, ArithmeticError, TypeError) as error:
                    raise DomainError(f"event must be one that PLDAccountant composes: {error}") from None
        raise DomainError("event must be one that PLDAccountant supports, or one of flamelib")

    def guarantee(self, target_delta: float) -> Guarantee:
        """What all events guarantee together (upper), with what it rests on."""
        return history_account(self._history, target_delta, adjacency=ADJACENCIES[self.neighboring_relation])

    def get_epsilon(self, target_delta: float) -> float:
        """The certified epsilon (upper)."""
        return self.guarantee(target_delta).epsilon

    def get_delta(self, target_epsilon: float) -> float:
        """The certified delta (upper)."""
        adjacency = ADJACENCIES[self.neighboring_relation]
        return history_account(self._history, epsilon=target_epsilon, adjacency=adjacency).delta


def _checked(event: Any) -> Any:
    """The event with plain numbers, those inside included; a number that means nothing is refused by its name."""
    if not attr.has(type(event)):
        raise DomainError(f"event must be a DpEvent, got {event!r}")
    held = {one.name: getattr(event, one.name) for one in attr.fields(type(event))}
    kind = type(event).__name__
    checked = {name: _HELD[name].accept(f"{name} of {kind}", value) for name, value in held.items() if name in _HELD}
    checked |= {name: _checked(value) for name, value in held.items() if isinstance(value, dp_event.DpEvent)}
    if kind == "RandomizedResponseDpEvent":
        RATE.accept(f"noise_parameter of {kind}", checked["noise_parameter"])
    return attr.evolve(event, **checked) if checked else event


def _twice_as_far(event: Any) -> Any:
    """The same noise where the sum moves twice as far, of the kinds for which that is all that replacing is."""
    if isinstance(event, dp_event.LaplaceDpEvent):
        return attr.evolve(event, noise_multiplier=event.noise_multiplier / 2)
    if isinstance(event, dp_event.DiscreteLaplaceDpEvent):
        return attr.evolve(event, sensitivity=2 * event.sensitivity)
    return event


def _shown(theirs: PLDAccountant, adjacency: Adjacency) -> Pair:
    """What their accountant has composed; it keeps apart what is not private at all."""
    if theirs.get_delta(math.inf) >= 1:
        return Pair(disclosing(1.0), adjacency=adjacency)
    return imported(theirs._pld, adjacency)


def exported(protocol: Round, rounds: int = 1, delta: float = 1e-9, step: float = STEP) -> PrivacyLossDistribution:
    """One round as a loss distribution of ``dp-accounting``, pessimistic both ways, which can be composed there.

    Parameters
    ----------
    protocol : Shuffled, Checkin, Participation or Sampled
    rounds, delta
        For about what it is wanted: it is a bound whatever it is used for, and a close one there.
    step : float, positive
        Distance of losses, called ``value_discretization_interval`` there.

    Examples
    --------
    >>> from flamelib import KaryResponse
    >>> pld = exported(Shuffled(KaryResponse(epsilon0=1.0, n_buckets=2), n_users=10_000), rounds=20, delta=1e-6)
    >>> 0.16 < pld.self_compose(20).get_epsilon_for_delta(1e-6) < 0.18
    True
    """
    rounds, delta = check(rounds=rounds, slack_delta=delta).values()
    step = STEP_DOMAIN.accept("step", step)
    if not isinstance(protocol, Shuffled | Checkin | Participation | Sampled):
        raise DomainError(f"protocol must be Shuffled, Checkin, Participation or Sampled, got {protocol!r}")
    cells = dominating_pair(protocol, rounds, delta).removed
    return to_dp_accounting(cells, step, SPARED_SHARE * delta / rounds)


def imported(pld: PrivacyLossDistribution, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Pair:
    """A pessimistic loss distribution of ``dp-accounting`` as a round to be accounted for here, ``cited``.

    Parameters
    ----------
    pld : PrivacyLossDistribution
    adjacency : Adjacency
        The one it was made for, which it does not tell.

    Examples
    --------
    >>> from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism
    >>> history_account([(imported(from_laplace_mechanism(1.0)), 1)], delta=0.1)
    (0.7894, 0.1)-DP, add-remove; cited
    """
    if not pld._pmf_remove._pessimistic_estimate:
        raise DomainError("pld must be a pessimistic estimate, got an optimistic one")
    return Pair(_cells(pld._pmf_remove), _cells(pld._pmf_add), Adjacency(adjacency), RestsOn.CITED)


def _cells(pmf: Any) -> DominatingPair:
    """One order; the least losses are raised where round-off has given more to them than the other law can have."""
    dense = pmf.to_dense_pmf()
    there = np.flatnonzero(dense._probs > 0)
    masses, losses = dense._probs[there], dense._discretization * (dense._lower_loss + there)
    with np.errstate(over="ignore"):
        kept = np.cumsum((masses * np.exp(-losses))[::-1])[::-1] <= 1
    losses = np.maximum(losses, losses[kept].min(initial=losses[-1])) if len(losses) else losses
    base = masses * np.exp(-losses)
    rest, infinite = max(0.0, 1 - float(base.sum())), float(dense._infinity_mass)
    ends = np.concatenate([[-math.inf], losses, [math.inf]])
    gain = np.concatenate([[-rest], -masses * np.expm1(-losses), [infinite]])
    error = RTOL_MASS * np.concatenate([[0.0], masses, [infinite]])
    return DominatingPair(ends, ends, np.concatenate([[rest], base, [0.0]]), gain, error)
