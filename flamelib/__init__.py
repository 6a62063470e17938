"""flamelib: differential privacy in the shuffle model and in federated learning, never too small.

A protocol is a record, and there are four questions to it: :func:`account` (what does it guarantee?), :func:`bounds`
(between which numbers lies the truth?), :func:`calibrate` (which parameter keeps my budget?) and :func:`run`.
:func:`compare` asks every mechanism at once, :func:`audit` puts one on trial, :func:`evaluate` answers with any
statement of the five documents by its id.

Importing this loads the standard library alone; numpy and scipy come with the first answer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flamelib.core.guarantees import Adjacency, ApproxDP
    from flamelib.core.profiles import AnyProfile as AnyRandomizer
    from flamelib.core.vocabulary import DomainError
    from flamelib.front.asking import audit, compare, evaluate
    from flamelib.front.checkin import Checkin, Summed
    from flamelib.front.cloak import Cloak
    from flamelib.front.flame import FlameDouble, FlameSimple, FlameTopk
    from flamelib.front.participation import Participation
    from flamelib.front.questions import account, bounds, calibrate, run
    from flamelib.front.results import Bounds, Calibrated, Guarantee
    from flamelib.front.shuffled import Shuffled
    from flamelib.mechanisms.integers.noise import PolyaShare
    from flamelib.mechanisms.randomizers import GaussianNoise, KaryResponse, LaplaceNoise
    from flamelib.mechanisms.tables import TableRandomizer
    from flamelib.uses.client_ledger import ClientLedger

# Public name to the module that has it, and its name there where that is another.
_HOMES = {
    "Adjacency": "core.guarantees",
    "AnyRandomizer": "core.profiles:AnyProfile",
    "ApproxDP": "core.guarantees",
    "Bounds": "front.results",
    "Calibrated": "front.results",
    "Checkin": "front.checkin",
    "ClientLedger": "uses.client_ledger",
    "Cloak": "front.cloak",
    "DomainError": "core.vocabulary",
    "FlameDouble": "front.flame",
    "FlameSimple": "front.flame",
    "FlameTopk": "front.flame",
    "GaussianNoise": "mechanisms.randomizers",
    "Guarantee": "front.results",
    "KaryResponse": "mechanisms.randomizers",
    "LaplaceNoise": "mechanisms.randomizers",
    "Participation": "front.participation",
    "PolyaShare": "mechanisms.integers.noise",
    "Shuffled": "front.shuffled",
    "Summed": "front.checkin",
    "TableRandomizer": "mechanisms.tables",
    "account": "front.questions",
    "audit": "front.asking",
    "bounds": "front.questions",
    "calibrate": "front.questions",
    "compare": "front.asking",
    "evaluate": "front.asking",
    "run": "front.questions",
}

__all__ = [
    "Adjacency",
    "AnyRandomizer",
    "ApproxDP",
    "Bounds",
    "Calibrated",
    "Checkin",
    "ClientLedger",
    "Cloak",
    "DomainError",
    "FlameDouble",
    "FlameSimple",
    "FlameTopk",
    "GaussianNoise",
    "Guarantee",
    "KaryResponse",
    "LaplaceNoise",
    "Participation",
    "PolyaShare",
    "Shuffled",
    "Summed",
    "TableRandomizer",
    "account",
    "audit",
    "bounds",
    "calibrate",
    "compare",
    "evaluate",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'flamelib' has no attribute {name!r}")
    module, _, other = _HOMES[name].partition(":")
    found = getattr(import_module(f"flamelib.{module}"), other or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
