"""How many examples property tests try: a fifth by default, two fifths in CI, all in `make
test-slow`. And 20,000 collected tests are kept out of every garbage collection.
"""

from __future__ import annotations

import gc
import signal
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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting is a sixth faster without garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
