"""The app in Flower's simulation: ``python -m flamebook.flower.simulation FOLDER`` reads settings, leaves a result.

Flower hands the messages of a simulation to Ray, whose processes take longer to start than a short run takes.  Here
they are handed to the app itself, one after the other: the module of Ray's backend is replaced before it is loaded.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.server.superlink.fleet.vce.backend import Backend
from flwr.simulation.run_simulation import run_simulation

from flamebook.flower.client import app
from flamebook.flower.parties import Settings
from flamebook.flower.server import server

REPLACED = "flwr.server.superlink.fleet.vce.backend.raybackend"


class OneByOne(Backend):
    """Every message is answered here, by one node after the other."""

    num_workers = 1

    def build(self, app_fn: Callable[[], ClientApp]) -> None:
        """Keep the app."""
        self.app = app_fn()

    def is_worker_idle(self) -> bool:
        """There is nobody to wait for."""
        return True

    def terminate(self) -> None:
        """Nothing was started."""

    def process_message(self, message: Message, context: Context) -> tuple[Message, Context]:
        """The node's answer, and its state."""
        return self.app(message, context), context


def main(work: Path) -> None:
    """Run with the settings of a folder; the result lies there afterwards."""
    settings = Settings(**json.loads((work / "settings.json").read_text(encoding="utf-8")))
    module = ModuleType(REPLACED)
    vars(module)["RayBackend"] = OneByOne
    sys.modules[REPLACED] = module
    run_simulation(server(settings, work / "result.json"), app, settings.n_users + 2, backend_name="one by one")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
