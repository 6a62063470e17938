"""An accountant for Opacus: ``PrivacyEngine(accountant="flamelib")`` after this module has been imported.

Its epsilon is certified from above for what Opacus tells it: noise of the standard deviation ``noise_multiplier`` times
the clipping norm, on the sum of clipped gradients of a Poisson sample, one record added or removed.

*Assumed*: batches are Poisson samples, as Opacus draws them with ``poisson_sampling=True``, its default.  Batches of a
fixed size from a shuffled order are no such samples, and neither this account nor any other of Opacus covers them.
Gradients that are accumulated over several drawn batches are taken as Opacus takes them, as one draw at the summed
rate.  Noise counts as exactly normal, and the size of a batch as secret.
"""

from collections.abc import Sequence
from typing import Any

from flamelib.bridges.histories import Round, Sampled, history_account
from flamelib.core.extras import extra
from flamelib.core.guarantees import Adjacency
from flamelib.core.vocabulary import DomainError, check
from flamelib.front.results import Guarantee

with extra("opacus"):
    from opacus.accountants import IAccountant, register_accountant

NAME = "flamelib"


class FlamelibAccountant(IAccountant):  # type: ignore[misc]
    """What a training costs that Opacus runs, together with other rounds that the same people took part in.

    ``history`` holds Opacus' own entries, equal steps in a row merged; ``rounds`` holds what :meth:`take` was told.
    """

    history: list[tuple[float, float, int]]

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[tuple[Round, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """One step of training, as Opacus' optimizer reports it."""
        drawn, times = Sampled(float(noise_multiplier), float(sample_rate)), 1
        if self.history and Sampled(*self.history[-1][:2]) == drawn:
            times += self.history.pop()[2]
        self.history.append((drawn.noise_multiplier, drawn.sample_rate, times))

    def take(self, protocol: Round, rounds: int = 1) -> None:
        """Rounds of another kind on the same people: ``Participation``, ``Checkin``, ``Shuffled`` or ``Rounds``.

        With any but ``Participation`` the answer is for replacing what one person holds: one record of the training,
        and one value elsewhere.
        """
        if not isinstance(protocol, Round) or isinstance(protocol, Sampled):
            raise DomainError(f"protocol must be Participation, Checkin, Shuffled or Rounds, got {protocol!r}")
        self.rounds.append((protocol, check(rounds=rounds)["rounds"]))

    def guarantee(self, delta: float, adjacency: Adjacency | None = None) -> Guarantee:
        """What all of it guarantees at ``delta`` (upper), with its adjacency and what it rests on."""
        steps = [(Sampled(noise, rate), times) for noise, rate, times in self.history]
        return history_account([*steps, *self.rounds], delta, adjacency=adjacency)

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The certified epsilon at ``delta`` (upper); what else Opacus hands over to its accountants is ignored."""
        return self.guarantee(delta).epsilon

    def __len__(self) -> int:
        return len(self.history) + len(self.rounds)

    @classmethod
    def mechanism(cls) -> str:
        """The name by which Opacus knows this accountant."""
        return NAME

    def state_dict(self, destination: Any = None) -> Any:
        """What a checkpoint of Opacus keeps."""
        found = super().state_dict(destination)
        found["rounds"] = list(self.rounds)
        return found

    def load_state_dict(self, state_dict: Any) -> None:
        """Continue from a checkpoint."""
        super().load_state_dict(state_dict)
        self.history = [(noise, rate, times) for noise, rate, times in self.history]
        rounds: Sequence[tuple[Round, int]] = state_dict.get("rounds", ())
        self.rounds = list(rounds)


register_accountant(NAME, FlamelibAccountant, force=True)
