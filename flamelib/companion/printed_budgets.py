"""The budgets that the documents print, beside what the ledger has recorded of the same mechanisms."""

from flamebook.claims.ledger import load
from flamebook.recordings.ledger import recorded

from flamelib.core.vocabulary import DomainError
from flamelib.figures.printed_budgets import Budget, Budgets

# A name, the row that states the printed budget, the row of a certified upper bound, and that of a lower one.
ROWS: tuple[tuple[str, str, str, str | None], ...] = (
    ("FLAME: SS-Topk, 2 %, with sampling", "flame:claim-0.24/topk-epsilon", "flame:claim-0.24/topk-upper",
     "flame:claim-0.24/topk-epsilon"),
    ("FLAME: baseline DP-FL, 20.53", "flame:claim-20.53/printed", "flame:claim-20.53/dp-fl-exact",
     "flame:claim-20.53/dp-fl-exact"),
    ("FLAME: SS-Topk, 10 %", "flame:claim-2.348/topk-guarantee", "flame:claim-2.348/topk-guarantee",
     "flame:claim-2.348/topk-lower"),
    ("FLAME: baseline DP-FL, 0.24", "flame:claim-0.24/dp-fl", "flame:claim-0.24/dp-fl-exact",
     "flame:claim-0.24/dp-fl-exact"),
    ("FLAME: SS-Double, 2 %", "flame:claim-0.24/double-guarantee", "flame:claim-0.24/double-guarantee",
     "flame:claim-0.24/double-lower"),
    ("FLAME: SS-Double, 10 %", "flame:claim-2.348/double-guarantee", "flame:claim-2.348/double-guarantee",
     "flame:claim-2.348/double-lower"),
    ("FLAME: SS-Simple", "flame:claim-0.91/guarantee", "flame:claim-0.91/guarantee", "flame:claim-0.91/lower"),
    ("FLAME: SS-Topk, 2 %, shuffling alone", "flame:claim-20.53/guarantee", "flame:claim-0.24/topk-upper",
     "flame:claim-0.24/topk-epsilon"),
    ("check-in: 2000 rounds", "checkin:claim-0.67/reachable", "checkin:claim-0.67/reachable", None),
)  # fmt: skip


def compute_budgets() -> Budgets:
    """From the record of the ledger, which a test compares with its computation.

    Examples
    --------
    >>> found = compute_budgets().budgets
    >>> found[0].mechanism, round(found[0].printed, 2), round(found[0].least, 3), round(found[0].most, 3)
    ('FLAME: SS-Topk, 2 %, with sampling', 0.24, 1.198, 1.444)
    """
    stated, found = {claim.id: claim.stated for claim in load()}, recorded()
    budgets = tuple(
        Budget(name, *map(_number, (stated[printed], found[lower][1] if lower else 0.0, found[upper][1])))
        for name, printed, upper, lower in ROWS
    )
    return Budgets(budgets, {"ledger": "data/results/ledger.csv"})


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise DomainError(f"the rows of printed budgets must hold one number each, got {value!r}")
    return float(value)
