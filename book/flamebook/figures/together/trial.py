"""Deployments on trial: descriptions answered with numbers, or with the question that they leave open."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from flamebook.places import DATA
from flamebook.statements import AtMost, Finding, at_least, at_most, compared, either, every, percent, silent
from flamelib import evaluate
from flamelib.accounting.checkin.surveys import rappor_sums
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.core.vocabulary import DomainError
from flamelib.uses.described import FIELDS, Answered, Unstated, answered, once, unquoted

CORPUS = DATA / "deployments"
# Internet draft draft-wang-ppm-differential-privacy: its central epsilon for the local budget of a vector, two bits.
DRAFT_USERS, DRAFT_DELTA, DRAFT = 100_000, 1e-9, {10.0: 0.317, 13.0: 0.906, 14.0: 1.528}
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

    ``given`` stands above the record's own fields; ``said`` is an epsilon that is published, ``where`` nothing can be
    computed the reason, in words.
    """

    record: str
    what: str
    public: str
    given: Mapping[str, Any] = field(default_factory=dict)
    said: float | None = None


def _rho(rho: float, unit: str, delta: float = 1e-10) -> dict[str, Any]:
    return {"mechanism": "zcdp", "rho": rho, "delta": delta, "unit": unit, "rounds": 1, "trust": "curator"}


def _mu(mu: float) -> dict[str, Any]:
    return {"mechanism": "gaussian", "noise_std": 1 / mu}


SUMS = {"mechanism": "rappor", "epsilon0": 8, "trust": "aggregator", "rounds": 1, "delta": 1e-6}
MU = 0.376  # Meta's budget of Gaussian differential privacy, given to so many digits
MU_ROUNDED, META_DELTA = 0.0005, 1e-5
PERSON, HOME, DECENNIAL = "a person's record", "a housing unit's record", "census_demographic_and_housing"
CASES = (
    Case("census_redistricting_data", "2020 Census, redistricting, persons", "rho 2.56", _rho(2.56, PERSON), 17.14),
    Case("census_redistricting_data", "2020 Census, redistricting, homes", "rho 0.07", _rho(0.07, HOME), 2.47),
    Case(DECENNIAL, "2020 Census, demographics, persons", "rho 4.96", _rho(4.96, PERSON), 26.34),
    Case(DECENNIAL, "2020 Census, demographics, homes", "rho 7.70", _rho(7.70, HOME), 34.33),
    Case("user_url_privacy", "Meta, URLs shared", "rho 0.0728", said=1.453),
    Case("user_url_privacy", "Meta, the same", f"Gaussian budget mu {MU}", _mu(MU), 1.453),
    Case("spanish_language_next_word", "Google, next word in Spanish", "rho 0.81, one model", {"rounds": 1}),
    Case("wikimedia_current_usage_data", "Wikimedia, page views of a day", "rho 0.015 a day", {"rounds": 1}),
    Case("telemetry_collection_windows", "Microsoft, telemetry, one collection", "local 1.672", {"rounds": 1}, 1.672),
    Case("telemetry_collection_windows", "Microsoft, telemetry, a day of them", "every 6 hours", {"rounds": 4}),
    Case("apple_popular_emojis", "Apple, emoji, one record", "local 4", {"rounds": 1}, 4.0),
    Case("healthkit", "Apple, health data types, one record", "local 2", {"rounds": 1}, 2.0),
    Case("lookup_hints", "Apple, lookup hints, one record", "local 8", {"rounds": 1}, 8.0),
    Case("recurve_energy_dp", "Recurve, energy use", "6.8, sampling 12.4 %", said=0.843),
    Case("covid19_notifications", "Exposure Notifications", "local 8, sums of bits", SUMS),
    Case("apple_iconic_scenes_photo_selections_2023", "Apple, iconic scenes", "epsilon 1, sums of bits"),
    Case("uber", "Uber, FLEX", "epsilon 0.01, delta of n"),
)
PUBLISHED = 0.1487  # by a script after Koskela, Heikkilä, Honkela 2023 and others: see the chapter on check-in
SURVEY = {"mechanism": "kary", "n_buckets": 2, "epsilon0": 1.0, "unit": "one answer", "rounds": 1}
SURVEY |= {"adjacency": "replace-one", "delta": 1e-6}
ASKED = 1000  # people of the smallest case
SURVEYS = (
    ("everybody sees who sent which answer", {"trust": "nobody", "delta": 0.0}),
    (f"a shuffler mixes the answers of {ASKED:,} people", {"trust": "shuffler", "n_users": ASKED}),
    ("a shuffler mixes the answers, of how many people is not said", {"trust": "shuffler"}),
)
# Those who are counted in a batch of the exposure notifications are not known; these are possibilities.
BATCHES = (1_000, 10_000, 100_000, 1_000_000)
BEFORE, SHARE = 6.8, 0.124  # of Recurve's energy data: the budgets of all queries, and the share of customers sampled


@cache
def record(name: str) -> Mapping[str, Any]:
    """A record of the registry as it is published."""
    found: dict[str, Any] = content((CORPUS / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def survey_rows() -> Iterator[tuple[Any, ...]]:
    """One survey described three times: both ends, or the question that the description leaves open."""
    for words, given in SURVEYS:
        try:
            found = answered(SURVEY | given)
        except Unstated as open_end:
            yield words, "", "", " ".join(open_end.questions.values())
        else:
            yield words, found.lower, found.upper, "determined"


def survey_words() -> dict[str, str]:
    """The local budget of the smallest case."""
    return {"survey_budget": f"{SURVEY['epsilon0']:g}"}


def draft_rows(budgets: Sequence[float], n_users: int, delta: float) -> list[tuple[Any, ...]]:
    """For each budget of a vector that of a bit, what the draft prints, both certified ends, odds and the judgement."""
    rows = []
    for budget in budgets:
        lower, upper = (float(rappor_sums(budget, n_users, side, delta=delta)) for side in ("lower", "upper"))
        printed = DRAFT.get(budget) if (n_users, delta) == (DRAFT_USERS, DRAFT_DELTA) else None
        odds = AtMost(math.exp(upper))
        rows.append((f"{budget / 2:g}", printed or "", lower, upper, odds, judged(printed, lower, upper)))
    return rows


def draft_holds(rows: Sequence[Sequence[Any]]) -> Finding:
    """Whether every number that the draft prints is enough."""
    printed = [(row[1], row[3]) for row in rows if row[1]]
    return every(*(compared(said, ">=", upper) for said, upper in printed)) if printed else silent("nothing is printed")


def judged(said: float | None, lower: float | None, upper: float) -> str:
    """What a published epsilon is worth beside both ends, in words; silent without one."""
    if said is None:
        return "nothing to compare"
    if said >= upper:
        spare = said / upper
        return "holds" if spare < 1.005 else f"holds, {spare:.2f} times what suffices"
    if lower is None or said >= lower:
        return "between both bounds"
    return "below the lower bound for this budget"


def case_rows() -> Iterator[tuple[Any, ...]]:
    """Every case with its year: what is public, what is said, both ends, the judgement or the question."""
    for one in CASES:
        told = record(one.record)["deployment"]["basic"]
        start = (f"{one.what} ({str(told['publication_date'])[:4]})", one.public)
        said = "" if one.said is None else one.said
        if one.record == "recurve_energy_dp":
            upper = sampled_epsilon(BEFORE, SHARE)
            yield (*start, said, "", upper, "not supported; the registry corrects it")
            continue
        try:
            found = answered(fields_of(record(one.record)) | dict(one.given))
        except Unstated as open_end:
            yield (*start, said, "", "", f"cannot be computed: {', '.join(open_end.questions)} unstated")
            continue
        yield (*start, said, "" if found.lower is None else found.lower, found.upper, _verdict(one, found))


def case_words() -> dict[str, str]:
    """What Meta's mu says: the rho that it has, and the epsilons of all numbers that round to it."""
    least, most = (gaussian_mechanism(1.0, 1 / mu, None, META_DELTA) for mu in (MU - MU_ROUNDED, MU + MU_ROUNDED))
    return {"rho_of_mu": f"{MU**2 / 2:.4f}", "mu_least": at_least(least), "mu_most": at_most(most)}


def _verdict(one: Case, found: Answered) -> str:
    if found.trust == "nobody":
        if one.record == "telemetry_collection_windows":
            return "certain for one collection" if one.given["rounds"] == 1 else "four collections, whose budgets add"
        return "certain for one record, number of records unstated"
    return judged(one.said, found.lower, found.upper)


def batch_rows() -> Iterator[tuple[Any, ...]]:
    """What the answer for the exposure notifications would be, if a batch held so many people."""
    for n_users in BATCHES:
        found = answered(fields_of(record("covid19_notifications")) | SUMS | {"n_users": n_users})
        yield n_users, found.lower, found.upper, AtMost(found.odds)


def shrinks(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether the upper end falls from row to row."""
    ends = [row[2] for row in rows]
    return ends == sorted(ends, reverse=True)


def corpus_rows() -> list[tuple[Any, ...]]:
    """All records: those with two ends first, then what is repeated as it is stated, then questions."""
    rows: list[tuple[Any, ...]] = []
    for path in sorted(CORPUS.glob("*.yaml")):
        about = record(path.stem)["deployment"]["basic"]
        name = f"{about['name']} ({about['data_curators'][0]}, {str(about['publication_date'])[:4]})"
        try:
            found = answered(fields_of(record(path.stem)))
        except Unstated as open_end:
            asked = " ".join(f"{named}: {words}" for named, words in open_end.questions.items())
            rows.append((3, name, "", "", "", "", asked))
            continue
        kind = 2 if found.basis == "stated" else 1 if found.trust == "nobody" else 0
        ends = ("" if found.lower is None else found.lower, found.upper, f"{found.delta:g}")
        rows.append((kind, name, found.unit, *ends, KINDS[kind]))
    return [row[1:] for row in sorted(rows, key=lambda row: (row[0], row[1]))]


KINDS = ("computed from rho", "the local budget of one record", "a final budget, as stated")


def corpus_words(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """How many records there are of each kind."""
    counts = [sum(row[-1] == kind for row in rows) for kind in KINDS]
    names = ("computed", "local", "stated")
    told = dict(zip(names, map(str, counts), strict=True))
    return told | {"records": str(len(rows)), "asked": str(len(rows) - sum(counts)), "answered": str(sum(counts))}


def draft_words(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """The judgement on the numbers that the draft prints, and how far both ends are apart."""
    spare = max((row[1] / row[3] for row in rows if row[1]), default=math.nan)
    apart = max((row[3] / row[2] - 1 for row in rows if row[2]), default=0.0)
    judgement = either(
        draft_holds(rows),
        "the numbers of the draft are safe for every data set. They are larger than they need to be: the one that is "
        f"furthest off is {spare:.2f} times what suffices. This is no fault of the mechanism, which gives more privacy "
        "than the draft says.",
        "not every number of the draft is enough for every data set.",
        "the draft prints no number for these parameters, so there is nothing to judge.",
    )
    return {"draft_judgement": judgement, "draft_apart": percent(apart, up=True)}


def field_rows() -> list[tuple[str, str]]:
    """The schema of a description."""
    return list(FIELDS.items())


def successor_rows() -> Iterator[tuple[Any, ...]]:
    """What later work says, where it can be computed here, between both ends."""
    crowd = {"epsilon0": 2, "n_users": 100_000, "delta": 1e-8}
    ends = (evaluate("shuffle:any", side=side, **crowd).value for side in ("lower", "upper"))
    yield "blanket", "clones: any randomizer of budget 2", evaluate("clones:2021", **crowd).value, *ends
    rounds = {"epsilon0": 1, "n_buckets": 2, "n_users": 100_000, "delta": 1e-6, "checkin_rate": 1, "rounds": 100}
    ends = (evaluate("checkin:shuffled", route="kary", side=side, **rounds).value for side in ("lower", "upper"))
    yield "check-in", "a published script: 100 rounds of binary response", PUBLISHED, *ends
    shares = {"n_users": 10_000, "modulus": 2**32}
    enough = next(m for m in range(3, 99) if evaluate("cloak:own-3", n_messages=m, **shares).value <= 2.0**-40)
    theirs = evaluate("cloak:best-1", n_users=10_000, security_bits=40, log2_modulus=32).value
    yield "cloak", "shares of a 32-bit number among 10,000 users", theirs, "", enough


def successor_words(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """How far both ends of the first row, of any randomizer, are apart."""
    *_, least, most = rows[0]
    return {"clones_apart": percent(most / least - 1, up=True)}
