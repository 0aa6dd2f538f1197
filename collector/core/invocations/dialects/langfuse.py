"""Langfuse: the `@observe` decorator, its client, and its callback handler for LangChain and
LangGraph.

Recognised by `langfuse.observation.type`. Inputs and outputs are JSON in
`langfuse.observation.input` and `.output`; the names of positional arguments are not recorded.
Metadata is under `langfuse.observation.metadata.`, JSON-encoded from version 5. A LangChain run
whose name contains "agent" gets the type `agent`, even if it is a node, so its metadata decides.
Tokens are counted in disjoint buckets, unless the buckets have OpenAI's own names.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember, members
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, as_int, decoded
from pathgauge.collector.core.otlp.spans import Span

KIND, METADATA = "langfuse.observation.type", "langfuse.observation.metadata."

_INPUT, _OUTPUT = "langfuse.observation.input", "langfuse.observation.output"
_USAGE, _LEVEL = "langfuse.observation.usage_details", "langfuse.observation.level"
_APP_ROOT, _TAGS = "langfuse.internal.is_app_root", METADATA + "tags"
_AGENT_NAME, _NODE, _PATH = (
    METADATA + key for key in (langgraph.AGENT_NAME, langgraph.NODE, langgraph.PATH)
)

_KINDS: dict[str, Kind] = {
    "agent": "agent",
    "generation": "model",
    "tool": "tool",
    "chain": "chain",
}
_LANGCHAIN_KEYS = (METADATA + "is_langchain_root", METADATA + "langgraph_step", _AGENT_NAME)
_SEQUENCE_TAGS = ("seq:step:", "map:key:")


def matches(span: Span) -> bool:
    """Observations. Other spans can have the attributes of their trace, but no type."""
    return KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """By type, LangChain runs by their metadata."""
    named = str(span.attributes[KIND])
    if named in ("agent", "chain") and _is_langchain(span):
        metadata = {
            langgraph.AGENT_NAME: decoded(span.attributes.get(_AGENT_NAME)),
            langgraph.NODE: decoded(span.attributes.get(_NODE)),
        }
        return langgraph.kind(span.name, metadata)
    return _KINDS.get(named, "other")


def _is_langchain(span: Span) -> bool:
    attributes = span.attributes
    if any(key in attributes for key in _LANGCHAIN_KEYS):
        return True
    tags = str(attributes.get(_TAGS))
    return any(tag in tags for tag in _SEQUENCE_TAGS)


def failure(span: Span) -> str | None:
    """The status message of an observation with the level `ERROR`."""
    attributes = span.attributes
    if attributes.get(_LEVEL) != "ERROR":
        return None
    return as_id(attributes.get("langfuse.observation.status_message")) or "error"


def _graph_name(span: Span) -> str | None:
    return langgraph.enclosing_graph(decoded(span.attributes.get(_PATH)))


def _tool_definitions(span: Span) -> Any:
    """The tools in the input of a model: beside its messages, or in the list of them."""
    raw = span.attributes.get(_INPUT)
    if not isinstance(raw, str) or '"parameters"' not in raw:
        return None
    prompt = decoded(raw)
    if isinstance(prompt, dict):
        return prompt.get("tools")
    if not isinstance(prompt, list):
        return None
    return [
        item for item in prompt if isinstance(item, dict) and item.get("role") == "tool"
    ] or None


def _tokens(side: str, openai_total: str) -> Derived:
    """The sum of the buckets of one `side`, or the count that OpenAI calls `openai_total`, which is
    the sum already.
    """

    def count(span: Span) -> int | None:
        details = members(span.attributes.get(_USAGE))
        if openai_total in details:
            return as_int(details[openai_total])
        counts = (
            as_int(value)
            for bucket, value in details.items()
            if side in bucket and not _is_counted_elsewhere(bucket)
        )
        known = [count for count in counts if count is not None]
        if known:
            return sum(known)
        return None

    return Derived(count, reads=(_USAGE,))


def _is_counted_elsewhere(bucket: str) -> bool:
    """Whether other buckets include the tokens of this one: priority tokens, and Anthropic's cache
    writes by time to live.
    """
    return "priority" in bucket or bucket.startswith("cache_creation_ephemeral")


def _may_be_entry(span: Span) -> bool:
    if span.parent_id is None or _APP_ROOT.encode() in span.raw:
        return True
    return langgraph.may_be_entry(span)


_TOKENS_IN = _tokens("input", "prompt_tokens")
_TOKENS_OUT = _tokens("output", "completion_tokens")

LANGFUSE = Dialect(
    name="langfuse",
    before=("mlflow",),
    scopes=("langfuse-sdk",),
    key_prefixes=(KIND,),
    matches=matches,
    kind=kind,
    # Not the tags: users write them. Without them, steps of a LangChain sequence outside of
    # LangGraph keep the kind that Langfuse gives them.
    reads=(KIND, _LEVEL, _APP_ROOT, *_LANGCHAIN_KEYS, _NODE),
    may_be_entry=_may_be_entry,
    name_of=lambda span: as_id(span.name),
    failure=failure,
    content_setting="LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true",
    unwrap_arguments=callable_arguments,
    fields=Fields(
        agent_name=(JsonMember(_AGENT_NAME, ()), Derived(_graph_name, reads=(_PATH,))),
        conversation_id=(
            JsonMember(METADATA + langgraph.THREAD, ()),
            JsonMember(METADATA + "session_id", ()),
        ),
        user_id=(JsonMember(METADATA + "user_id", ()),),
        call_id=(JsonMember(METADATA + "tool_call_id", ()),),
        arguments=(_INPUT,),
        result=(_OUTPUT,),
        response_model=("langfuse.observation.model.name",),
        input_tokens=(_TOKENS_IN,),
        output_tokens=(_TOKENS_OUT,),
        cached_tokens=(
            JsonMember(_USAGE, ("input_cache_read",)),
            JsonMember(_USAGE, ("cache_read_input_tokens",)),
            JsonMember(_USAGE, ("input_cached_tokens",)),
        ),
        cache_write_tokens=(
            JsonMember(_USAGE, ("input_cache_creation",)),
            JsonMember(_USAGE, ("cache_creation_input_tokens",)),
        ),
        total_input_tokens=(_TOKENS_IN,),
        total_output_tokens=(_TOKENS_OUT,),
        input_messages=(_INPUT,),
        output_messages=(_OUTPUT,),
        agent_input=(_INPUT,),
        agent_output=(_OUTPUT,),
        tool_definitions=(Derived(_tool_definitions),),
    ),
)
