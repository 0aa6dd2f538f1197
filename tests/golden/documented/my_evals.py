"""Metrics that a user writes as functions, in the forms of the documents."""

from __future__ import annotations

from typing import Any


def essential_tools_present(
    instance: dict[str, Any], required_tools: tuple[str, ...] = ("find", "refund")
) -> dict[str, float]:
    called = [tool["tool_name"] for tool in instance["predicted_trajectory"]]
    present = sum(tool in called for tool in required_tools)
    return {"essential_tools_present": present / len(required_tools)}


def at_most_two_messages(result: dict[str, Any], scenario: dict[str, Any]) -> bool:
    return len([one for one in result["messages"] if one["role"] == "assistant"]) <= 2
