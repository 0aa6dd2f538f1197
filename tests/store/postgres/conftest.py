"""A PostgreSQL for the session, and an empty database for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.postgres import Server, server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A running server."""
    with server() as running:
        yield running


@pytest.fixture
def address(postgres: Server) -> str:
    """The address of an empty database."""
    return postgres.database()


@pytest.fixture
def at_once() -> Callable[..., None]:
    """`at_once(work, 3)` calls `work` with 0, 1 and 2 in threads at the same time."""

    def run(work: Callable[[int], object], times: int) -> None:
        with ThreadPoolExecutor(times) as threads:
            for done in [threads.submit(work, number) for number in range(times)]:
                done.result()

    return run
