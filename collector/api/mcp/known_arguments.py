"""A server whose tools refuse arguments that they do not have.

Models guess names: the results that they read have a `scenario_id`, the filter is called
`scenario`. The SDK ignores what it does not know, and a search without its filter returns
everything.
"""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, Tool

from pathgauge.collector.core.documents import did_you_mean, show_value


class KnownArguments(MCPServer[Any]):
    """The server. Some clients send an argument of their own to tools that take none, which is
    ignored.
    """

    async def list_tools(self) -> list[Tool]:
        """The tools, with the schemas of their arguments."""
        tools = await super().list_tools()
        for tool in tools:
            if tool.input_schema["properties"]:
                tool.input_schema = {**tool.input_schema, "additionalProperties": False}
        return tools

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Raises `ToolError`."""
        known = {one.name: [*one.input_schema["properties"]] for one in await self.list_tools()}
        expected = known.get(name, [])
        unknown = [argument for argument in arguments if argument not in expected]
        if expected and unknown:
            raise ToolError(
                f"Error executing tool {name}: found the argument {show_value(unknown[0])},"
                f" expected one of {', '.join(expected)}{did_you_mean(unknown[0], expected)}"
            )
        return await super().call_tool(name, arguments, context)
