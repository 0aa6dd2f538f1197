"""docs/mcp.md names the tools with their arguments and limits, and its snippets are JSON."""

from __future__ import annotations

import json
import re

from mcp import Client

from pathgauge.collector.api.mcp.collector import Collector
from pathgauge.collector.api.mcp.over_http import MAX_REQUEST_BYTES
from pathgauge.collector.api.mcp.server import server
from pathgauge.collector.api.mcp.shaping import MAX_BYTES
from pathgauge.collector.api.mcp.untrusted import MAX_NAME
from pathgauge.collector.store.queries.versions import MAX_RESULTS
from support.repository import DOCS

PAGE = (DOCS / "mcp.md").read_text(encoding="utf-8")


async def test_the_page_lists_each_tool_with_its_arguments() -> None:
    async with Client(server(Collector("http://127.0.0.1:9"), lambda _: None)) as client:
        tools = (await client.list_tools()).tools
    rows = {row[0]: row[1] for row in re.findall(r"^\| `(\w+)` \|(.*?)\|", PAGE, re.MULTILINE)}
    named = {name: set(re.findall(r"`(\w+)`", row)) for name, row in rows.items()}
    assert named == {tool.name: set(tool.input_schema["properties"]) for tool in tools}


def test_the_page_names_the_limits() -> None:
    for text in (
        f"at most {MAX_BYTES:,} bytes",
        f"the {MAX_RESULTS:,} newest results",
        f"at most {MAX_NAME} characters",
        f"at most {MAX_REQUEST_BYTES >> 10} KiB",
    ):
        assert text in " ".join(PAGE.split())


def test_the_snippets_are_json() -> None:
    snippets = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [set(json.loads(one)) for one in snippets] == [
        {"mcpServers"},
        {"servers", "inputs"},
        {"mcpServers"},
    ]
