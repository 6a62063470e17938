"""The ServerApp: it carries boxes that it cannot open, adds estimates to the model, and refuses a round beyond the budget.

Clients that fail, or are late, end the round: their coins and noise are part of what is accounted for.
"""

import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp
from numpy.typing import NDArray

from flamebook.flower.client import arrays_of, dict_of, held
from flamebook.flower.parties import ANALYZER, SHUFFLER, Round, Settings, parties
from flamelib.core.vocabulary import DomainError

PATIENCE_S = 600.0


@dataclass(frozen=True)
class Told:
    """One round: accuracy on the clients' own test records, epsilon so far, bytes on the wire, seconds."""

    accuracy: float
    epsilon: float
    bytes_up: int
    bytes_down: int
    seconds: float


def of_run(context: Context) -> Settings:
    """The settings of a run, from the app's configuration."""
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in context.run_config.items() if name in known})  # type: ignore[arg-type]


def server(settings: Settings | None = None, result: Path | None = None) -> ServerApp:
    """A ServerApp with these settings, or with those of the run's configuration; the result is written as JSON."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        its = settings or of_run(context)
        told = list(rounds(grid, its))
        target = result or Path(str(context.run_config.get("result", "flower.json")))
        part = target.with_suffix(".part")
        part.write_text(json.dumps({"settings": asdict(its), "rounds": [asdict(one) for one in told]}, indent=1), encoding="utf-8")
        part.replace(target)

    return app


def rounds(grid: Grid, settings: Settings) -> Iterable[Told]:
    """Rounds, as many as the budget pays for."""
    nodes = _nodes(grid, settings)
    users = held(settings.dataset, settings.clients)
    first = np.random.default_rng(np.random.SeedSequence(max(settings.seed, 0), spawn_key=(2**32 - 1,)))
    model = users.model.initial(first)
    for number in range(settings.rounds):
        epsilon = parties(settings, len(model)).spent(number + 1).epsilon
        if epsilon > settings.budget:
            print(f"round {number + 1} is refused: epsilon would be {epsilon:.4g}, above {settings.budget:g}")
            return
        started = time.perf_counter()
        estimate, up, down = _round(grid, settings, nodes, number, model)
        model = model + estimate
        accuracy = users.accuracy(model)
        yield Told(accuracy, epsilon, up, down, time.perf_counter() - started)


@dataclass(frozen=True)
class _Nodes:
    clients: list[int]
    shuffler: int
    analyzer: int
    keys: dict[str, bytes]


def _nodes(grid: Grid, settings: Settings) -> _Nodes:
    """Who is who, once all are there."""
    until = time.monotonic() + PATIENCE_S
    wanted = settings.clients + 2
    while len(found := list(grid.get_node_ids())) < wanted:
        if time.monotonic() > until:
            raise DomainError(f"clients must be {settings.clients} nodes beside shuffler and analyzer, {len(found)} came")
        time.sleep(0.5)
    answers = _ask(grid, [(node, "query.role", RecordDict()) for node in found])
    told = {node: answer.content.config_records["told"] for node, answer in answers.items()}
    places = {int(one["place"]): node for node, one in told.items() if one["role"] == "client"}  # type: ignore[arg-type]
    named = {str(one["role"]): node for node, one in told.items() if one["role"] != "client"}
    if sorted(places) != list(range(settings.clients)) or set(named) != {SHUFFLER, ANALYZER}:
        raise DomainError(f"clients must have the places 0 to {settings.clients - 1}, beside one shuffler, one analyzer")
    keys = {name: bytes(told[node]["key"]) for name, node in named.items()}  # type: ignore[arg-type]
    return _Nodes([places[place] for place in sorted(places)], named[SHUFFLER], named[ANALYZER], keys)


def _round(
    grid: Grid, settings: Settings, nodes: _Nodes, number: int, model: NDArray[np.float64]
) -> tuple[NDArray[np.float64], int, int]:
    this = Round(number, secrets.token_bytes(16), nodes.keys[SHUFFLER], nodes.keys[ANALYZER])

    def content(**arrays: NDArray[Any]) -> RecordDict:
        records = {"settings": ConfigRecord(asdict(settings)), "round": ConfigRecord(asdict(this))}
        return RecordDict({"arrays": ArrayRecord(dict_of(arrays)), **records})

    sent = content(model=model)
    reports = _ask(grid, [(node, "train.client", sent) for node in nodes.clients])
    boxes = {str(place): arrays_of(reports[node])["box"] for place, node in enumerate(nodes.clients)}
    [bags] = _ask(grid, [(nodes.shuffler, "train.shuffler", content(**boxes))]).values()
    [found] = _ask(grid, [(nodes.analyzer, "train.analyzer", content(box=arrays_of(bags)["box"]))]).values()
    up = sum(one.size for one in boxes.values())
    return arrays_of(found)["estimate"], up, model.nbytes * len(nodes.clients)


def _ask(grid: Grid, questions: Iterable[tuple[int, str, RecordDict]]) -> dict[int, Message]:
    """Everybody's answer, by node; one that is missing or failed ends the run."""
    messages = [Message(content, dst_node_id=node, message_type=kind) for node, kind, content in questions]
    answers = {one.metadata.src_node_id: one for one in grid.send_and_receive(messages, timeout=PATIENCE_S)}
    failed = [str(one.error) for one in answers.values() if one.has_error()]
    if failed or len(answers) < len(messages):
        raise RuntimeError(f"{len(messages) - len(answers)} nodes did not answer, {len(failed)} failed: {failed[:1]}")
    return answers


app = server()
