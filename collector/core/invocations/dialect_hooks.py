"""Which hooks of the dialects apply to a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.invocations.node import Node


def function_naming(node: Node) -> Callable[[str], str] | None:
    """The dialect's `function_name` hook for this node, otherwise the one of the agent above it."""
    for one in (node, node.agent):
        if one is not None and one.dialect is not None and one.dialect.function_name is not None:
            return one.dialect.function_name
    return None


def unwrap_arguments(node: Node | None) -> Callable[[Any], Any] | None:
    """The hook that removes what a framework wraps around arguments."""
    if node is not None:
        for dialect in node.dialects:
            if dialect.unwrap_arguments is not None:
                return dialect.unwrap_arguments
    return None


def unwrap_result(*nodes: Node | None) -> Callable[[Any], Result] | None:
    """The hook that removes what a framework wraps around results: of the first node with one."""
    for node in filter(None, nodes):
        for dialect in node.dialects:
            if dialect.unwrap_result is not None:
                return dialect.unwrap_result
    return None
