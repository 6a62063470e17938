"""The ServerApp: it carries boxes that it cannot open, adds estimates to the model, refuses rounds beyond the budget.

A round adds up the clients' updates and the accuracy of the model that they were sent.  The accuracy of the last model
is added up in a round of its own.  A node that fails or is late ends the run, because the account counts on the coins
and the noise of every node.
"""

import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp
from numpy.typing import NDArray

from flamebook.flower.client import arrays_of, record
from flamebook.flower.legs import Arrays
from flamebook.flower.parties import ANALYZER, ROUND, SHUFFLER, TALLY, Round, Settings
from flamelib.core.arrays import Reals

PATIENCE_S = 300.0


def of_run(context: Context) -> Settings:
    """The settings of a run, from the app's configuration."""
    names = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in context.run_config.items() if name in names})  # type: ignore[arg-type]


def server(settings: Settings | None = None, result: Path | None = None) -> ServerApp:
    """A ServerApp with these settings, or with those of the run's configuration; the result is written as JSON."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        its = settings or of_run(context)
        target = result or Path(str(context.run_config["result"]))
        part = target.with_suffix(".part")
        part.write_text(json.dumps(run(grid, its)), encoding="utf-8")
        part.replace(target)

    return app


def run(grid: Grid, settings: Settings) -> dict[str, Any]:
    """Run all rounds that the budget pays for: the summed accuracies of all models, the models, bytes of each leg."""
    nodes = _nodes(grid, settings)
    # The first child of the seed draws it, as in the book's loop.
    first = np.random.SeedSequence(settings.seed, spawn_key=(0,)) if settings.seed >= 0 else np.random.SeedSequence()
    model = settings.model.initial(np.random.default_rng(first))
    models, accuracy, sizes, paid = [model], list[float](), dict[str, int](), settings.paid
    for number in range(paid):
        (*estimate, right), sizes = _sum(grid, settings, nodes, ROUND, number, model)
        model = model + np.array(estimate)
        models.append(model)
        accuracy.append(float(right))
    if paid:
        accuracy.append(float(_sum(grid, settings, nodes, TALLY, paid, model)[0][0]))
    return {"accuracy": accuracy, "models": [one.tolist() for one in models], "bytes": sizes}


@dataclass(frozen=True)
class _Nodes:
    clients: list[int]
    shuffler: int
    analyzer: int
    keys: dict[str, bytes]


def _nodes(grid: Grid, settings: Settings) -> _Nodes:
    """Who is who, once all are there."""
    until = time.monotonic() + PATIENCE_S
    wanted = settings.n_users + 2
    while len(found := list(grid.get_node_ids())) < wanted:
        if time.monotonic() > until:
            raise RuntimeError(f"{wanted} nodes are needed, a shuffler and an analyzer among them; {len(found)} came")
        time.sleep(0.2)
    answers = _ask(grid, [(node, "query.role", RecordDict()) for node in found])
    told: dict[int, Any] = {node: answer.content.config_records["told"] for node, answer in answers.items()}
    places = {one["place"]: node for node, one in told.items() if one["role"] == "client"}
    others = {one["role"]: node for node, one in told.items() if one["role"] != "client"}
    if sorted(places) != list(range(settings.n_users)) or set(others) != {SHUFFLER, ANALYZER}:
        raise RuntimeError(f"clients must have the places 0 to {settings.n_users - 1}, beside shuffler and analyzer")
    keys = {name: bytes(told[node]["key"]) for name, node in others.items()}
    return _Nodes([places[place] for place in sorted(places)], others[SHUFFLER], others[ANALYZER], keys)


def _sum(
    grid: Grid, settings: Settings, nodes: _Nodes, job: str, number: int, model: Reals
) -> tuple[Reals, dict[str, int]]:
    """One mean, through clients, shuffler and analyzer, and the bytes of each leg."""
    this = Round(number, job, secrets.token_bytes(16), nodes.keys[SHUFFLER], nodes.keys[ANALYZER])

    def content(arrays: Arrays) -> RecordDict:
        known = {"settings": ConfigRecord(asdict(settings)), "round": ConfigRecord(asdict(this))}
        return RecordDict({"arrays": record(arrays), **known})

    def told(node: int, kind: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
        [answer] = _ask(grid, [(node, f"train.{kind}", content(arrays))]).values()
        return arrays_of(answer)

    reports = _ask(grid, [(node, "train.client", content({"model": model})) for node in nodes.clients])
    boxes = {str(place): arrays_of(reports[node])["box"] for place, node in enumerate(nodes.clients)}
    bags = told(nodes.shuffler, SHUFFLER, boxes)
    estimate = told(nodes.analyzer, ANALYZER, bags)["estimate"]
    sizes = {"model": model.nbytes, "report": boxes["0"].nbytes, "bags": bags["box"].nbytes}
    return estimate, sizes


def _ask(grid: Grid, questions: Iterable[tuple[int, str, RecordDict]]) -> dict[int, Message]:
    """Everybody's answer, by node; one that is missing or failed ends the run."""
    messages = [Message(content, dst_node_id=node, message_type=kind) for node, kind, content in questions]
    answers = {one.metadata.src_node_id: one for one in grid.send_and_receive(messages, timeout=PATIENCE_S)}
    failed = [str(one.error) for one in answers.values() if one.has_error()]
    if failed or len(answers) < len(messages):
        raise RuntimeError(f"{len(messages) - len(answers)} nodes did not answer, {len(failed)} failed: {failed[:1]}")
    return answers


app = server()
