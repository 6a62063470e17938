"""How one number compares with another, in words."""

import numpy as np

from flamebook.statements import times


def as_large(ratio: float) -> str:
    """How one number compares with another, given their ratio.

    >>> as_large(11.2), as_large(1.001), as_large(float("nan"))
    ('11 times as large as', 'about as large as', 'not comparable with')
    """
    if np.isnan(ratio):
        return "not comparable with"
    return "about as large as" if times(ratio) == "once" else f"{times(ratio)} as large as"
