"""Training with Opacus: the same numbers twice, and accountants in their order."""

import warnings

from opacus.accountants import create_accountant

from flamebook.experiments.training import train_with_opacus
from flamelib.accounting.sampling.rounds import participation_rounds
from flamelib.learning.records import load_records


def test_it_learns_and_its_accounts_are_in_order() -> None:
    noise_std = 0.8
    found = train_with_opacus(load_records("digits", n_tested=100), 500, noise_std, 0.1, 1.0, 12, 1.0, seed=3)
    assert found.accuracy > 0.3
    assert found.resumed
    [(noise, rate, steps)] = found.engine.accountant.history
    assert (noise, rate, steps) == (noise_std, 0.1, 12)
    spent = {}
    for name in ("flamelib", "prv", "rdp", "gdp"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that its range of orders could be longer, or that it is no bound
            accountant = create_accountant(name)
            accountant.history = found.engine.accountant.history
            spent[name] = accountant.get_epsilon(delta=1e-5)
    certain = participation_rounds("ols", 1.0, rate, 1, noise, 1.0, steps, None, 1e-5, side="lower")
    assert spent["gdp"] < certain <= spent["flamelib"] < spent["prv"] < spent["rdp"]
    assert spent["flamelib"] < 1.001 * certain
