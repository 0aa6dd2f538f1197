"""A Kafka broker for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.kafka import Broker, running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A running broker. A test that kills it starts it again. In a minute without a test, it would
    use as much CPU time as its start does.
    """
    with running_broker() as broker:
        yield broker
