"""`pathgauge learn`: the proposed table reads what it was learned from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from typer.testing import Result

from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.testing import span

Run = Callable[..., Result]

STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("run", {"step": "agent", "agent_name": "support", "thread_id": "t1"}),
    (
        "ask 1",
        {
            "step_type": "llm",
            "prompt": [{"role": "user", "content": "Secret?"}],
            "completion": {"role": "assistant", "content": "No."},
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4},
            "model": "m1",
        },
    ),
    ("do", {"step_type": "tool", "tool_name": "find", "arguments": {"a@b": 1}, "result": "ok"}),
    ("think", {"thought": "hm"}),
)


def spans() -> list[Span]:
    found = []
    for number, (name, attributes) in enumerate(STEPS):
        keys = {
            f"acme.{'step_type' if key == 'step' else key}": value
            if isinstance(value, str)
            else json.dumps(value)
            for key, value in attributes.items()
        }
        parent = "run" if number else None
        found.append(span(name, name, keys, parent=parent, start=number, end=number + 1))
    return found


@pytest.fixture
def traces(folder: Path) -> str:
    scope = ScopeSpans(
        scope=InstrumentationScope(name="acme.agents"), spans=[one.proto for one in spans()]
    )
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[scope])])
    (folder / "traces").write_bytes(request.SerializeToString())
    return "traces"


def test_the_proposal_reads_the_telemetry_that_it_was_learned_from(
    run: Run, folder: Path, traces: str
) -> None:
    learned = run("learn", traces)
    assert (learned.exit_code, learned.stderr) == (0, "")
    (folder / "pathgauge.yaml").write_text(learned.stdout)
    result = run("invocations", "-c", "pathgauge.yaml", traces)
    assert (result.exit_code, result.stderr) == (0, "")
    read = json.loads(result.stdout)
    assert (read["dialect"], read["flags"]) == ("acme_agents", [])
    assert (read["agent"], read["conversation_id"], read["model"]) == ("support", "t1", "m1")
    assert (read["user_input"], read["final_response"]) == ("Secret?", "No.")
    assert (read["input_tokens"], read["output_tokens"]) == (10, 2)
    assert [(one["name"], one["arguments"], one["result"]) for one in read["tool_calls"]] == [
        ("find", {"a@b": 1}, "ok")
    ]


def test_the_evidence_has_shapes_and_no_content_unless_asked(run: Run, traces: str) -> None:
    text = run("learn", traces).stdout
    assert "# 1 of 1 span have acme.prompt: [{role: str, content: str}]\n      input_m" in text
    assert "# 1 of 1 span have acme.arguments: {...: int}" in text
    assert not any(content in text for content in ("Secret", "No.", "a@b", "m1", "support"))
    assert "Secret?" in run("learn", "--content", traces).stdout


def test_what_was_not_found_is_listed(run: Run, traces: str) -> None:
    text = run("learn", traces).stdout
    assert "# Not found: agent_input, agent_output, response_model, finish_reasons, call_id" in text
    assert '# Not understood: 1 span "think"' in text


def test_nothing_is_proposed_for_telemetry_that_is_understood(run: Run, folder: Path) -> None:
    known = span("a", "invoke_agent a", {"gen_ai.agent.name": "a"})
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[known.proto])])]
    )
    (folder / "traces").write_bytes(request.SerializeToString())
    result = run("learn", "traces")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "pathgauge: nothing to propose: dialects read 1 of 1 span\n"


def test_spans_whose_names_do_not_speak_of_agents_are_not_called_understood(
    run: Run, folder: Path
) -> None:
    one = span("a", "acme run", {"acme.step": "run", "acme.agent": "help_desk"})
    scope = ScopeSpans(scope=InstrumentationScope(name="acme.agents"), spans=[one.proto])
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[scope])])
    (folder / "traces").write_bytes(request.SerializeToString())
    assert run("learn", "traces").stderr == (
        "pathgauge: nothing to propose: dialects read 0 of 1 span; the names in the others do not"
        " show that they are about agents\n"
    )


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"scopes": ["a"]}, "found neither kinds nor names"),
        ({"scopes": ["a"], "kinds": {"x": "tool"}}, "found kinds without kind"),
        ({"scopes": ["a"], "names": {"x": "tool"}, "fields": {"nam": "a"}}, "found nam, which"),
        ({"scopes": ["a"], "names": {"x": "gadget"}}, "gadget"),
    ],
    ids=["no kinds", "no attribute of the kinds", "an unknown field", "an unknown kind"],
)
def test_a_table_that_cannot_be_used_stops_the_command(
    table: dict[str, Any], problem: str, run: Run, folder: Path, traces: str
) -> None:
    (folder / "pathgauge.yaml").write_text(yaml.safe_dump({"dialects": {"acme": table}}))
    result = run("invocations", "-c", "pathgauge.yaml", traces)
    assert result.exit_code == 2
    assert problem in result.stderr
