"""Stops the servers that clusters share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.shapes import SERVERS


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    with SERVERS:
        yield
