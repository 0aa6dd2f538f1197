"""Stops the servers that clusters share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.shapes import SERVERS


@pytest.fixture(scope="module", autouse=True)
def _servers() -> Iterator[None]:
    """In a minute without a test, a broker uses as much CPU time as its start does."""
    with SERVERS:
        yield
