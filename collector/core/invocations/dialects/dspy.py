"""DSPy as instrumented by OpenInference: modules, adapters, model calls and tools.

Recognised by its scope. Spans are named after classes and functions (`ReAct.forward`,
`get_order.__call__`), so that a program has no name. The outermost module is the run: its input has
the fields of a signature, its output the prediction with what DSPy adds to it. Messages of model
calls are made from templates (`[[ ## field ## ]]`); they are never the words of the user, and not
the answer.

In `ReAct` the model names its tool in such a template, so that calls are known from the spans of
tools alone. In `ReActV2` calls are `repr`s of the client's objects. Both end with a tool of their
own, `finish` or `submit`. Tokens and conversations are never recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, members
from pathgauge.collector.core.invocations.dialects.openinference import (
    OPENINFERENCE,
    kind as stated_kind,
    read_messages,
)
from pathgauge.collector.core.invocations.messages.literals import Call, call
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "openinference.instrumentation.dspy"

MODULE = (".forward", ".aforward")
"""Ends of the names of the spans of modules."""

_TOOL = (".__call__", ".acall")
_INSIDE = ("Predict", "ChainOfThought", "ReAct")
"""Starts of the names of DSPy's own modules, which are usually inside of others."""

_INPUT, _OUTPUT = "input.value", "output.value"
_FIELD = "[[ ## "
_HISTORY = "messages=["
_ADDED = frozenset({"trajectory", "reasoning", "history", "termination_reason"})
"""Members of a prediction that DSPy adds to the outputs of the signature."""


def kind(span: Span) -> Kind | None:
    """The stated kind. Of the steps, only a module may be a run."""
    stated = stated_kind(span)
    if stated == "chain" and not span.name.endswith(MODULE):
        return "other"
    return stated


def name_of(span: Span) -> str | None:
    """The function of a tool. Names of modules are classes."""
    if span.name.endswith(_TOOL):
        return as_id(reduce(str.removesuffix, _TOOL, span.name))
    return None


def may_be_entry(span: Span) -> bool:
    """Modules without a parent, and those of the program."""
    if b"CHAIN" not in span.raw or not span.name.endswith(MODULE):
        return False
    return span.parent_id is None or not span.name.startswith(_INSIDE)


def _is_module(span: Span) -> bool:
    return span.scope.name == SCOPE and span.name.endswith(MODULE)


def question_of(span: Span) -> Any:
    """The only text among the inputs of a module, as a message."""
    if not _is_module(span):
        return None
    given = members(span.attributes.get(_INPUT))
    given = members(given["input_args"]) if "input_args" in given else given
    return question_in(given)


def question_in(inputs: Mapping[Any, Any]) -> Any:
    """The only text among the inputs of a signature, as a message."""
    text = only_text(inputs)
    return None if text is None else {"role": "user", "content": text}


def only_text(inputs: Mapping[Any, Any]) -> str | None:
    """What the user asked, if there is one text among the inputs of a signature."""
    texts = [
        value
        for key, value in inputs.items()
        if isinstance(value, str) and key not in _ADDED and not value.startswith(_HISTORY)
    ]
    return texts[0] if len(texts) == 1 else None


def prediction_of(span: Span) -> Any:
    """The outputs of the signature; the only one without its name."""
    if not _is_module(span):
        return None
    return answer_in(decoded(span.attributes.get(_OUTPUT)))


def answer_in(prediction: Any) -> Any:
    """The outputs of the signature in a prediction; the only one without its name."""
    if not isinstance(prediction, dict):
        return prediction
    outputs = {key: value for key, value in prediction.items() if key not in _ADDED}
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    return outputs or None


def read_templates(value: Any, role: str) -> tuple[Message, ...]:
    """Messages without the texts of templates."""
    listed = value if isinstance(value, list) else [value]
    return without_templates(read_messages(list(map(_with_calls, listed)), role))


def without_templates(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages; without their texts if one of them is made from a template."""
    if any(_FIELD in (message.text or "") for message in messages):
        return tuple(message._replace(text=None, hidden=True) for message in messages)
    return messages


def _with_calls(output: Any) -> Any:
    """An output of a model, in the form of OpenAI. Its calls are `repr`s."""
    written = output.get("tool_calls") if isinstance(output, dict) else None
    if not isinstance(written, list) or "text" not in output:
        return output
    calls = [one for one in map(_call, written) if one is not None]
    return {"role": "assistant", "content": output["text"], "tool_calls": calls}


def _call(text: Any) -> Any:
    try:
        return asked_call(call(str(text)))
    except ValueError:
        return None


def asked_call(written: Call) -> dict[str, Any]:
    """A call in the form of OpenAI, from an object of the client."""
    keywords = written.keywords
    function = keywords.get("function")
    return {
        "id": keywords.get("id"),
        "function": function.keywords if isinstance(function, Call) else None,
    }


DSPY = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE and OPENINFERENCE.matches(span),
    kind=kind,
    may_be_entry=may_be_entry,
    name_of=name_of,
    messages=read_templates,
    unwrap_arguments=callable_arguments,
    final_tools=("finish", "submit"),
    fields=replace(
        OPENINFERENCE.fields,
        output_messages=(*OPENINFERENCE.fields.output_messages, _OUTPUT),
        agent_input=(Derived(question_of),),
        agent_output=(),
        final_response=(Derived(prediction_of),),
    ),
)
