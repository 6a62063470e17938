"""The account of each randomizer: what :mod:`flamelib.accounting.shuffling.analysis` asks, by the randomizer's class.

A randomizer of one's own joins by ``ANALYSES[its class] = its analysis``.
"""

import functools
from typing import Any

from flamelib.accounting.composition.privacy_profile import PrivacyProfile
from flamelib.accounting.shuffling.analysis import RTOL_VALUES, Analysis
from flamelib.accounting.shuffling.any_randomizer import AnyAnalysis, ClonedAnalysis
from flamelib.accounting.shuffling.discrete import KaryAnalysis, SupportAnalysis
from flamelib.accounting.shuffling.gaussian import GaussianAnalysis
from flamelib.accounting.shuffling.laplace import LaplaceAnalysis
from flamelib.accounting.shuffling.tables import TableAnalysis
from flamelib.core.profiles import (
    AnyProfile,
    ClonedProfile,
    GaussianProfile,
    KaryProfile,
    LaplaceProfile,
    SupportProfile,
    TableProfile,
)
from flamelib.core.vocabulary import DomainError

ANALYSES: dict[type, type[Analysis]] = {
    KaryProfile: KaryAnalysis,
    SupportProfile: SupportAnalysis,
    LaplaceProfile: LaplaceAnalysis,
    GaussianProfile: GaussianAnalysis,
    TableProfile: TableAnalysis,
    AnyProfile: AnyAnalysis,
    ClonedProfile: ClonedAnalysis,
}


def analysis(randomizer: Any) -> Analysis:
    """What the accounts know of a randomizer, by its class or the nearest one above it."""
    for kind in type(randomizer).__mro__:
        if kind in ANALYSES:
            return ANALYSES[kind](randomizer)
    raise DomainError(f"randomizer must be a local randomizer such as KaryResponse, got {randomizer!r}")


@functools.lru_cache(maxsize=8)
def round_curve(randomizer: Any, n_users: int, checkin_rate: float = 1.0, error: float = RTOL_VALUES) -> PrivacyProfile:
    """Upper bound of the profiles of all pairs of neighbours of a round, in both directions.

    Binary response is bounded by its worst data sets, others that have one by their blankets, any randomizer by clones.
    At most ten billion users are counted.  The relative error of the values is about ``error``.
    """
    return analysis(randomizer).profile(min(n_users, 10**10), checkin_rate, error)  # by monotonicity
