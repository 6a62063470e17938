"""The ClientApp: what runs on every node, as a client, as the shuffler or as the analyzer.

A node's role is in its own settings (``role``, and ``place`` for a client); in a simulation the last two partitions are
shuffler and analyzer.  What a node received last is kept beside it if ``FLAMELIB_FLOWER_TRACE`` names a folder.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from flamebook.flower import legs
from flamebook.flower.parties import ANALYZER, SHUFFLER, Round, Settings, boxed, opened, parties
from flamelib.learning.federated import Users, load_users

app = ClientApp()
TRACE = "FLAMELIB_FLOWER_TRACE"
KEYS = "keys"


@cache
def held(dataset: str, clients: int) -> Users:
    """The records of all clients; a client touches its own alone, which a deployment would have nowhere else."""
    return load_users(dataset, n_users=clients)


def role(context: Context) -> tuple[str, int]:
    """What a node is, and its place among the clients."""
    told = context.node_config
    place = int(told.get("partition-id", -1))
    if "role" in told:
        return str(told["role"]), place
    after = place - (int(told["num-partitions"]) - 2)
    return (SHUFFLER, -1) if after == 0 else (ANALYZER, -1) if after == 1 else ("client", place)


def _secret(context: Context) -> bytes:
    return bytes(context.state.config_records[KEYS]["secret"])


def settings_of(message: Message) -> Settings:
    """The settings of the run, which every message carries."""
    return Settings(**message.content.config_records["settings"])  # type: ignore[arg-type]


def _round(message: Message) -> Round:
    told: Any = message.content.config_records["round"]
    return Round(int(told["number"]), told["name"], told["shuffler_key"], told["analyzer_key"])


def arrays_of(message: Message) -> dict[str, NDArray[Any]]:
    """The arrays of a message, by name."""
    return {name: array.numpy() for name, array in message.content.array_records["arrays"].items()}


def _answer(message: Message, **arrays: NDArray[Any]) -> Message:
    return Message(RecordDict({"arrays": ArrayRecord(dict_of(arrays))}), reply_to=message)


def dict_of(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Arrays as Flower carries them."""
    from flwr.app import Array

    return {name: Array(np.ascontiguousarray(one)) for name, one in arrays.items()}


def _trace(context: Context, received: dict[str, NDArray[Any]]) -> None:
    folder = os.environ.get(TRACE)
    if folder:
        name, place = role(context)
        Path(folder, f"{name}{place if name == 'client' else ''}.npz").write_bytes(legs.packed(received))


@app.query("role")
def tell_role(message: Message, context: Context) -> Message:
    """Say what this node is, with a fresh public key if others seal for it."""
    name, place = role(context)
    told: dict[str, Any] = {"role": name, "place": place}
    if name != "client":
        secret, told["key"] = legs.new_keys()
        context.state.config_records[KEYS] = ConfigRecord({"secret": secret})
    return Message(RecordDict({"told": ConfigRecord(told)}), reply_to=message)


@app.train("client")
def report(message: Message, context: Context) -> Message:
    """A client: train on its own records, and send what the protocol makes of the update, sealed for the shuffler."""
    settings, this = settings_of(message), _round(message)
    received = arrays_of(message)
    _trace(context, received)
    users, (_, place) = held(settings.dataset, settings.clients), role(context)
    block = slice(place, place + 1)
    update = users.updates(block, received["model"], settings.learning_rate, settings.epochs)[0]
    sent = parties(settings, len(update)).client(place, np.asarray(update, dtype=np.float64), this)
    return _answer(message, box=boxed(sent, this.shuffler_key))


@app.train("shuffler")
def shuffle(message: Message, context: Context) -> Message:
    """The shuffler: open one box of each client, and send bags, sealed for the analyzer."""
    settings, this = settings_of(message), _round(message)
    boxes = arrays_of(message)
    received = [opened(boxes[str(place)], _secret(context)) for place in range(settings.clients)]
    _trace(context, {f"{place}:{name}": one for place, found in enumerate(received) for name, one in found.items()})
    dimension = held(settings.dataset, settings.clients).model.dimension
    return _answer(message, box=boxed(parties(settings, dimension).shuffler(received, this), this.analyzer_key))


@app.train("analyzer")
def analyze(message: Message, context: Context) -> Message:
    """The analyzer: open the bags, and publish the estimate."""
    settings, this = settings_of(message), _round(message)
    received = opened(arrays_of(message)["box"], _secret(context))
    _trace(context, received)
    dimension = held(settings.dataset, settings.clients).model.dimension
    return _answer(message, estimate=parties(settings, dimension).analyzer(received, _secret(context), this))
