"""Learning by cloak aggregation: FLAME's account over several rounds, the recorded run."""

import pandas as pd
import pytest

from flamebook.claims import cloak_uses as checks
from flamebook.places import RESULTS
from flamelib.accounting.coordinates.vector_bounds import account, topk_truncated

PLACE = RESULTS / "cloak_learning"


@pytest.mark.parametrize("protocol", ["topk", "double", "simple"])
def test_recorded_local_budgets_keep_the_guarantee(protocol):
    """Users who take part in two rounds have twice as many coordinates."""
    runs = pd.read_csv(PLACE / "cloak-equal.csv").query("epsilon == 1 and method == @protocol")
    [epsilon0] = runs.epsilon0.unique()
    if protocol == "topk":
        found = topk_truncated(2 * 157, 333, epsilon0, 1e-6)
    else:
        one = epsilon0 * (157 / 7850 if protocol == "simple" else 1)
        found = account(protocol, 2 * 7850, 1000, one, 1e-6, "blanket", "sound", 2 * 157, 333)
    assert 0.95 < found <= 1


def test_checks_read_the_recorded_run():
    """Cloak aggregation close to the trusted server and ahead of FLAME at every epsilon; six bits can be spared."""
    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        assert abs(checks.gap("server", "cloak", epsilon).mean) < 3
        for name in ("topk", "double", "simple"):
            assert checks.in_order(["cloak", name], epsilon)
    modulus = pd.read_csv(PLACE / "cloak-modulus.csv").query("round == 12").groupby("log2_modulus").accuracy.mean()
    assert modulus[13] < modulus[20] - 0.01
    assert (modulus.loc[14:] - modulus[20]).abs().max() < 0.001
