"""The network of the recorded runs: its layers against PyTorch's own, its weights against what was recorded."""

from pathlib import Path

import pytest
import torch

from flamebook.figures import present
from flamebook.figures.participation import network
from flamebook.recordings import participation
from flamebook.runs.recorded import provenance
from flamelib.core.vocabulary import DomainError


def test_layers_are_those_of_a_network_built_by_another_hand() -> None:
    nn = torch.nn
    blocks = [
        nn.Sequential(nn.Conv2d(1, 16, 5), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Conv2d(16, 32, 5), nn.MaxPool2d(2), nn.ReLU()),
        nn.Sequential(nn.Flatten(), nn.Linear(512, 128), nn.ReLU()),
        nn.Linear(128, 62),
    ]
    found = network.compute_network(62)
    values = torch.zeros(1, 1, found.side, found.side)
    for layer, block in zip(found.layers, blocks, strict=True):
        values = block(values)
        assert layer.shape == tuple(values.shape[1:])
        assert layer.weights == sum(part.numel() for part in block.parameters())


def test_the_drawn_network_is_the_one_that_was_recorded() -> None:
    recorded = {one["convolutional"]["dimension"] for one in provenance(participation.TABLE)["runs"].values()}
    assert recorded == {network.compute_network(26).weights}
    words = network.network_words(network.compute_network(26))
    assert words["network_layers"].startswith("convolution, 416 weights; convolution, 12,832 weights; fully connected")
    assert [words[f"network_{name}"] for name in ("weights", "classes", "paper_weights")] == ["82,266", "26", "86,910"]


def test_it_is_drawn_and_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    found = network.compute_network(26)
    present.show(found, network.draw_network, name="network", alt="a test of a figure and its words", legend=False)
    table = (tmp_path / "figures" / "network.csv").read_text().splitlines()
    assert [line.rpartition(",")[2] for line in table] == ["weights", "416", "12832", "65664", "3354"]


def test_a_network_has_two_classes_at_least() -> None:
    with pytest.raises(DomainError, match="n_classes"):
        network.compute_network(1)
