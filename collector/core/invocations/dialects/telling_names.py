"""What the words in names of attributes, and of spans, tell about telemetry of unknown frameworks:
what a span represents, and whether an attribute goes in or comes out.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.vocabulary import words

_STATED: Mapping[str, Kind] = {
    **dict.fromkeys(("agent", "agent_run", "invoke_agent", "ai_agent"), "agent"),
    **dict.fromkeys(("workflow", "flow", "chain", "graph", "pipeline"), "chain"),
    **dict.fromkeys(("llm", "model", "generation", "chat", "chat_model", "completion"), "model"),
    **dict.fromkeys(("model_call", "llm_call", "model_inference", "generate_content"), "model"),
    **dict.fromkeys(("tool", "tool_call", "execute_tool", "function", "function_call"), "tool"),
}
IN = frozenset({"input", "inputs", "prompt", "request", "query", "args", "arguments", "kwargs"})
OUT = frozenset({"output", "outputs", "completion", "response", "result", "reply", "choices"})
"""Words of attributes that go in, and of those that come out."""


_NO_DIRECTION = frozenset({"http", "definition", "metadata", "system"})
"""Words of attributes that hold nothing that a user or a tool says. A system prompt is of the
program.
"""


def stated_kind(parts: tuple[str, ...]) -> Kind | None:
    """The kind that a value states, also after the name of a vendor or before that of an agent."""
    for start in (0, 1):
        kind = _STATED.get("_".join(parts[start:]))
        if kind is not None:
            return kind
    return None


def direction(parts: tuple[str, ...]) -> str | None:
    """Whether what an attribute holds goes in or comes out, by the last word that tells."""
    if not _NO_DIRECTION.isdisjoint(parts):
        return None
    if parts[-1:] == ("return",):
        return "out"
    for word in reversed(parts):
        if word in OUT:
            return "out"
        if word in IN:
            return "in"
    return "in" if parts[-1:] in (("messages",), ("events",)) else None


def names_model(parts: tuple[str, ...]) -> bool:
    """Whether an attribute names a model."""
    return parts[-1:] == ("model",) or parts[-2:] in (("model", "name"), ("model", "id"))


def kind_in(name: str) -> Kind | None:
    """The only subject among the words of a span's name."""
    found: set[Kind] = set()
    for word in words(name)[:4]:
        if word == "agent":
            found.add("agent")
        elif word in ("tool", "function"):
            found.add("tool")
        elif word in ("llm", "chat", "completion"):
            found.add("model")
    return found.pop() if len(found) == 1 else None
