"""How many examples property tests try: a fifth by default, two fifths in CI, all in `make
test-slow`. CI also runs two fifths of every long table. And 20,000 collected tests are kept out of
every garbage collection.
"""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts tests in the background ignores SIGINT, and so would the programs they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


# The machine may be busy, so only other tests measure time.
settings.register_profile(
    "full", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)
settings.register_profile("short", settings.get_profile("full"), max_examples=40)
settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In CI, leave out three fifths of the cases marked as `long_table`. `TABLES_SEED` chooses
    them: CI takes it from the commit, so that other commits run other cases.
    """
    if config.getoption("--hypothesis-profile") == "short":
        left_out = [
            item for item in items if item.get_closest_marker("long_table") and not _in(item)
        ]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _in(item: pytest.Item) -> bool:
    seed = os.environ.get("TABLES_SEED", "")
    return zlib.crc32(f"{seed} {item.nodeid}".encode()) % 5 < 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting is a sixth faster without garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
