"""The accountant inside Opacus: real training, checkpoints, its own calibration, other rounds beside."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
from torch.utils.data import DataLoader, TensorDataset

from flamelib import (
    AnyRandomizer,
    Checkin,
    DomainError,
    KaryResponse,
    Participation,
    Rounds,
    Shuffled,
    Summed,
    TableRandomizer,
    account,
)
from flamelib.accounting.sampling.rounds import participation_rounds
from flamelib.bridges.histories import Pair, disclosing
from flamelib.bridges.opacus import FlamelibAccountant
from flamelib.core.guarantees import RestsOn

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CLIENTS = Participation(0.1, 0.1, 30, 1.0, 1.0)
SURVEY = Shuffled(KaryResponse(1.0, 2), 10_000)


def trained(steps, noise=1.0):
    """An engine, a model and an optimizer after some steps of real training."""
    torch.manual_seed(0)
    data = torch.randn(200, 5)
    loader = DataLoader(TensorDataset(data, (data[:, 0] > 0).long()), batch_size=20)
    model = torch.nn.Linear(5, 2)
    engine = PrivacyEngine(accountant="flamelib")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), 0.1), data_loader=loader, noise_multiplier=noise,
        max_grad_norm=1.0,
    )  # fmt: skip
    done = 0
    while done < steps:
        for values, labels in loader:
            if done < steps:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(values), labels).backward()
                optimizer.step()
                done += 1
    return engine, model, optimizer


def test_a_training_is_accounted_for_step_by_step():
    engine, _, _ = trained(15)
    assert engine.accountant.history == [(1.0, 0.1, 15)]
    assert len(engine.accountant) == 1
    given = "ols", 1.0, 0.1, 1, 1.0, 1.0, 15, None, 1e-5
    assert engine.get_epsilon(1e-5) == participation_rounds(*given)
    assert participation_rounds(*given, side="lower") <= engine.get_epsilon(1e-5)


def test_a_checkpoint_keeps_everything(tmp_path):
    engine, model, optimizer = trained(7)
    engine.accountant.take(CLIENTS, 3)
    engine.accountant.take(Checkin(SURVEY, 0.1), 2)
    engine.save_checkpoint(path=tmp_path / "kept", module=model, optimizer=optimizer)
    fresh, module, other = trained(1, noise=2.0)
    fresh.load_checkpoint(path=tmp_path / "kept", module=module, optimizer=other)
    assert fresh.accountant.state_dict() == engine.accountant.state_dict()
    assert fresh.get_epsilon(1e-5) == engine.get_epsilon(1e-5)
    fresh.accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    assert fresh.accountant.history == [(1.0, 0.1, 8)]
    assert engine.accountant.history == [(1.0, 0.1, 7)], "what was saved is its own"


def test_a_checkpoint_of_another_accountant_is_refused():
    with pytest.raises(ValueError, match="rdp"):
        FlamelibAccountant().load_state_dict(create_accountant("rdp").state_dict())


def test_noise_and_rates_may_change():
    one = create_accountant("flamelib")
    for noise, rate in [(1.0, 0.1), (1.0, 0.1), (2.0, 0.1), (1.0, 0.1), (1.0, 0.2)]:
        one.step(noise_multiplier=noise, sample_rate=rate)
    assert one.history == [(1.0, 0.1, 2), (2.0, 0.1, 1), (1.0, 0.1, 1), (1.0, 0.2, 1)]
    least = participation_rounds("ols", 1.0, 0.1, 1, 1.0, 1.0, 3, None, 1e-5, side="lower")
    most = participation_rounds("ols", 1.0, 0.2, 1, 1.0, 1.0, 5, None, 1e-5)
    assert least < one.get_epsilon(delta=1e-5) < most


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.01, 1000), (0.7, 0.004, 3000), (2.0, 0.1, 200)])
def test_beside_their_accountants(noise, rate, steps):
    """Their PRV errs by a hundredth upwards on purpose, their RDP by more; nobody is below what is certain."""
    found = {}
    for name in ("flamelib", "prv", "rdp"):
        one = create_accountant(name)
        one.history = [(noise, rate, steps)]
        found[name] = one.get_epsilon(delta=1e-5)
    certain = participation_rounds("ols", 1.0, rate, 1, noise, 1.0, steps, None, 1e-5, side="lower")
    assert certain <= found["flamelib"] <= found["prv"] + 0.005
    assert found["prv"] < found["rdp"]


def test_their_search_for_noise_uses_it():
    noise = get_noise_multiplier(
        target_epsilon=2.0, target_delta=1e-5, sample_rate=0.01, steps=500, accountant="flamelib"
    )
    assert 1.97 < participation_rounds("ols", 1.0, 0.01, 1, noise, 1.0, 500, None, 1e-5) <= 2.0


def test_other_rounds_add_up():
    steps, clients, both = (create_accountant("flamelib") for _ in range(3))
    steps.history = both.history = [(1.0, 0.01, 100)]
    clients.take(CLIENTS, 50)
    both.take(CLIENTS, 50)
    assert clients.get_epsilon(1e-6) == account(CLIENTS, delta=1e-6, rounds=50).epsilon
    assert max(steps.get_epsilon(1e-6), clients.get_epsilon(1e-6)) <= both.get_epsilon(1e-6)
    assert both.guarantee(1e-6).adjacency == "add-remove"
    both.take(SURVEY)
    assert both.guarantee(1e-6).adjacency == "replace-one"
    assert len(both) == 3


@pytest.mark.parametrize(("module", "package"), [("opacus", "opacus"), ("dp_accounting", "dp-accounting")])
def test_without_the_package_one_sentence_says_what_to_install(module, package):
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from flamelib.core.extras import MissingExtra\n"
        f"try:\n    import flamelib.bridges.{module}\nexcept MissingExtra as absent:\n    print(absent)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    command = f"pip install '.[{package}]' in the source of flamelib"
    assert done.stdout == f"{module} is not installed here; {command} brings it\n"


EVERY_ROUND = [
    CLIENTS, SURVEY, Checkin(SURVEY, 0.1), Checkin(Summed(100, 1.0), 0.5),
    Rounds([(SURVEY, 3), (Checkin(SURVEY, 0.5), 2)]),
    Shuffled(TableRandomizer([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]), 1000), Shuffled(AnyRandomizer(1.0), 1000),
    Pair(disclosing(0.25), rests_on=RestsOn.CITED),
]  # fmt: skip


def test_a_checkpoint_holds_no_code(tmp_path):
    """``torch.load`` reads it with ``weights_only``, whatever rounds were taken; nothing of them is lost."""
    one, other = create_accountant("flamelib"), create_accountant("flamelib")
    one.step(noise_multiplier=np.float32(1.1), sample_rate=np.float16(0.1))
    for times, protocol in enumerate(EVERY_ROUND, 1):
        one.take(protocol, times)
    torch.save({"privacy_accountant_state_dict": one.state_dict()}, tmp_path / "kept")
    kept = torch.load(tmp_path / "kept", weights_only=True)["privacy_accountant_state_dict"]
    assert json.loads(json.dumps(kept["history"])) == [[float(np.float32(1.1)), float(np.float16(0.1)), 1]]
    other.load_state_dict(kept)
    assert other.history == one.history
    assert other.rounds[:-1] == one.rounds[:-1]
    assert other.rounds[-1][0].rests_on == "cited"
    assert repr(other.rounds[-1][0].removed) == repr(one.rounds[-1][0].removed)
    other.load_state_dict(one.state_dict() | {"rounds": [(SURVEY, 2)]})
    assert other.rounds == [(SURVEY, 2)], "a file of an older edition"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"history": 5}, "history must be"), ({"history": [(1.0, 0.1)]}, "history must be"),
        ({"history": [("1", 0.1, 2)]}, "history must hold"), ({"history": [(1.0, 2.0, 2)]}, "history must hold"),
        ({"history": [(1.0, 0.1, 2.5)]}, "history must hold"), ({"history": [None]}, "history must be"),
        ({"history": [(math.nan, 0.1, 1)]}, "history must hold"), ({"rounds": 1}, "rounds must be"),
        ({"rounds": [("survey", 1)]}, "protocol must be"), ({"rounds": [(["os", {}], 1)]}, "rounds must hold"),
        ({"rounds": [(SURVEY, 0)]}, "rounds must be"),
        ({"rounds": [(["Shuffled", {"n_users": 3}], 1)]}, "rounds must hold"),
    ],
)  # fmt: skip
def test_a_malformed_history_is_refused_in_one_sentence(wrong, told):
    one = create_accountant("flamelib")
    one.history = [(1.0, 0.1, 3)]
    with pytest.raises(DomainError, match=told) as refusal:
        one.load_state_dict(one.state_dict() | wrong)
    assert "\n" not in str(refusal.value)
    assert one.history == [(1.0, 0.1, 3)], "what was there stays"
    if "history" in wrong:
        one.history = wrong["history"]
        with pytest.raises(DomainError, match=told):
            one.get_epsilon(1e-5)


@pytest.mark.parametrize("delta", ["1e-5", None, True, math.nan, -1, [1e-5]])
def test_a_delta_that_is_no_number_is_refused_by_name(delta):
    one = create_accountant("flamelib")
    one.history = [(1.0, 0.1, 3)]
    with pytest.raises(DomainError, match="delta must be"):
        one.get_epsilon(delta)


@pytest.mark.parametrize("wrong", ["1", True, None, math.inf, -1.0])
def test_a_step_of_no_number_is_refused_by_name(wrong):
    one = create_accountant("flamelib")
    with pytest.raises(DomainError, match="noise_multiplier must be"):
        one.step(noise_multiplier=wrong, sample_rate=0.1)
    with pytest.raises(DomainError, match="state_dict must be"):
        one.load_state_dict(wrong)
