"""One round of random participation as a record: turned gradients between the readings of the theorem."""

from flamelib.accounting.sampling.participation_round import ParticipationRound


def test_readings_around_the_lower_bound() -> None:
    ten = ParticipationRound(n_records=10)
    for epsilon in (0.05, 0.3):
        turned = ten.most_turned(epsilon)
        assert ten.delta("aligned", epsilon) * (1 - 1e-4) <= turned <= ten.delta("outer", epsilon)
        assert ten.delta("inner", epsilon) <= ten.delta("outer", epsilon)
    assert ten.delta("inner", 0.3) < ten.most_turned(0.3)


def test_a_right_angle_is_worse_for_large_clients_and_outer_is_never_exceeded() -> None:
    five, thirty = (
        [ParticipationRound(n_records=size).turned(angle, 0.1) for angle in (0, 90, 180)] for size in (5, 30)
    )
    assert thirty[1] > 5 * thirty[0]
    assert max(five) == five[0]
    assert max(thirty) <= ParticipationRound().delta("outer", 0.1)
