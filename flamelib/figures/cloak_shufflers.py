"""What goes through the shufflers: where a message ends up behind a chain of them, and how much they carry."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chisquare

from flamelib.accounting.splitting.crowds import least_messages
from flamelib.core.vocabulary import check
from flamelib.figures.cloak import Rows
from flamelib.figures.curves import Curves
from flamelib.mechanisms.integers.modular import Residues
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.cloak import relay, shuffler


def shuffler_rows(messages: int, repeats: int, seed: int) -> Rows:
    """Where the first message ends up, behind chains of shufflers of which some apply an order of their own choice.

    Each row: who is in the chain, places where the message was ever seen, and how well they fit a uniform place.

    Examples
    --------
    >>> [row[:2] for row in shuffler_rows(5, 200, seed=0)]
    [['nobody honest', 1], ['honest alone', 5], ['honest first', 5], ['honest last', 5], ['honest in between', 5]]
    """
    check(points=messages, repeats=repeats, seed=seed)
    source = Simulation(np.random.default_rng(seed))
    kinds: dict[str, Callable[[Residues], Residues]] = {
        "h": lambda found: shuffler(found, source),
        "f": np.flip,
        "r": lambda found: np.roll(found, 1),
    }
    chains = {
        "nobody honest": "fr",
        "honest alone": "h",
        "honest first": "hfr",
        "honest last": "frh",
        "honest in between": "fhr",
    }
    rows: Rows = []
    for name, chain in chains.items():
        relayed = [relay(np.arange(messages), [kinds[one] for one in chain]) for _ in range(repeats)]
        counts = np.bincount([int(np.flatnonzero(found == 0)[0]) for found in relayed], minlength=messages)
        rows.append([name, int((counts > 0).sum()), float(chisquare(counts).pvalue)])
    return rows


def compute_traffic(users: ArrayLike, scale: int, security_bits: float) -> tuple[Curves, Curves]:
    """Messages of a user, and megabytes at the shuffler, against the number of users; the values alone beside it.

    Modulus 3 n k + 1; as many messages as the sharpest known bound asks for.

    Examples
    --------
    >>> messages, traffic = compute_traffic([100, 1000], 100, 40.0)
    >>> messages.curves["own-3"].tolist()
    [14.0, 11.0]
    """
    counts = [int(n) for n in np.atleast_1d(users)]
    check(scale=scale, security_bits=security_bits)
    bits = np.array([(3 * n * scale).bit_length() for n in counts])
    needed = np.array([least_messages(security_bits, n, 3 * n * scale + 1) for n in counts], dtype=np.float64)
    x, given = np.array(counts, dtype=np.float64), {"scale": scale, "security_bits": security_bits}
    curves = {"all-shares": x * needed * bits / 8e6, "bare-values": x * scale.bit_length() / 8e6}
    return Curves("n_users", "n_messages", x, {"own-3": needed}, given), Curves(
        "n_users", "megabytes", x, curves, given
    )
