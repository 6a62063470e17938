"""Deployments on trial: descriptions answered with numbers, or with the question that they leave open."""

from collections.abc import Mapping
from typing import Any

import yaml

from flamebook.places import DATA
from flamelib.core.vocabulary import DomainError

CORPUS = DATA / "deployments"
TRUSTED = {"Local": "nobody", "Shuffle": "shuffler", "Central": "curator"}


def described(text: str) -> dict[str, Any]:
    """The fields of a description in YAML, of which a record of the registry is one."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DomainError(f"file must be a description in YAML: {error}") from None
    if not isinstance(found, Mapping):
        raise DomainError(f"a description must be names with values, got {type(found).__name__}")
    return fields_of(found) if "deployment" in found else {str(field): value for field, value in found.items()}


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
    fields = {"name": part("basic").get("name"), "unit": str(part("privacy_loss").get("privacy_unit") or "").strip()}
    fields |= {"trust": trust}
    if trust == "curator":
        rho, epsilon = budget.get("rho"), budget.get("epsilon")
        fields |= {"mechanism": "stated" if rho is None else "zcdp", "rho": rho, "epsilon": epsilon, "delta": delta}
        fields |= {"rounds": 1} if model.get("release_type") == "One release" else {}
    elif trust:
        fields |= {"mechanism": "any", "epsilon0": None if delta else budget.get("epsilon")}
    return fields
