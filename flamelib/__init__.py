"""flamelib: differential privacy in the shuffle model and in federated learning, never too small.

A protocol is a record, and there are four questions to it: :func:`account` (what does it guarantee?), :func:`bounds`
(between which numbers lies the truth?), :func:`calibrate` (which parameter keeps my budget?) and :func:`run`.
:func:`compare` asks every mechanism at once, :func:`audit` puts one on trial, :func:`vet` a formula for the epsilon of
shuffled messages, :func:`evaluate` answers with any statement of the five documents by its id.

Importing this loads the standard library alone; numpy and scipy come with the first answer.
"""

from importlib import import_module

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
    "HadamardResponse": "mechanisms.supports",
    "Guarantee": "front.results",
    "KaryResponse": "mechanisms.randomizers",
    "LaplaceNoise": "mechanisms.randomizers",
    "LocalHashing": "mechanisms.supports",
    "OptimizedUnary": "mechanisms.supports",
    "Participation": "front.participation",
    "PolyaShare": "mechanisms.integers.noise",
    "Rappor": "mechanisms.supports",
    "Rounds": "front.rounds",
    "Shuffled": "front.shuffled",
    "SubsetSelection": "mechanisms.supports",
    "Summed": "front.checkin",
    "TableRandomizer": "mechanisms.tables",
    "account": "front.questions",
    "audit": "front.asking",
    "bounds": "front.questions",
    "calibrate": "front.questions",
    "compare": "front.asking",
    "evaluate": "front.asking",
    "run": "front.questions",
    "vet": "uses.vetting",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'flamelib' has no attribute {name!r}")
    module, _, other = _HOMES[name].partition(":")
    found = getattr(import_module(f"flamelib.{module}"), other or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
