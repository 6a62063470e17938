"""A network trained with Opacus at several levels of noise: how well it does, what each accountant says it costs.

Every step is a Poisson sample of the records.  The same training is told to every accountant, so that only the account
differs between them.
"""

import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import opacus
import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from torch.utils.data import DataLoader, TensorDataset

from flamebook.records import Parameters, columns_csv
from flamebook.statements import AtLeast, AtMost, Finding, at_least, at_most, compared
from flamelib.accounting.sampling.rounds import participation_rounds
from flamelib.bridges.histories import History, history_account
from flamelib.bridges.opacus import NAME, FlamelibAccountant
from flamelib.learning.records import Records

# Accountants of Opacus that are bounds, the certified one first; and one that is an approximation.
BOUNDS = {NAME: "flamelib", "prv": "PRV", "rdp": "RDP"}
APPROXIMATION = "gdp"
HIDDEN_UNITS = 32


@dataclass(frozen=True)
class Trained:
    """For each level of noise: accuracy on the test images, epsilon by each accountant, and what is certain.

    Parameters
    ----------
    noise : tuple of float
        Standard deviation over the clipping norm.
    accuracy, certain : tuple of float
        Share of test images that are classified rightly; an epsilon that no accountant may go below.
    spent : mapping from an accountant of Opacus to a tuple of float
    resumed : bool
        Whether a training that was saved half way and continued by another engine has cost the same.
    parameters : mapping
    """

    noise: tuple[float, ...]
    accuracy: tuple[float, ...]
    certain: tuple[float, ...]
    spent: Mapping[str, tuple[float, ...]]
    resumed: bool
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a level of noise."""
        spent = {f"epsilon_{name}": values for name, values in self.spent.items()}
        return columns_csv(
            {"noise_std": self.noise, "accuracy": self.accuracy, "epsilon_at_least": self.certain, **spent}
        )

    def rows(self) -> list[tuple[object, ...]]:
        """For a table."""
        bounds = [[AtMost(value) for value in self.spent[name]] for name in BOUNDS]
        columns: list[Sequence[float]] = [[AtLeast(value) for value in self.certain], *bounds]
        columns.append(self.spent[APPROXIMATION])
        return [
            (f"{noise:g}, {100 * accuracy:.1f} %", *cells)
            for noise, accuracy, *cells in zip(self.noise, self.accuracy, *columns, strict=True)
        ]

    @property
    def too_small(self) -> Finding:
        """Whether the approximation is below what is certain, at every level of noise."""
        return compared(self.spent[APPROXIMATION], "<", self.certain)

    @property
    def never_below(self) -> Finding:
        """Whether this account is at least what is certain."""
        return compared(self.certain, "<=", self.spent[NAME])

    @property
    def smallest(self) -> Finding:
        """Whether this account is below those of Opacus."""
        return compared([*self.spent[NAME]] * 2, "<", [*self.spent["prv"], *self.spent["rdp"]])

    def words(self) -> dict[str, str]:
        """For the text: the middle level of noise, in numbers."""
        at = len(self.noise) // 2
        told = {name: at_most(values[at]) for name, values in self.spent.items() if name in BOUNDS}
        return {
            "opacus": f"Opacus {opacus.__version__}",
            "middle_noise": f"{self.noise[at]:g}",
            "middle_accuracy": f"{100 * self.accuracy[at]:.1f} %",
            "middle_certain": at_least(self.certain[at]),
            "middle_approximation": f"{self.spent[APPROXIMATION][at]:.4g}",
            "middle_side": "*below*" if self.spent[APPROXIMATION][at] < self.certain[at] else "not below",
            **{f"middle_{name}": value for name, value in told.items()},
        }


def sampled_at(n_users: int, record_rate: float) -> float:
    """The rate at which Opacus draws: one over a whole number of batches."""
    return 1 / math.ceil(n_users / max(1, round(record_rate * n_users)))


def compute_training(
    records: Records,
    n_users: int,
    noise_std: Sequence[float],
    record_rate: float,
    clip_norm: float,
    rounds: int,
    learning_rate: float,
    delta: float,
    seed: int,
) -> Trained:
    """Train once at each level of noise, on as many people's images, and ask every accountant."""
    engines = [
        _trained(records, n_users, noise, record_rate, clip_norm, rounds, learning_rate, seed) for noise in noise_std
    ]
    rate = sampled_at(n_users, record_rate)
    spent = {
        name: tuple(_epsilon(name, engine.accountant, delta) for engine, _, _ in engines)
        for name in (*BOUNDS, APPROXIMATION)
    }
    certain = tuple(
        float(participation_rounds("ols", 1.0, rate, 1, noise, 1.0, rounds, None, delta, side="lower"))
        for noise in noise_std
    )
    told = {"n_users": n_users, "record_rate": rate, "rounds": rounds, "delta": delta, "clip_norm": clip_norm}
    accuracy = tuple(found for _, found, _ in engines)
    return Trained(tuple(noise_std), accuracy, certain, spent, all(one for *_, one in engines), told)


def _trained(
    records: Records,
    n_users: int,
    noise: float,
    record_rate: float,
    clip_norm: float,
    rounds: int,
    learning_rate: float,
    seed: int,
) -> tuple[PrivacyEngine, float, bool]:
    """A training of a network with one hidden layer, its accuracy, and whether half of it was told to a checkpoint."""
    torch.manual_seed(seed)
    batch = records.batch(np.arange(n_users))
    data = TensorDataset(torch.from_numpy(batch.images), torch.from_numpy(batch.labels))
    model = torch.nn.Sequential(
        torch.nn.Linear(batch.images.shape[1], HIDDEN_UNITS),
        torch.nn.Tanh(),
        torch.nn.Linear(HIDDEN_UNITS, records.n_classes),
    )
    draws, noises = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its noise is not cryptographic, and what torch deprecates
        engine = PrivacyEngine(accountant=NAME)
        network, optimizer, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), learning_rate), noise_generator=noises,
            data_loader=DataLoader(data, batch_size=max(1, round(record_rate * n_users)), generator=draws),
            noise_multiplier=noise, max_grad_norm=clip_norm,
        )  # fmt: skip
        done, resumed = 0, True
        while done < rounds:
            for images, labels in loader:
                if done == rounds:
                    break
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(network(images), labels)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                done += 1
                if done == max(1, rounds // 2):
                    resumed = _resumes(engine, network)
    with torch.no_grad():
        guessed = model(torch.from_numpy(records.tested.images)).argmax(1).numpy()
    return engine, float((guessed == records.tested.labels).mean()), resumed


def _resumes(engine: PrivacyEngine, network: torch.nn.Module) -> bool:
    """Whether an engine that reads a checkpoint of this one accounts for the same."""
    kept, other = io.BytesIO(), PrivacyEngine(accountant=NAME)
    engine.save_checkpoint(path=kept, module=network)
    kept.seek(0)
    other.load_checkpoint(path=kept, module=network)
    return bool(other.accountant.state_dict() == engine.accountant.state_dict())


def _epsilon(name: str, told: FlamelibAccountant, delta: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its range of orders could be longer, or that it is no bound
        accountant = create_accountant(name)
        accountant.history = list(told.history)
        return float(accountant.get_epsilon(delta=delta))


def cost_rows(histories: Mapping[str, History], delta: float) -> list[tuple[object, ...]]:
    """For a table: what each history costs the same people, under the adjacency that its rounds have."""
    found = {name: history_account(history, delta) for name, history in histories.items()}
    return [(name, AtMost(one.epsilon), str(one.adjacency), str(one.rests_on)) for name, one in found.items()]


def less_together(rows: Sequence[Sequence[Any]]) -> Finding:
    """Whether the third of these rows lies between the larger of the first two and their sum."""
    one, other, both = (float(row[1]) for row in rows[:3])
    return compared(max(one, other), "<", both, "<", one + other)
