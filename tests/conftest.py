"""How many examples property tests try: a fifth by default, two fifths in CI, all in `make
test-slow`. CI also leaves out some slow tests, other ones for every commit. And 15,000 tests are
collected faster, and kept out of every garbage collection.
"""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from typer.main import get_command

# A shell that starts tests in the background ignores SIGINT, and so would the programs they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# typer builds all commands anew for each call: 40 ms, which is most of what a test of one takes.
pytest.MonkeyPatch().setattr("typer.testing._get_command", cache(get_command))


# The machine may be busy, so only other tests measure time.
settings.register_profile(
    "full", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)
settings.register_profile("short", settings.get_profile("full"), max_examples=40)
settings.load_profile("quick")

FIFTHS_IN_CI = {"long_table": 2, "slow": 3}
"""How many of five tests with a mark CI runs. The first mark of a test counts."""
TAKE_LONGEST = ("faults", "mcp_server", "receivers", "service")
"""Folders of tests that start services."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--no-loadscope-reorder`, put files first whose tests take longest, so that no worker is
    left alone with one of them. In CI, leave out what `FIFTHS_IN_CI` says.
    """
    if config.getoption("loadscopereorder", None) is False:
        items.sort(key=lambda item: _folder(item) not in TAKE_LONGEST)
    if config.getoption("--hypothesis-profile", None) == "short":
        left_out = [one for one in items if not _in_ci(one)]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]


def _in_ci(item: pytest.Item) -> bool:
    """CI takes `SLOW_SEED` from the commit, so that other commits run other tests."""
    marked = (count for mark, count in FIFTHS_IN_CI.items() if item.get_closest_marker(mark))
    seed = os.environ.get("SLOW_SEED", "")
    return zlib.crc32(f"{seed} {item.nodeid}".encode()) % 5 < next(marked, 5)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Workers of `make test` import no files of slow tests only."""
    if not _leaves_out_slow(config) or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text() or None


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Workers of `make test` do not list the cases of slow tests: two fifths of all."""
    marks = getattr(obj, "pytestmark", ()) if _leaves_out_slow(collector.config) else ()
    return [] if any(mark.name == "slow" for mark in marks) else None


def _leaves_out_slow(config: pytest.Config) -> bool:
    """Only in workers: somebody who asks for a slow test by its name is told that it is
    deselected.
    """
    return hasattr(config, "workerinput") and config.option.markexpr == "not slow"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting is a sixth faster without garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
