"""How costs grow: exponents from points that are told from nothing, extensions, and the points' own measurement."""

import math

import pytest
from matplotlib.figure import Figure

from flamebook.figures.style import LIGHT, look
from flamebook.figures.together import growth
from flamebook.recordings import growth as recorder

SIZES = (100, 1000, 10_000, 100_000)


def ladder(seconds: tuple[float, ...], ended: str = "") -> growth.Ladder:
    return growth.Ladder("cloak", SIZES, seconds, (9.0, 9.0, 9.0, 9.0), ended)


def test_a_power_law_is_found_and_followed() -> None:
    one = ladder(tuple(1e-4 * size**0.9 for size in SIZES))
    assert one.slope("seconds") == growth.Slope(pytest.approx(0.9), pytest.approx(0.0, abs=1e-9))
    assert one.at("seconds", 10**9) == pytest.approx(1e-4 * 1e9**0.9)


def test_what_does_not_grow_costs_its_largest_everywhere() -> None:
    one = ladder((0.2, 0.1, 0.3, 0.2))
    assert not one.grows("seconds")
    assert one.at("seconds", 10**9) == 0.3
    assert one.exponent("megabytes") == "flat"
    assert ladder((0.0, 0.0, 0.0, 1e-4)).at("seconds", 10**9) == growth.FLOOR["seconds"]


def test_points_that_cannot_be_told_from_nothing_fit_no_law() -> None:
    one = ladder((0.0, 1e-5, 0.01, 0.1))
    assert one.exponent("seconds") == "1.00 (two points)"
    assert one.at("seconds", 10**6) == pytest.approx(1.0)
    assert ladder((0.0, 0.0, 5e-4, 0.05)).at("seconds", 10**6) == pytest.approx(5.0)


def test_the_record_has_every_protocol_and_is_drawn() -> None:
    for question in ("run", "account"):
        for axis in recorder.LADDERS:
            held = {name for name in recorder.PROTOCOLS if axis in recorder.axes(question, name)}
            if held:
                assert {one.protocol for one in growth.read(question, axis).ladders} == held
    record = growth.read("run", "users", "megabytes", 10**9)
    with look(LIGHT, "growth") as pen:
        ax = Figure().add_subplot()
        growth.draw(ax, record, pen)
    assert len(ax.get_lines()) == 2 * len(record.ladders)
    assert record.to_csv().count("extended") == len(record.ladders)
    assert all(one.ended in growth.WHY for one in record.ladders)


def test_the_smallest_case_is_two_points_of_the_record_and_their_power() -> None:
    told = growth.smallest(10**9)
    one = next(one for one in growth.read("run", "users").ladders if one.protocol == told["protocol"])
    took = dict(zip((f"{size:,}" for size in one.sizes), one.seconds, strict=True))
    assert took[told["large"]] / took[told["small"]] == pytest.approx(float(told["longer"]), rel=1e-2)
    slope = math.log(float(told["longer"])) / math.log(float(told["more"]))
    assert slope == pytest.approx(float(told["slope"]), abs=6e-3)
    then = took[told["large"]] * (10**9 / int(told["large"].replace(",", ""))) ** slope
    assert 60 * float(told["then"].removesuffix(" min")) == pytest.approx(then, rel=0.05)
    assert growth.header("dimension", 1000)[-1] == "memory for 1,000 coordinates"


@pytest.mark.parametrize("protocol", recorder.PROTOCOLS)
def test_every_protocol_is_measured(protocol: str) -> None:
    for question in ("run", "account"):
        seconds, megabytes, ended = recorder.measured(protocol, question, recorder.STANDING | {"users": 20})
        assert (seconds >= 0, megabytes >= 0, ended) == (True, True, "")
        assert math.isfinite(seconds + megabytes)


def test_a_point_that_is_too_large_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MEGABYTES", 20)
    sizes = recorder.STANDING | {"users": 10**8}
    assert recorder._apart("shuffled Laplace", "run", sizes) == ["", "", "memory"]
    assert recorder._apart("shuffled Laplace", "run", recorder.STANDING)[-1] == ""
