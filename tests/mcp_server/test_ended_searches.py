"""What a tool says of a store so busy that its search ends before it has found all it may show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from pathgauge.collector.api.mcp.collector import Collector
from pathgauge.collector.api.mcp.server import server
from pathgauge.collector.store.queries import results, rows
from support.api_client import client, sources
from support.evaluated import WALL, commit, evaluation, opened
from support.serving import serving

pytestmark = pytest.mark.slow

NOT_SEARCHED = "newest: nothing before 2026-11-18T11:06:46+00:00 was searched; `next` goes on"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine failures, of which one query looks at one: 2 of version 7 are older than 7 others."""
    monkeypatch.setattr(rows, "FIRST_WINDOW", 1)
    monkeypatch.setattr(rows, "_MAX_WINDOW", 1)
    monkeypatch.setattr(results, "SEARCH_S", -1.0)
    with opened(tmp_path) as store:
        for number in range(9):
            version = "7" if number < 2 else "1"
            commit(store, [evaluation(f"{number}", version=version)], WALL + number)
    return tmp_path


async def failures(folder: Path, **arguments: Any) -> dict[str, Any]:
    with serving(client(sources(folder)).app) as port:
        address = Collector(f"http://127.0.0.1:{port}")
        async with Client(server(address, lambda _: None)) as asked:
            answer = await asked.call_tool("failures", arguments)
    found: dict[str, Any] = answer.structured_content
    return found


async def test_a_search_that_ends_early_says_how_far_it_has_come(folder: Path) -> None:
    found = await failures(folder, version="7", limit=2)
    assert (found["newest"], found["next"] is None) == ([], False)
    assert NOT_SEARCHED in found["left_out"]
    more = await failures(folder, version="7", limit=2, cursor=found["next"])
    assert more["newest"] == []


async def test_a_full_answer_does_not_sound_like_a_search_that_ended_early(folder: Path) -> None:
    found = await failures(folder, limit=2)
    assert (len(found["newest"]), found["next"] is None) == (2, False)
    assert not any("was searched" in one for one in found["left_out"])
