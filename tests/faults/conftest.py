"""The size and the seed of a run: `FAULTS=1` runs the long form, `FAULTS_SEED=...` repeats one."""

from __future__ import annotations

import os
import secrets

import pytest

from .sizes import LONG


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of what only the long form runs."""
    config.addinivalue_line("markers", "long: only in the long form, `make faults`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the long form to `make faults`."""
    for item in items:
        if item.get_closest_marker("long") and not LONG:
            item.add_marker(pytest.mark.skip(reason="only in the long form: make faults"))


@pytest.fixture
def seed() -> int:
    """Of everything that is random; printed with a failure. The short form repeats one, the long
    form draws its own.
    """
    seed = int(os.environ.get("FAULTS_SEED") or (secrets.randbits(32) if LONG else 1))
    print(f"FAULTS_SEED={seed}")
    return seed
