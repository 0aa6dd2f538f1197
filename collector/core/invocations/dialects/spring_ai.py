"""Spring AI, by the observations of Micrometer: the GenAI conventions for model calls, and kinds of
its own for everything around them.

Recognised by attributes `spring.ai.*`; the scope is that of the application. `chat_client` is a
run, with the chain of its advisors inside; the last of these calls the model. Every value is text,
and `none` stands for a missing model. What was asked and answered is never on spans.

Up to 1.1 the client of a model carries out the tools itself, and each model call states the tokens
of all calls of its loop so far. When streaming, the next model call and its tools are inside the
first, which states the total. From 2.0 on an advisor carries out the tools, whose operation is then
`execute_tool`, and each model call states its own tokens.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

PREFIX = "spring.ai."

_KIND, _OPERATION = PREFIX + "kind", "gen_ai.operation.name"
_MODELS_TOOLS = PREFIX + "model.request.tool.names"
"""The only attribute of Spring AI's own on model calls. Those without tools have none."""

_KINDS: dict[str, Kind] = {"chat_client": "agent", "tool_call": "tool"}


def matches(span: Span) -> bool:
    """Spans with an attribute of Spring AI."""
    return any(key.startswith(PREFIX) for key in span.attributes)


def kind(span: Span) -> Kind | None:
    """By the stated kind. Model calls state none and follow the conventions."""
    if _KIND not in span.attributes:
        return None
    return _KINDS.get(str(span.attributes[_KIND]), "other")


def carried_out_by_model_client(tool: Span) -> bool:
    """Whether the client of the model carried out a tool: an advisor writes an operation of the
    conventions.
    """
    return tool.attributes.get(_OPERATION) == "framework"


SPRING_AI = Dialect(
    name="spring-ai",
    before=("langsmith",),
    key_prefixes=(PREFIX,),
    matches=matches,
    kind=kind,
    reads=(_KIND, _OPERATION, _MODELS_TOOLS),
    entry_names=("spring_ai chat_client",),
    content_setting="spring.ai.tools.observations.include-content=true",
    adds_up_usage=carried_out_by_model_client,
    fields=Fields(
        conversation_id=("spring.ai.chat.client.conversation.id",),
        tool_name=("spring.ai.tool.definition.name",),
        call_id=("spring.ai.tool.call.id",),
        arguments=("spring.ai.tool.call.arguments",),
        result=("spring.ai.tool.call.result",),
        tool_schema=("spring.ai.tool.definition.schema",),
    ),
)
