"""The ClientApp: what runs on every node, as a client, as the shuffler or as the analyzer.

A node's role is in its own settings (``role``, and ``place`` for a client); in a simulation the last two partitions are
shuffler and analyzer.  A client's records lie in the folder that ``FLAMELIB_FLOWER_RECORDS`` names, as ``PLACE.npz``;
a client with a node of its own finds no others there.  If ``FLAMELIB_FLOWER_TRACE`` names a folder, what a node
received is kept in it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from flamebook.flower.legs import Arrays, boxed, new_keys, opened, packed, unpacked
from flamebook.flower.parties import ANALYZER, SHUFFLER, TALLY, Round, Settings, parties
from flamelib.core.arrays import Reals
from flamelib.learning.federated import Users

app = ClientApp()
RECORDS, TRACE, KEYS = "FLAMELIB_FLOWER_RECORDS", "FLAMELIB_FLOWER_TRACE", "keys"


def write_records(users: Users, folder: Path, places: range) -> None:
    """A file for each of these clients, with the images that it trains on and those that it tests with."""
    folder.mkdir(parents=True, exist_ok=True)
    tested = len(users.held_back.labels) // len(users)
    for place in places:
        own = slice(place * tested, (place + 1) * tested)
        images, labels = users.held_back.images[own], users.held_back.labels[own]
        kept = {"images": users.images[place], "labels": users.labels[place]}
        (folder / f"{place}.npz").write_bytes(packed(kept | {"test_images": images, "test_labels": labels}))


def vector_of(job: str, settings: Settings, own: Arrays, model: Reals) -> Reals:
    """What a client adds to the sums: its update of the model, if that is asked, and its share of right answers."""
    right = settings.model.accuracy(model, own["test_images"], own["test_labels"])
    if job == TALLY:
        return np.array([right])
    steps: Any = {"learning_rate": settings.learning_rate, "epochs": settings.epochs}
    update = settings.model.local_updates(model, own["images"][None], own["labels"][None], **steps)[0]
    return np.append(np.asarray(update, dtype=np.float64), right)


def role(context: Context) -> tuple[str, int]:
    """What a node is, and its place among the clients."""
    told = context.node_config
    place = int(told.get("place", told.get("partition-id", -1)))
    if "role" in told:
        return str(told["role"]), place
    after = place - (int(told["num-partitions"]) - 2)
    return ("client", SHUFFLER, ANALYZER)[max(after + 1, 0)], place


def record(arrays: Arrays) -> ArrayRecord:
    """Arrays as Flower carries them."""
    return ArrayRecord({name: Array(np.ascontiguousarray(one)) for name, one in arrays.items()})


def arrays_of(message: Message) -> dict[str, NDArray[Any]]:
    """The arrays of a message, by name."""
    return {name: array.numpy() for name, array in message.content.array_records["arrays"].items()}


def _told(message: Message) -> tuple[Settings, Round, dict[str, NDArray[Any]]]:
    records: Mapping[str, Any] = message.content.config_records
    return Settings(**records["settings"]), Round(**records["round"]), arrays_of(message)


def _answer(message: Message, context: Context, received: Arrays, **arrays: NDArray[Any]) -> Message:
    if folder := os.environ.get(TRACE):
        (name, place), job = role(context), _told(message)[1].job
        Path(folder, f"{job}-{name}{place if name == 'client' else ''}.npz").write_bytes(packed(received))
    return Message(RecordDict({"arrays": record(arrays)}), reply_to=message)


def _secret(context: Context) -> bytes:
    return bytes(context.state.config_records[KEYS]["secret"])  # type: ignore[arg-type]


@app.query("role")
def tell_role(message: Message, context: Context) -> Message:
    """Say what this node is, with a fresh public key if others seal for it."""
    name, place = role(context)
    told: dict[str, Any] = {"role": name, "place": place}
    if name != "client":
        secret, told["key"] = new_keys()
        context.state.config_records[KEYS] = ConfigRecord({"secret": secret})
    return Message(RecordDict({"told": ConfigRecord(told)}), reply_to=message)


@app.train("client")
def report(message: Message, context: Context) -> Message:
    """A client: learn from its own records, and send what the protocol makes of it, sealed for the shuffler."""
    settings, this, received = _told(message)
    place = role(context)[1]
    own = unpacked(Path(os.environ[RECORDS], f"{place}.npz").read_bytes())
    vector = vector_of(this.job, settings, own, received["model"])
    sent = parties(settings, this.job).client(place, vector, this)
    return _answer(message, context, received, box=boxed(sent, this.shuffler_key))


@app.train("shuffler")
def shuffle(message: Message, context: Context) -> Message:
    """The shuffler: open one box of each client, and send bags, sealed for the analyzer."""
    settings, this, boxes = _told(message)
    found = [opened(boxes[str(place)], _secret(context)) for place in range(settings.n_users)]
    received = {f"{place}:{name}": one for place, arrays in enumerate(found) for name, one in arrays.items()}
    sent = parties(settings, this.job).shuffler(found, this)
    return _answer(message, context, received, box=boxed(sent, this.analyzer_key))


@app.train("analyzer")
def analyze(message: Message, context: Context) -> Message:
    """The analyzer: open the bags, and publish the estimate."""
    settings, this, boxes = _told(message)
    received = opened(boxes["box"], _secret(context))
    estimate = parties(settings, this.job).analyzer(received, _secret(context), this)
    return _answer(message, context, received, estimate=estimate)
