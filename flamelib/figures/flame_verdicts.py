"""Verdicts on FLAME, with what each of them rests on."""

from collections.abc import Iterable

from flamelib.figures.flame_audit import Claims
from flamelib.figures.flame_printed import Alphabet, Linked
from flamelib.figures.flame_released import HalfPrecision, RepeatedNoise

Rows = list[tuple[object, ...]]


def printed_rows(claims: Claims, lost: float, short: Alphabet, full: Alphabet, linked: Linked) -> Rows:
    """For a table: statements of the paper, the verdict, and why.

    Parameters
    ----------
    claims : Claims
        Budgets.
    lost : float
        Largest delta where Theorem 4 promises none.
    short, full : Alphabet
        Algorithm 1 as printed and corrected.
    linked : Linked
        Messages that are permuted as wholes.
    """
    return [
        *(
            (f"budget of {one.name}", one.verdict, f"{one.claimed:.4g}; certainly {one.lower:.4g} to {one.upper:.4g}")
            for one in claims.claims.values()
        ),
        ("Theorem 4, for every randomizer", "refuted", f"promised delta 0, true {lost:.2g}"),
        ("Algorithm 1 has a local budget", "refuted", f"budget {short.budget}, with 0..b {full.budget:.3g}"),
        ("equation (1) is unbiased", "refuted", f"{short.bias:.4g} users too many, with 0..b {full.bias:.1g}"),
        ("permuting whole messages is enough", "refuted", f"found {linked.found} of {linked.repeats} times"),
    ]


def released_rows(gaussian: Iterable[tuple[float, ...]], half: HalfPrecision, noise: RepeatedNoise) -> Rows:
    """For a table: what the released code claims or does, the verdict, and why.

    Parameters
    ----------
    gaussian : iterable of tuple
        Rows of :func:`~flamelib.figures.flame_released.classical_rows`.
    half : HalfPrecision
    noise : RepeatedNoise
    """
    return [
        *(
            (f"DP-FL at {claimed:.4g}", "holds" if true <= claimed else "refuted", f"keeps {true:.4g}")
            for claimed, _, _, true in gaussian
        ),
        ("LDP-FL as released", "broken", f"{100 * half.lost:.0f}% of the sums are no numbers"),
        (
            "rounds have fresh noise, as released",
            "broken",
            f"error {noise.growth('dp:repeated'):.3g}-fold in 12 rounds",
        ),
    ]
