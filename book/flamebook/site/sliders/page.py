"""Which statements the page of sliders shows, part by part, how its inputs become theirs, and their answers.

The page runs this module in the browser, on the very sources of the package; the build runs it once over
:data:`AXES` for a reader whose browser cannot.  Answers come from :mod:`flamelib.answers`, or from the
grids of :mod:`flamebook.site.sliders.grids`, so a row is what the command line under it prints.  Standard library only.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from flamebook.site.sliders.grids import certified
from flamelib.accounting.shuffling import closed_form
from flamelib.answers import answer, plain, sentence, statement
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import VOCABULARY, DomainError, read

Named = dict[str, Any]
Recast = Callable[[Named], Named]

PARTS: dict[str, str] = {
    "blanket": "Privacy blanket: one round, one user's value replaced",
    "flame": "FLAME: one round, one user's vector or one coordinate of it replaced",
    "participation": "Random participation: one record added or removed",
    "checkin": "Self check-in: all rounds, one user's record replaced",
    "cloak": "Cloak aggregation: one value replaced, or changes that keep the sum",
}


def having(**words: Any) -> Recast:
    """Fixed words among the inputs."""
    return lambda named: words | named


def _renamed(**to: str) -> Recast:
    return lambda named: {to.get(name, name): value for name, value in named.items()}


def _shares(named: Named) -> Named:
    """The modulus of so many bits, upwards, in the place of its logarithm; too many are refused, not computed."""
    return {"modulus": 2 ** math.ceil(min(named.pop("log2_modulus"), 1000.0))} | named


def _security(named: Named) -> Named:
    """Bits of security for a failure probability."""
    delta = named.pop("delta")
    return {"security_bits": -math.log2(delta) if delta else math.inf} | named


def _sampled(named: Named) -> Named:
    """The share of the coordinates that is kept."""
    return named | {"sampling_rate": named.pop("kept") / named.pop("dimension")}


def _coordinate(named: Named) -> Named:
    """Laplace noise on one coordinate, shuffled with as many messages as it is padded to."""
    return {"randomizer": "laplace", "n_users": named.pop("padded")} | named


def _composed(named: Named) -> Named:
    """Rounds without a failure probability of their own; all of delta is spent on composing them."""
    return {"epsilon": named["epsilon"], "delta": 0, "times": named["rounds"], "slack_delta": named["delta"]}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the page: a registered statement, what it is asked about, and the inputs of the page it needs.

    ``answers`` says what its value is, or which part of an answer of several; ``recast`` turns the named inputs into
    those of the command line.  A row that names a grid in ``recorded`` is looked up there, not computed.
    """

    part: str
    statement: str
    label: str
    about: str
    needs: tuple[str, ...]
    answers: str = "epsilon"
    recast: Recast = dict
    recorded: str = ""

    @property
    def key(self) -> str:
        """Name of the row in the page."""
        stem = f"recorded-{self.recorded}" if self.recorded else self.statement.replace(":", "-").replace(".", "-")
        return f"{stem}-{self.about}-{self.answers}"

    def inputs(self, given: Mapping[str, Any]) -> Named:
        """The named inputs as the command line, or the recorded grid, takes them."""
        return self.recast({name: given[name] for name in self.needs})


_ANY = ("epsilon0", "n_users", "delta")
_TARGET = ("n_users", "n_buckets", "epsilon", "delta")
_KARY = ("epsilon0", "n_buckets", "n_users", "delta")
_TOPK = ("epsilon0", "kept", "padded", "delta")
_JOINED = ("participation_rate", "record_rate", "noise_std", "delta")
_SUMS = ("n_users", "checkin_rate", "noise_std", "rounds", "delta")
_RULE = ("n_users", "epsilon", "delta")
_kary, _laplace, _any = (having(randomizer=kind) for kind in ("kary", "laplace", "any"))
_clipped = having(clip_norm=1)

_BLANKET = (
    Row("blanket", "blanket:lem-5.1", "Blanket mass", "kary", ("epsilon0", "n_buckets"), "mass", _kary),
    Row("blanket", "blanket:thm-3.1", "Theorem 3.1, mass for the target", "kary", _TARGET, "mass"),
    Row("blanket", "blanket:thm-3.1", "Theorem 3.1", "kary", _KARY),
    Row("blanket", "blanket:lem-hoeffding", "Hoeffding", "kary", _KARY, recast=_kary),
    Row("blanket", "blanket:lem-hoeffding", "Hoeffding", "laplace", _ANY, recast=_laplace),
    Row("blanket", "blanket:lem-hoeffding", "Hoeffding", "any", _ANY, recast=_any),
    Row("blanket", "blanket:lem-bennett", "Bennett", "kary", _KARY, recast=_kary),
    Row("blanket", "blanket:lem-bennett", "Bennett", "laplace", _ANY, recast=_laplace),
    Row("blanket", "blanket:lem-bennett", "Bennett", "any", _ANY, recast=_any),
    Row("blanket", "clones:2021-closed", "Clones, closed form", "any", _ANY),
    Row("blanket", "blanket:erlingsson", "Erlingsson et al.", "any", _ANY),
    Row("blanket", "blanket:lem-reduction", "Blanket, numerical", "kary", _KARY, recorded="kary"),
    Row("blanket", "blanket:lem-reduction", "Blanket, numerical", "laplace", _ANY, recorded="laplace"),
    Row("blanket", "clones:2021", "Clones, numerical", "any", _ANY, recorded="clones"),
    Row("blanket", "shuffle:exact-binary", "Exact", "binary", _ANY, recorded="binary"),
    Row("blanket", "shuffle:lower", "Certified lower bound", "binary", _ANY, recorded="binary-lower"),
)
_FLAME = (
    Row("flame", "flame:bennett-withdrawn", "Bennett, withdrawn form", "coordinate", ("epsilon0", "padded", "delta"),
        recast=_coordinate),
    Row("flame", "blanket:lem-bennett", "Bennett", "coordinate", ("epsilon0", "padded", "delta"), recast=_coordinate),
    Row("flame", "flame:thm-3", "Theorem 3, as printed", "padded", ("n_buckets", *_TOPK[:3], "dimension", "delta"),
        recast=_sampled),
    Row("flame", "flame:lem-1", "Lemma 1", "padded", ("n_buckets", "epsilon0", "padded", "delta"),
        recast=_renamed(padded="n_users")),
    Row("flame", "flame:account", "Top-k, as printed", "vector", _TOPK, recorded="topk-printed"),
    Row("flame", "flame:account", "Top-k, certified", "vector", _TOPK, recorded="topk"),
    Row("flame", "flame:topk-lower", "Top-k, yield of the attack by counting", "vector", _TOPK, recorded="topk-lower"),
)  # fmt: skip
_PARTICIPATION = (
    Row("participation", "participation:thm-2.4", "Gaussian mechanism", "round", ("noise_std", "delta"),
        recast=having(sensitivity=1)),
    Row("participation", "participation:thm-5.1", "All join (OLS)", "round", _JOINED[1:],
        recast=having(participation_rate=1, clip_norm=1)),
    Row("participation", "participation:thm-5.2", "Who joins is known (WCS)", "round", _JOINED, recast=_clipped),
    Row("participation", "participation:cor-5.3", "Every record by itself (CS)", "round", _JOINED, recast=_clipped),
    Row("participation", "participation:rounds", "Nobody knows who joins", "rounds",
        ("participation_rate", "record_rate", "n_records", "noise_std", "rounds", "delta"), recorded="participation"),
    Row("participation", "participation:thm-4.1", "Certified lower bound", "rounds",
        ("participation_rate", "record_rate", "n_records", "noise_std", "delta"), recorded="participation-lower"),
)  # fmt: skip
_CHECKIN = (
    Row("checkin", "participation:cmp-random-checkins", "Random check-ins, T slots", "any",
        ("epsilon0", "checkin_rate", "rounds", "delta"),
        recast=_renamed(checkin_rate="participation_rate", rounds="window")),
    Row("checkin", "checkin:strong-drv", "Composition, Dwork et al.", "target", ("epsilon", "rounds", "delta"),
        recast=_composed),
    Row("checkin", "checkin:strong-kov", "Composition, Kairouz et al.", "target", ("epsilon", "rounds", "delta"),
        recast=_composed),
    Row("checkin", "checkin:thm-3", "Theorem 3, order 2, one round", "any", ("epsilon0", "n_users", "checkin_rate"),
        "divergence", having(order=2)),
    Row("checkin", "checkin:shuffled", "Shuffled check-in", "any",
        ("epsilon0", "n_users", "checkin_rate", "rounds", "delta"), recorded="shuffled"),
    Row("checkin", "checkin:distributed", "Distributed, Theorem 4", "sums", _SUMS, recorded="distributed-theorem"),
    Row("checkin", "checkin:distributed", "Distributed, privacy losses", "sums", _SUMS, recorded="distributed"),
)  # fmt: skip
_CLOAK = (
    Row("cloak", "cloak:own-1", "Two users in shares", "shares", ("n_messages", "log2_modulus"), "distance", _shares),
    Row("cloak", "cloak:own-2", "Two users in shares", "shares", ("n_messages", "log2_modulus", "epsilon"), "delta",
        _shares),
    Row("cloak", "cloak:own-3", "All users in shares", "shares", ("log2_modulus", "n_messages", "n_users"), "distance",
        _shares, "shares"),
    Row("cloak", "cloak:best-1", "Shares among all users", "shares", ("n_users", "delta", "log2_modulus"), "messages",
        _security),
    Row("cloak", "cloak:thm-2", "Rule T2, error 1", "shares", _RULE, "bits", lambda named: named | {"error": 1}),
    Row("cloak", "cloak:thm-1", "Rule T1", "shares", _RULE, "bits"),
    Row("cloak", "cloak:thm-1", "Rule T1", "shares", _RULE, "noise_bound"),
)  # fmt: skip
ROWS: tuple[Row, ...] = (*_BLANKET, *_FLAME, *_PARTICIPATION, *_CHECKIN, *_CLOAK)


Inputs = Mapping[str, Any]

# The grid of the page without Python in it: enough to see every slope, small enough to send along.
AXES: dict[str, tuple[float, ...]] = {
    "epsilon0": (0.1, 0.2, 0.5, 1, 2, 3, 4, 6, 8),
    "n_users": (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000),
    "delta": (1e-12, 1e-9, 1e-6, 1e-4, 1e-2),
    "epsilon": (0.1, 0.25, 0.5, 1),
    "n_buckets": (2, 10, 100, 1000),
    "kept": (10, 157),
    "padded": (333, 10_000),
    "dimension": (7850, 100_000),
    "noise_std": (0.5, 1, 2, 4),
    "rounds": (1, 100, 1000, 10_000),
    "participation_rate": (0.01, 0.1, 1),
    "record_rate": (0.01, 0.1, 1),
    "n_records": (1, 2, 20),
    "checkin_rate": (0.01, 0.1, 1),
    "n_messages": (2, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    "log2_modulus": (8, 16, 24, 32, 40, 53, 64),
}
# What an input is called, and its symbol.
CALLED: dict[str, tuple[str, str]] = {
    "n_users": ("Users", "n"),
    "epsilon0": ("Local budget", "ε₀"),
    "epsilon": ("Budget", "ε"),
    "delta": ("Failure probability", "δ"),
    "n_buckets": ("Buckets of k-ary response", "k"),
    "kept": ("Coordinates that a user reports", "k"),
    "padded": ("Messages of a padded coordinate", "nₚ"),
    "rounds": ("Rounds", "T"),
    "noise_std": ("Noise, in clipping norms", "σ"),
    "participation_rate": ("Chance that a client joins", "p"),
    "record_rate": ("Chance that its record is drawn", "q"),
    "checkin_rate": ("Chance to check in", "γ"),
    "n_records": ("Records of the client", "L"),
    "dimension": ("Coordinates of a vector", "d"),
    "n_messages": ("Shares of a user", "m"),
    "log2_modulus": ("Bits of the modulus", "log₂ N"),
    "modulus": ("Modulus", "N"),
}


def answers(given: Inputs) -> dict[str, dict[str, Any]]:
    """Answer or refusal of every row, by its key.

    Parameters
    ----------
    given : mapping
        A number, or its text, for every name in :data:`AXES`; ``epsilon`` is a target.

    Raises
    ------
    DomainError
        If an input lies outside its domain whatever the row.

    Examples
    --------
    >>> found = answers({name: axis[0] for name, axis in AXES.items()} | {
    ...     "epsilon0": 1, "n_users": 1e4, "delta": 1e-6, "log2_modulus": 32})
    >>> round(found["blanket-lem-5-1-kary-mass"]["value"], 12), found["cloak-best-1-shares-messages"]["value"]
    (0.53788284274, 9)
    """
    inputs = read(**given)
    return {row.key: reply(row, inputs) for row in ROWS}


def reply(row: Row, inputs: Inputs) -> dict[str, Any]:
    """The answer of a row to inputs of its domains, or its refusal."""
    try:
        if row.recorded:
            found = certified(row.recorded, row.inputs(inputs))
            return found | {
                "at": ", ".join(f"{CALLED[name][1]} = {_short(value)}" for name, value in found["at"].items())
            }
        if row.statement == "blanket:thm-3.1" and row.answers == "epsilon":
            return _inverse(inputs)
        named = row.inputs(inputs)
        found = answer(row.statement, named)
        words = " ".join(f"{name}={value}" for name, value in named.items())
        command = f"flamelib evaluate {row.statement} {words}"
        value = found["value"][row.answers] if isinstance(found["value"], dict) else found["value"]
        return {"value": value, "gives": found["gives"], "source": found["source"], "command": command}
    except DomainError as refusal:
        return {"refused": sentence(refusal)}


def _short(value: float) -> str:
    """A number of a grid as a reader writes it: powers of two from 2^16 on as such."""
    return (
        f"2^{value.bit_length() - 1}"
        if isinstance(value, int) and value >= 2**16 and value & -value == value
        else f"{value:g}"
    )


def _inverse(inputs: Inputs) -> dict[str, Any]:
    mass = closed_form.blanket_mass(KaryProfile(inputs["epsilon0"], inputs["n_buckets"]))
    called = (inputs["n_users"], inputs["n_buckets"], mass, inputs["delta"])
    words = ", ".join(map(str, called))
    code = f"from flamelib.accounting.shuffling.closed_form import histogram_epsilon; print(histogram_epsilon({words}))"
    value = plain(closed_form.histogram_epsilon(*called))
    source = statement("blanket:thm-3.1").source
    return {"value": value, "gives": "upper", "source": source, "command": f'python -c "{code}"'}


def shown(row: Row, inputs: Inputs, exactly: tuple[str, ...]) -> float | str | None:
    """The bare value of a row; ``None`` where it refuses, or where one of these inputs is not on its recorded grid."""
    if row.recorded:
        try:
            named = row.inputs(inputs)
            found = certified(row.recorded, named)
            told = found["value"] if all(found["at"].get(name) == named.get(name) for name in exactly) else None
        except DomainError:
            return None
    else:
        told = reply(row, inputs).get("value")
    value: float | str | None = told
    return value


def grid() -> dict[str, list[float | str | None]]:
    """Value of every row over the axes it needs, the last of them running fastest."""
    return {row.key: list(_along(row)) for row in ROWS}


def _along(row: Row) -> Iterator[float | str | None]:
    for point in product(*(AXES[name] for name in row.needs)):
        inputs = read(**dict(zip(row.needs, point, strict=True)))
        yield shown(row, inputs, tuple(row.inputs(inputs)))


def is_whole(name: str) -> bool:
    """Whether a slider of this parameter moves by whole numbers."""
    return VOCABULARY[name].whole or name in ("kept", "log2_modulus")


def layout() -> dict[str, Any]:
    """Parts, rows and axes, for the page."""
    fields = ("key", "part", "label", "about", "answers", "needs", "recorded")
    rows = [{name: getattr(row, name) for name in fields} for row in ROWS]
    return {"parts": PARTS, "rows": rows, "axes": AXES, "whole": [name for name in AXES if is_whole(name)]}
