"""An accountant for Opacus: ``PrivacyEngine(accountant="flamelib")`` after this module has been imported.

Its epsilon is certified from above for what Opacus tells it: noise of the standard deviation ``noise_multiplier`` times
the clipping norm, on the sum of clipped gradients of a Poisson sample, one record added or removed.

*Assumed*: batches are Poisson samples, as Opacus draws them with ``poisson_sampling=True``, its default.  Batches of a
fixed size from a shuffled order are no such samples, and neither this account nor any other of Opacus covers them.
Gradients that are accumulated over several drawn batches are taken as Opacus takes them, as one draw at the summed
rate.  Noise counts as exactly normal, and the size of a batch as secret.
"""

from collections.abc import Mapping
from typing import Any

from flamelib.bridges.histories import Round, Sampled, history_account, restored, spelled
from flamelib.core.extras import extra
from flamelib.core.guarantees import Adjacency
from flamelib.core.vocabulary import DomainError, check, shown
from flamelib.front.results import Guarantee

with extra("opacus"):
    from opacus.accountants import IAccountant, register_accountant

NAME = "flamelib"


def _entries(name: str, found: Any, size: int) -> list[Any]:
    """The entries of a list, each itself a list of so many."""
    whole = isinstance(found, list | tuple) and all(isinstance(one, list | tuple) and len(one) == size for one in found)
    if not whole:
        raise DomainError(f"{name} must be a list of entries of {size}, as state_dict gives it, got {shown(found)}")
    return list(found)


def _steps(history: Any) -> list[tuple[float, float, int]]:
    """Opacus' entries, checked: noise multiplier, sample rate, number of steps."""
    found = []
    for noise, rate, times in _entries("history", history, 3):
        try:
            drawn, steps = Sampled(noise, rate), check(rounds=times)["rounds"]
        except DomainError as refusal:
            raise DomainError(f"history must hold noise, rates and numbers of steps: {refusal}") from None
        found.append((float(drawn.noise_multiplier), float(drawn.sample_rate), steps))
    return found


class FlamelibAccountant(IAccountant):  # type: ignore[misc]
    """What a training by Opacus costs, together with other rounds in which the same people took part.

    ``history`` holds Opacus' own entries, equal steps in a row merged; ``rounds`` holds what :meth:`take` was told.
    """

    history: list[tuple[float, float, int]]

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[tuple[Round, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """One step of training, as Opacus' optimizer reports it."""
        drawn, times = Sampled(noise_multiplier, sample_rate), 1
        if self.history and Sampled(*self.history[-1][:2]) == drawn:
            times += self.history.pop()[2]
        self.history.append((float(drawn.noise_multiplier), float(drawn.sample_rate), times))

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
        steps = [(Sampled(noise, rate), times) for noise, rate, times in _steps(self.history)]
        return history_account([*steps, *self.rounds], check(delta=delta)["delta"], adjacency=adjacency)

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
        """What a checkpoint of Opacus keeps: plain numbers, words and lists, which ``torch.load`` reads by itself."""
        found = super().state_dict(destination)
        found["rounds"] = [(spelled(protocol), times) for protocol, times in self.rounds]
        return found

    def load_state_dict(self, state_dict: Any) -> None:
        """Continue from a checkpoint; one that is not whole is refused, and nothing has changed then."""
        if not isinstance(state_dict, Mapping):
            raise DomainError(f"state_dict must be that of an accountant, got {shown(state_dict)}")
        read = FlamelibAccountant()
        super(FlamelibAccountant, read).load_state_dict(state_dict)
        history = _steps(read.history)
        for protocol, times in _entries("rounds", state_dict.get("rounds", ()), 2):
            read.take(restored(protocol), times)
        self.history, self.rounds = history, read.rounds


register_accountant(NAME, FlamelibAccountant, force=True)
