"""ADK spans that OpenInference has modified."""

from __future__ import annotations

import json

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, trace_id
from support.dialects import read

OI = "openinference.instrumentation.google_adk"


def test_details_of_model_calls_on_an_agent_span_are_ignored() -> None:
    given = {"new_message": {"role": "user", "parts": [{"text": "Refund it"}]}, "user_id": "u"}
    spans = (
        span(
            "run",
            "invocation [app]",
            {"openinference.span.kind": "CHAIN", "input.value": json.dumps(given)},
            end=9,
            scope=OI,
        ),
        span(
            "around",
            "agent_run [a]",
            {"openinference.span.kind": "AGENT", "agent.name": "a"},
            parent="run",
            start=1,
            end=8,
            scope=OI,
        ),
        span(
            "agent",
            "invoke_agent a",
            {
                "gen_ai.operation.name": "generate_content",
                "openinference.span.kind": "LLM",
                "gen_ai.usage.input_tokens": 100,
                "llm.output_messages.0.message.role": "model",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "mixed_up",
                "output.value": "not the answer",
            },
            parent="around",
            start=2,
            end=7,
            scope="gcp.vertex.agent",
        ),
        span(
            "t",
            "execute_tool look",
            {"gen_ai.tool.name": "look", "input.value": "{}"},
            parent="agent",
            start=3,
            scope=OI,
        ),
        span(
            "merged",
            "execute_tool (merged)",
            {"gen_ai.tool.name": "(merged tools)"},
            parent="agent",
            start=4,
            scope=OI,
        ),
    )
    [one] = read(Trace("", trace_id("trace"), spans))
    assert (one.agent, one.user_input, one.final_response) == ("a", "Refund it", None)
    assert ([call.name for call in one.tool_calls], one.sub_agents, one.model_calls) == (
        ["look"],
        (),
        (),
    )
    assert (one.input_tokens, one.output_tokens, sorted(one.flags)) == (
        None,
        None,
        ["llm_detail_unreliable"],
    )
