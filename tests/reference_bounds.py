"""Noise and bounds that the library itself does not need, made of its parts: what tests compare."""

import math

import numpy as np

from flamelib.accounting.coordinates import padded
from flamelib.accounting.coordinates.padded import Coordinate
from flamelib.accounting.noise import whole_numbers
from flamelib.accounting.shuffling import bromwich


def discrete_gaussian_noise(noise_std):
    """Whole-number noise of the law proportional to ``exp(-x^2 / 2 sigma^2)``."""
    reach = whole_numbers._reach(noise_std * noise_std)
    logs = -((np.arange(reach + 1) / noise_std) ** 2) / 2
    return whole_numbers._normalised(logs, lambda x: (x / noise_std) ** 2 / 2)


def some_real(randomizer, messages, real):
    """``real`` of the messages, the one in question included; the others are dummies."""
    log_mass = math.log1p(-randomizer.kept) if randomizer.kept < 0.5 else math.log(randomizer.mass)
    return padded._spread(messages, log_mass * (real - 1))


def padded_divergence(randomizer, messages, epsilon, real=None, against="real"):
    """Delta of one padded coordinate by the blanket and the dummies (upper), with as little width as can be had."""
    others = padded.all_real(randomizer, messages) if real is None else some_real(randomizer, messages, real)
    pairs = [(1.0, 1.0)] if against == "real" else [(1.0, 0.0), (0.0, 1.0)]
    laws = [Coordinate(randomizer, others, *pair).law(epsilon) for pair in pairs]
    return max(math.exp(bromwich.bracket(law, messages).high) for law in laws)
