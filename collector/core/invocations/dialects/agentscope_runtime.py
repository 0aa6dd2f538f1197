"""AgentScope Runtime: the requests that its runner serves, and functions with its decorator.

Recognised by its scope; `gen_ai.span.kind` tells what a span represents. Inputs are JSON in
`input.value`: the arguments of a function, or a request with messages; `output.value` is what was
returned, for a runner the whole response. The runner's own span has no name of an agent. The ids
that the spans state as those of responses are those of requests.

The status is set to OK when a span begins, and stays so: a function has failed if it has recorded
an exception, a runner if its response says so.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.exceptions import recorded_exception
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember, members
from pathgauge.collector.core.invocations.messages.unwrap import texts_of_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "agentscope_runtime"

_KIND, _INPUT, _OUTPUT = "gen_ai.span.kind", "input.value", "output.value"
_RUNNER = "agent_step"

_KINDS: dict[str, Kind] = {
    "AGENT": "agent",
    "AGENT_STEP": "agent",
    "CHAIN": "chain",
    "LLM": "model",
    "TOOL": "tool",
    "FUNCTION_CALL": "tool",
}


def matches(span: Span) -> bool:
    """Spans of its own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By the stated kind. A runner is around the agent that serves the request."""
    if span.name == _RUNNER:
        return "chain"
    return _KINDS.get(str(span.attributes.get(_KIND)), "other")


def failure(span: Span) -> str | None:
    """The exception of a function, or the error in the response of a runner."""
    recorded = recorded_exception(span)
    if recorded is not None or span.name != _RUNNER:
        return recorded
    return as_id(members(members(span.attributes.get(_OUTPUT)).get("error")).get("message"))


def _asked(span: Span) -> Any:
    given = members(span.attributes.get(_INPUT))
    request = members(given.get("request"))
    return request.get("input") if request else texts_of_arguments(dict(given))


def _answered(span: Span) -> Any:
    output = decoded(span.attributes.get(_OUTPUT))
    if span.name == _RUNNER:
        return members(output).get("output")
    return output


AGENTSCOPE_RUNTIME = Dialect(
    name="agentscope-runtime",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_KIND,),
    may_be_entry=lambda span: span.parent_id is None,
    name_of=lambda span: None if span.name == _RUNNER else as_id(span.name),
    failure=failure,
    fields=Fields(
        conversation_id=(JsonMember(_INPUT, ("request", "session_id")),),
        user_id=(JsonMember(_INPUT, ("request", "user_id")),),
        arguments=(_INPUT,),
        result=(_OUTPUT,),
        request_model=(JsonMember(_INPUT, ("model",)),),
        response_model=(JsonMember(_OUTPUT, ("model",)),),
        input_tokens=(JsonMember(_OUTPUT, ("usage", "prompt_tokens")),),
        output_tokens=(JsonMember(_OUTPUT, ("usage", "completion_tokens")),),
        input_messages=(JsonMember(_INPUT, ("messages",)),),
        output_messages=(JsonMember(_OUTPUT, ("choices",)),),
        agent_input=(Derived(_asked),),
        agent_output=(Derived(_answered),),
        tool_definitions=(JsonMember(_INPUT, ("tools",)),),
    ),
)
