"""Envelopes: one length for every value, opened by one key in one round at one coordinate once, refused otherwise."""

import math

import numpy as np
import pytest
from nacl.public import PrivateKey, PublicKey, SealedBox

from flamelib.mechanisms import sealing
from flamelib.mechanisms.sealing import (
    _ENVELOPE_BYTES,
    _LETTER_BYTES,
    _REFUSALS,
    AnalyzerKey,
    new_round,
    open_bags,
    seal,
)

KEY, ROUND = AnalyzerKey(), new_round()
EXTREMES = [0.0, -0.0, 1.0, -1e308, 5e-324, math.pi, 2.0**53]


def opened(envelopes, key=KEY, name=ROUND):
    """One bag a coordinate, one envelope a bag, unless the bags are given."""
    return open_bags(key, name, envelopes if envelopes.ndim == 3 else envelopes[:, None])


def reasons(found):
    assert tuple(found.refused) == _REFUSALS
    assert np.isnan(found.values).sum() == sum(found.refused.values())
    return {reason: count for reason, count in found.refused.items() if count}


def test_values_come_out_as_they_went_in():
    envelopes = seal(KEY.public, ROUND, range(len(EXTREMES)), EXTREMES)
    found = opened(envelopes)
    assert found.values.reshape(-1).tobytes() == np.array(EXTREMES).tobytes()
    assert not reasons(found)


def test_every_envelope_has_one_length_and_a_fresh_look():
    envelopes = seal(KEY.public, ROUND, np.zeros(2000, int), np.resize([0.0, -1e308], 2000))
    assert envelopes.shape == (2000, _ENVELOPE_BYTES)
    assert _LETTER_BYTES + len(SealedBox(PrivateKey.generate()).encrypt(b"")) == _ENVELOPE_BYTES
    assert len({row.tobytes() for row in envelopes}) == 2000
    # Each of the sixteen bytes of a sealed value and of its tag is uniform, for either value.
    for value in (envelopes[::2], envelopes[1::2]):
        for column in (*range(32, 48), *range(_ENVELOPE_BYTES - 8, _ENVELOPE_BYTES)):
            assert abs(value[:, column].mean() - 127.5) < 6 * math.sqrt((256**2 - 1) / 12 / 1000)


def test_a_change_of_any_bit_is_noticed():
    [envelope] = seal(KEY.public, ROUND, [0], [0.25])
    flips = [(np.arange(_ENVELOPE_BYTES) == byte) * bit for byte in range(92) for bit in (1, 128)]
    changed = np.array([envelope ^ flip for flip in flips])
    found = opened(changed.astype(np.uint8)[None])
    assert reasons(found) == {"unreadable": 2 * _ENVELOPE_BYTES}


@pytest.mark.parametrize("content", [bytes(_ENVELOPE_BYTES), b"\xff" * _ENVELOPE_BYTES, bytes(range(_ENVELOPE_BYTES))])
def test_bytes_that_are_no_envelope_are_refused(content):
    assert reasons(opened(np.frombuffer(content, dtype=np.uint8)[None])) == {"unreadable": 1}


def test_envelopes_for_another_key_are_refused():
    foreign = seal(AnalyzerKey().public, ROUND, [0], [0.25])
    assert reasons(opened(foreign)) == {"unreadable": 1}


def test_an_envelope_of_another_round_is_refused():
    old = seal(KEY.public, new_round(), [0, 1], [0.25, 0.5])
    assert reasons(opened(old)) == {"other round": 2}


def test_an_envelope_in_the_wrong_bag_is_refused():
    envelopes = seal(KEY.public, ROUND, [0, 2, 1], [0.25, 0.5, 0.75])
    found = opened(envelopes)
    assert reasons(found) == {"other coordinate": 2}
    assert found.values[0, 0] == 0.25


def test_a_copy_is_refused_wherever_it_lies():
    first, second = seal(KEY.public, ROUND, [0, 0], [0.25, 0.25])
    found = opened(np.array([[first, second, first, first]]))
    assert reasons(found) == {"repeated": 2}
    assert found.values[0, :2].tolist() == [0.25, 0.25]  # equal values of two envelopes are no copies


def test_a_value_that_is_no_number_is_refused():
    letter = sealing._LETTER.pack(ROUND, 0, bytes(16), math.nan)
    envelope = np.frombuffer(SealedBox(PublicKey(KEY.public)).encrypt(letter), dtype=np.uint8)
    assert reasons(opened(envelope[None])) == {"no number": 1}


def test_bad_envelopes_do_not_stop_the_good_ones():
    good = seal(KEY.public, ROUND, np.zeros(5, int), np.arange(5))
    foreign = seal(AnalyzerKey().public, ROUND, [0], [9.0])
    found = opened(np.concatenate([good[:2], foreign, good[2:], good[:1]])[None])
    assert found.values[0][~np.isnan(found.values[0])].tolist() == [0, 1, 2, 3, 4]
    assert reasons(found) == {"unreadable": 1, "repeated": 1}


def test_nonces_name_nobody():
    """Inside an envelope there is the round, the coordinate, fresh random bytes and the value, and nothing else."""
    envelopes = seal(KEY.public, ROUND, [3, 3], [0.5, 0.5])
    letters = [SealedBox(KEY._secret).decrypt(row.tobytes()) for row in envelopes]
    (name, place, nonce, value), (*same, other, again) = map(sealing._LETTER.unpack, letters)
    assert [name, place, value] == [*same, again] == [ROUND, 3, 0.5]
    assert nonce != other
    assert len(letters[0]) == _LETTER_BYTES == 16 + 4 + len(nonce) + 8


def test_the_secret_key_does_not_show():
    key = AnalyzerKey()
    secret = bytes(key._secret)
    assert repr(key) == "AnalyzerKey()"
    assert secret.hex() not in repr(key)
    assert secret != key.public
    assert AnalyzerKey().public != key.public
