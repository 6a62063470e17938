"""A network with one hidden layer, trained by Opacus under the certified account."""

import io
import warnings
from typing import NamedTuple

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

from flamelib.bridges.opacus import NAME
from flamelib.learning.records import Records

HIDDEN_UNITS = 32


class Training(NamedTuple):
    """A finished training.

    ``engine`` is that of Opacus, whose accountant knows every step; ``accuracy`` the share of test images classified
    rightly; ``resumed`` says whether an engine that read a checkpoint half way accounts for the same.
    """

    engine: PrivacyEngine
    accuracy: float
    resumed: bool


def train_with_opacus(
    records: Records,
    n_users: int,
    noise_std: float,
    record_rate: float,
    clip_norm: float,
    rounds: int,
    learning_rate: float,
    seed: int,
) -> Training:
    """So many steps on the images of the first people; every step draws a Poisson sample of them.

    Parameters
    ----------
    records : Records
    n_users : int
        People with one image each.
    noise_std : float, positive
        Standard deviation of the noise over the clipping norm.
    record_rate : float in (0, 1]
        Chance that an image is drawn; Opacus takes one over a whole number of batches.
    clip_norm, learning_rate : float, positive
    rounds, seed : int
    """
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
            noise_multiplier=noise_std, max_grad_norm=clip_norm,
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
    return Training(engine, float((guessed == records.tested.labels).mean()), resumed)


def _resumes(engine: PrivacyEngine, network: torch.nn.Module) -> bool:
    """Whether an engine that reads a checkpoint of this one accounts for the same."""
    kept, other = io.BytesIO(), PrivacyEngine(accountant=NAME)
    engine.save_checkpoint(path=kept, module=network)
    kept.seek(0)
    other.load_checkpoint(path=kept, module=network)
    return bool(other.accountant.state_dict() == engine.accountant.state_dict())
