"""What a light installation leaves out, and the sentence that says which extra brings it; standard library only."""

from collections.abc import Iterator
from contextlib import contextmanager

OWN = ("flamelib", "flamebook")


class MissingExtra(ImportError):
    """A package that an extra brings is not installed; the message is one sentence fit for a user."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around imports of what this extra brings: where it is missing, :class:`MissingExtra` says what to install.

    >>> with extra("book"):
    ...     import snake_make
    Traceback (most recent call last):
    flamelib.core.extras.MissingExtra: snake_make is not installed here; pip install '.[book]' in the source of ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing in OWN:
            raise
        message = f"{missing} is not installed here; pip install '.[{name}]' in the source of flamelib brings it"
        raise MissingExtra(message, name=missing) from None
