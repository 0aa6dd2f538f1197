"""DSPy as instrumented by OpenTelemetry: the agents `ReAct` and `ReActV2`, model calls and tools.

Recognised by its scope. It follows the GenAI conventions; an agent has the name of its class. What
models write is never the answer: they fill in templates (`[[ ## field ## ]]`), and an output with
tool calls, which `ReActV2` asks for, is the `repr` of a dict in a text. The span of the agent has
the answer.

It has the inputs of the signature, too: the only one as it is, several as an object in JSON, or in
a `repr` if one is no JSON, such as the `history`. Tool spans have no call ids, and `finish` and
`submit`, which end a run, have no spans.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dspy import asked_call, only_text
from pathgauge.collector.core.invocations.dialects.genai import GENAI
from pathgauge.collector.core.invocations.messages.literals import Call, call
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import decoded

SCOPE = "opentelemetry.instrumentation.genai.dspy"

_OUTPUT = "{'text': "
_INPUTS = "{'"


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages without the texts of models and their prompts. Prompts begin with a system message,
    so that a message alone is what an agent was asked.
    """
    messages = parse_messages(value, role)
    if role == "user" and len(messages) == 1:
        return tuple(map(_question, messages))
    return tuple(map(_with_calls, messages))


def _question(message: Message) -> Message:
    """The message with the only text among several inputs. A text that was the only input cannot be
    told from these if it is itself the JSON of several values.
    """
    inputs = _inputs(message.text or "")
    if not isinstance(inputs, dict) or len(inputs) < 2:
        return message
    text = only_text(inputs)
    return message._replace(text=text, hidden=text is None)


def _inputs(text: str) -> Any:
    return _written(text) if text.startswith(_INPUTS) else decoded(text)


def _with_calls(message: Message) -> Message:
    """The message with the calls in its text instead of that."""
    text = message.text or ""
    output = _written(text) if text.startswith(_OUTPUT) else None
    written = output.get("tool_calls") if isinstance(output, dict) else None
    if not isinstance(written, list):
        return message._replace(text=None, hidden=True)
    found = [asked_call(one) for one in written if isinstance(one, Call)]
    read = parse_messages([{"role": message.role, "tool_calls": found}], message.role)
    calls = tuple(one for inner in read for one in inner.calls)
    return message._replace(text=None, calls=calls, hidden=True)


def _written(text: str) -> Any:
    """The value of a `repr`; `None` if it is none."""
    try:
        return call(f"value({text})").positional[0]
    except (ValueError, IndexError):
        return None


DSPY_GENAI = replace(
    GENAI,
    before=("genai",),
    scopes=(SCOPE,),
    names=(),
    key_prefixes=(),
    matches=lambda span: span.scope.name == SCOPE,
    messages=read_messages,
    final_tools=("finish", "submit"),
    fields=replace(GENAI.fields, agent_output=("gen_ai.output.messages",)),
)
