"""The size and the seed of a run: `FAULTS=1` selects the long form, `FAULTS_SEED=...` repeats a
run.
"""

from __future__ import annotations

import os
import secrets

import pytest

from .sizes import LONG


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of tests that only the long form runs."""
    config.addinivalue_line("markers", "long: only in the long form, `make faults`")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests in the short form."""
    for item in items:
        if item.get_closest_marker("long") and not LONG:
            item.add_marker(pytest.mark.skip(reason="only in the long form: make faults"))


@pytest.fixture
def seed() -> int:
    """The seed of all random choices; printed with a failure. The short form always uses the same
    seed, the long form a random one.
    """
    seed = int(os.environ.get("FAULTS_SEED") or (secrets.randbits(32) if LONG else 1))
    print(f"FAULTS_SEED={seed}")
    return seed
