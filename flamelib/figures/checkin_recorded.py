"""Recorded results of full training runs with self check-in, read back as the records that a fresh run makes.

``data/results/checkin_learning.csv`` holds one row a run, as for random participation
(:mod:`flamelib.figures.participation_recorded`); ``checkin_learning.json`` beside it says how they came about.
"""

from flamelib.figures import recordings
from flamelib.figures.checkin_learning import shown
from flamelib.figures.participation_learning import Learning
from flamelib.figures.participation_recorded import Key, read_back

TABLE = "checkin_learning.csv"


def recorded(experiment: str, model: str = "softmax") -> Learning:
    """The recorded runs of an experiment: ``large`` crowd or ``small``, ``softmax`` or ``convolutional``.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    return read_back(TABLE, Key(experiment, model))


def findings() -> dict[str, str]:
    """What the page says about the recorded runs, by name: accuracies in percent with their spread."""
    told: dict[str, str] = {}
    for experiment, models in recordings.provenance(TABLE)["runs"].items():
        for model in models:
            runs = recorded(experiment, model)
            told |= {f"{model}_{experiment}_{scheme}": shown(runs.final(scheme)) for scheme in runs.curves}
    return told
