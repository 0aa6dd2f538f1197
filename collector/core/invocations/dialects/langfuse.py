"""Langfuse: the `@observe` decorator, its client, and its callback handler for LangChain and
LangGraph.

Recognised by `langfuse.observation.type`. Inputs and outputs are JSON in
`langfuse.observation.input` and `.output`; positional arguments of functions are there without
their names. Metadata lies under `langfuse.observation.metadata.`, since version 5 JSON-encoded.
Runs of LangChain are of type `agent` when "agent" is in their name, nodes included: their metadata
tells. Tokens are counted in buckets, which exclude one another unless they have OpenAI's own names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, Member, members
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, as_int, decoded
from pathgauge.collector.core.otlp.spans import Span

KIND, METADATA = "langfuse.observation.type", "langfuse.observation.metadata."

_INPUT, _OUTPUT = "langfuse.observation.input", "langfuse.observation.output"
_KINDS: dict[str, Kind] = {
    "agent": "agent",
    "generation": "model",
    "tool": "tool",
    "chain": "chain",
}
_OF_LANGCHAIN = tuple(
    METADATA + key for key in ("is_langchain_root", "langgraph_step", langgraph.AGENT_NAME)
)
_SEQUENCE_TAGS = ("seq:step:", "map:key:")


def matches(span: Span) -> bool:
    """Observations; other spans only bear the attributes of their trace."""
    return KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """The type as named; runs of LangChain by their metadata."""
    named = str(span.attributes[KIND])
    if named in ("agent", "chain") and _is_langchain(span):
        metadata = {
            key: decoded(span.attributes.get(METADATA + key))
            for key in (langgraph.AGENT_NAME, langgraph.NODE)
        }
        return langgraph.kind(span.name, metadata)
    return _KINDS.get(named, "other")


def _is_langchain(span: Span) -> bool:
    attributes = span.attributes
    tags = str(attributes.get(METADATA + "tags"))
    return any(key in attributes for key in _OF_LANGCHAIN) or any(
        tag in tags for tag in _SEQUENCE_TAGS
    )


def failure(span: Span) -> str | None:
    """What was said to have gone wrong."""
    attributes = span.attributes
    if attributes.get("langfuse.observation.level") != "ERROR":
        return None
    return as_id(attributes.get("langfuse.observation.status_message")) or "error"


def _offered(span: Span) -> Any:
    """The tools in the input of a model: beside its messages, or listed among them."""
    raw = span.attributes.get(_INPUT)
    if not isinstance(raw, str) or '"parameters"' not in raw:
        return None
    shown = decoded(raw)
    if isinstance(shown, dict):
        return shown.get("tools")
    listed = shown if isinstance(shown, list) else []
    return [
        message for message in listed if isinstance(message, dict) and message.get("role") == "tool"
    ] or None


def _tokens(side: str, inclusive: str) -> Callable[[Span], int | None]:
    """Sums up the buckets of one `side`; the count that OpenAI calls `inclusive` is the sum
    already.
    """

    def counted(span: Span) -> int | None:
        details = members(span.attributes.get("langfuse.observation.usage_details"))
        if inclusive in details:
            return as_int(details[inclusive])
        counts = (
            as_int(value) for key, value in details.items() if side in key and not _is_repeated(key)
        )
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    return counted


def _is_repeated(bucket: str) -> bool:
    """Whether the tokens of a bucket are in others too: those with priority, and what Anthropic
    writes to its cache, by time to live.
    """
    return "priority" in bucket or bucket.startswith("cache_creation_ephemeral")


_TOKENS_IN, _TOKENS_OUT = (
    Derived(_tokens("input", "prompt_tokens")),
    Derived(_tokens("output", "completion_tokens")),
)

LANGFUSE = Dialect(
    name="langfuse",
    scopes=("langfuse-sdk",),
    byte_marks=(KIND.encode(),),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: (
        span.parent_id is None
        or b"langfuse.internal.is_app_root" in span.raw
        or langgraph.may_be_entry(span)
    ),
    name_of=lambda span: as_id(span.name),
    failure=failure,
    unwrap_arguments=callable_arguments,
    fields=Fields(
        agent_name=(
            Member(METADATA + langgraph.AGENT_NAME, ()),
            Derived(
                lambda span: langgraph.enclosing_graph(
                    decoded(span.attributes.get(METADATA + langgraph.PATH))
                )
            ),
        ),
        conversation_id=(
            Member(METADATA + langgraph.THREAD, ()),
            Member(METADATA + "session_id", ()),
        ),
        user_id=(Member(METADATA + "user_id", ()),),
        call_id=(Member(METADATA + "tool_call_id", ()),),
        arguments=(_INPUT,),
        result=(_OUTPUT,),
        response_model=("langfuse.observation.model.name",),
        input_tokens=(_TOKENS_IN,),
        output_tokens=(_TOKENS_OUT,),
        total_input_tokens=(_TOKENS_IN,),
        total_output_tokens=(_TOKENS_OUT,),
        input_messages=(_INPUT,),
        output_messages=(_OUTPUT,),
        agent_input=(_INPUT,),
        agent_output=(_OUTPUT,),
        tool_definitions=(Derived(_offered),),
    ),
)
