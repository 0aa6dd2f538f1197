"""What may be wrong in an invocation of a framework that no dialect knows.

Such telemetry may follow the conventions in its form, and still hold what only the dialect of the
framework could undo. The invocation gets the flag `unknown_dialect` for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pathgauge.collector.core.invocations.dialects.genai import GENAI
from pathgauge.collector.core.invocations.dialects.telling_names import kind_in
from pathgauge.collector.core.invocations.dialects.unknown import speaks
from pathgauge.collector.core.invocations.grouping import Group
from pathgauge.collector.core.invocations.node import Node
from pathgauge.scorers.types import ToolCall

_WITH_PLUGIN = re.compile(r"[A-Z]\w*-\w+")
"""The name of a tool after that of a class with tools, as in `Orders-lookup_order`."""


def is_not_understood(group: Group) -> bool:
    """Whether a part of an invocation was read without its dialect, or only by the conventions
    beside a span that speaks of agents and was not read at all.
    """
    work = [node for node in group.nodes if node.kind != "other"]
    if any(node.is_unknown for node in work):
        return True
    by_conventions = any(node.dialects == (GENAI,) for node in work)
    return by_conventions and any(map(_may_be_agent, (*group.nodes, *group.above())))


def _may_be_agent(node: Node) -> bool:
    """Whether a span that was not read speaks of agents, or calls itself one and says no more."""
    if node.is_unknown:
        return speaks(node.span)
    return not node.dialects and not node.span.attributes and kind_in(node.span.name) == "agent"


def may_be_changed(group: Group, calls: Iterable[ToolCall]) -> bool:
    """Whether the conventions alone tell a call that a framework may have changed: its result put
    into an object, or the name of a plug-in put before its name.
    """
    if not any(node.dialects == (GENAI,) for node in group.nodes if node.kind != "other"):
        return False
    return any(_is_wrapped(one.result) or _WITH_PLUGIN.fullmatch(one.name) for one in calls)


def _is_wrapped(result: object) -> bool:
    return isinstance(result, dict) and result.keys() == {"result"}


def without_template(user_input: str | None) -> str | None:
    """The input, unless it has several lines: then it may be what a framework builds around the
    words of the user, and only its dialect could tell.
    """
    return None if user_input and "\n" in user_input else user_input
