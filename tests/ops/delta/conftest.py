"""All of the family by both forms."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def both(compiled_or_not):
    """Whatever a test holds, it holds for either."""
