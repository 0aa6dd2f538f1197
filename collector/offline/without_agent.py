"""A note about traces with tool calls that no agent made.

When a process is killed while its agent works, the spans of tool calls may have been exported, but
never that of the agent around them. Such a trace has no invocation that could fail, and so a gate
would pass without a word about the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.scorers.matching.wording import counted

_TOOL_KINDS = frozenset({"tool", "tools"})
_MAX_NAMED = 3


def without_agent(spans: Iterable[Span], known: Set[str], registry: Registry) -> Iterator[str]:
    """At most one line. `known`: the ids of the traces in which an agent was found, or that could
    not be read.
    """
    found = dict.fromkeys(
        span.trace_id
        for span in spans
        if span.trace_id not in known and _is_tool_call(span, registry)
    )
    if not found:
        return
    listed = ", ".join(list(found)[:_MAX_NAMED])
    if len(found) > _MAX_NAMED:
        listed += f" and {len(found) - _MAX_NAMED} more"
    yield (
        f"{counted(len(found), 'trace')} with tool calls, but without a span of an agent, which is"
        f" exported when the agent ends: {listed}"
    )


def _is_tool_call(span: Span, registry: Registry) -> bool:
    """Whether a dialect says so. What none understands is named by its scope."""
    try:
        kind, dialects = registry.classify(span)
        return kind in _TOOL_KINDS and registry.fallback not in dialects
    except KeyboardInterrupt:
        raise
    except BaseException:  # a dialect is third-party code and may raise anything
        return False
    finally:
        span.release()
