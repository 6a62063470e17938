"""A tiny book to try the machinery on."""

from pathlib import Path

import pytest
import tiny_book


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A checkout with three notebooks over four modules; ``a`` and ``b`` share the module ``base``."""
    return tiny_book.make(tmp_path)
