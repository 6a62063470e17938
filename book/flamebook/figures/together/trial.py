"""Deployments on trial: how descriptions and records of the registry are read, and the cases of the page."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from flamebook.places import DATA
from flamelib.core.vocabulary import DomainError, once
from flamelib.uses.deployment_card import unquoted

CORPUS = DATA / "deployments"
TRUSTED = {"Local": "nobody", "Shuffle": "shuffler", "Central": "curator"}


def described(text: str) -> dict[str, Any]:
    """The fields of a description in YAML, of which a record of the registry is one."""
    found = content(text)
    if not isinstance(found, Mapping):
        raise DomainError(f"a description must be names with values, got {type(found).__name__}")
    return fields_of(found) if "deployment" in found else {str(field): value for field, value in found.items()}


class _Reader(yaml.SafeLoader):
    """YAML as every reader understands it: numbers as they are written, no key twice, no reference."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise DomainError("file must be a description without references such as *name")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise DomainError("file must be a description whose names are words")
        found: dict[Any, Any] = once((key.value, self.construct_object(value, deep=True)) for key, value in node.value)
        return found


def _word(loader: _Reader, node: yaml.ScalarNode) -> Any:
    return unquoted(node.value) if node.style is None else node.value


_Reader.yaml_implicit_resolvers = {}
_Reader.add_constructor("tag:yaml.org,2002:str", _word)
_Reader.add_constructor("tag:yaml.org,2002:map", _Reader.construct_mapping)


def content(text: str) -> Any:
    """What a text in YAML holds, in the one reading of descriptions."""
    try:
        return yaml.load(text, Loader=_Reader)
    except yaml.YAMLError as error:
        raise DomainError(f"file must be a description in YAML: {error}") from None
    except RecursionError:
        raise DomainError("file must be a description in YAML, got lists within lists") from None


def fields_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record of the registry, looked for where its schema has them.

    A record of the local model is read as reports of any randomizer with the budget that it states; one of the central
    model as what it states, rho if it has one, in one round where it says that there is one release.  Where the model
    is neither, who is trusted stays open; so does whose the budget is if a local one comes with a delta.
    """

    def part(*names: str) -> Mapping[str, Any]:
        found: Any = record["deployment"]
        for name in names:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    budget, model = part("privacy_loss", "privacy_parameters"), part("deployment_model")
    trust, delta = TRUSTED.get(str(model.get("model_name"))), budget.get("delta")
    fields = {"name": part("basic").get("name"), "unit": part("privacy_loss").get("privacy_unit")}
    fields |= {"trust": trust}
    if trust == "curator":
        rho, epsilon = budget.get("rho"), budget.get("epsilon")
        fields |= {"mechanism": "stated" if rho is None else "zcdp", "rho": rho, "epsilon": epsilon, "delta": delta}
        fields |= {"rounds": 1} if model.get("release_type") == "One release" else {}
    elif trust:
        pure = delta is None or (str(delta).strip("0.") == "")
        fields |= {"mechanism": "any", "epsilon0": budget.get("epsilon") if pure else None}
    return fields


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the page: a record of the registry, what is taken from it in words, and the fields that say the same.

    ``given`` stands above the record's own fields; ``said`` is an epsilon that is published, and ``verdict`` what is
    certain where nobody is trusted.
    """

    record: str
    what: str
    public: str
    given: Mapping[str, Any] = field(default_factory=dict)
    said: float | None = None
    verdict: str = "certain for one record, number of records unstated"


def _rho(rho: float, unit: str) -> dict[str, Any]:
    return {"mechanism": "zcdp", "rho": rho, "delta": 1e-10, "unit": unit, "rounds": 1, "trust": "curator"}


SUMS = {"mechanism": "rappor", "epsilon0": 8, "trust": "aggregator", "rounds": 1, "delta": 1e-6}
MU = 0.376  # Meta's budget of Gaussian differential privacy, given to so many digits
WINDOWS, ONE_COLLECTION = "telemetry_collection_windows", "certain for one collection"
FOUR_COLLECTIONS = "four collections, whose budgets add"
PERSON, HOME, DECENNIAL = "a person's record", "a housing unit's record", "census_demographic_and_housing"
CASES = (
    Case("census_redistricting_data", "2020 Census, redistricting, persons", "rho 2.56", _rho(2.56, PERSON), 17.14),
    Case("census_redistricting_data", "2020 Census, redistricting, homes", "rho 0.07", _rho(0.07, HOME), 2.47),
    Case(DECENNIAL, "2020 Census, demographics, persons", "rho 4.96", _rho(4.96, PERSON), 26.34),
    Case(DECENNIAL, "2020 Census, demographics, homes", "rho 7.70", _rho(7.70, HOME), 34.33),
    Case("user_url_privacy", "Meta, URLs shared", "rho 0.0728", said=1.453),
    Case(
        "user_url_privacy",
        "Meta, the same",
        f"Gaussian budget mu {MU}",
        {"mechanism": "gaussian", "noise_std": 1 / MU},
        1.453,
    ),
    Case("spanish_language_next_word", "Google, next word in Spanish", "rho 0.81, one model", {"rounds": 1}),
    Case("wikimedia_current_usage_data", "Wikimedia, page views of a day", "rho 0.015 a day", {"rounds": 1}),
    Case(WINDOWS, "Microsoft, telemetry, one collection", "local 1.672", {"rounds": 1}, 1.672, ONE_COLLECTION),
    Case(WINDOWS, "Microsoft, telemetry, a day of them", "every 6 hours", {"rounds": 4}, verdict=FOUR_COLLECTIONS),
    Case("apple_popular_emojis", "Apple, emoji, one record", "local 4", {"rounds": 1}, 4.0),
    Case("healthkit", "Apple, health data types, one record", "local 2", {"rounds": 1}, 2.0),
    Case("lookup_hints", "Apple, lookup hints, one record", "local 8", {"rounds": 1}, 8.0),
    Case("recurve_energy_dp", "Recurve, energy use", "6.8, sampling 12.4 %", said=0.843),
    Case("covid19_notifications", "Exposure Notifications", "local 8, sums of bits", SUMS),
    Case("apple_iconic_scenes_photo_selections_2023", "Apple, iconic scenes", "epsilon 1, sums of bits"),
    Case("uber", "Uber, FLEX", "epsilon 0.01, delta of n"),
)


@cache
def record(name: str) -> Mapping[str, Any]:
    """A record of the registry as it is published."""
    found: dict[str, Any] = content((CORPUS / f"{name}.yaml").read_text(encoding="utf-8"))
    return found
