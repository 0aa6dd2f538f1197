"""The values that a metric function of Google's ADK receives, with ADK's attribute names.

ADK itself is not imported. Something that was not recorded is neither `None` nor empty: reading it
raises `NotKnownError`, which ADK's own classes cannot do. If a metric function has imported ADK, it
hands invocations back in a `PerInvocationResult`, whose fields accept ADK's classes only. So an
invocation then gives ADK's class as its `__class__`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from pathgauge.scorers.adapters.inputs import arguments, expected_arguments, structured
from pathgauge.scorers.adapters.known import Known, KnownAttributes
from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, ToolCall


class _AdkValue(KnownAttributes):
    """Gives the class of this name in ADK as its own, once ADK is imported."""

    _adk_name: ClassVar[str]

    @property
    def __class__(self) -> type:
        """The class that `isinstance` sees."""
        return getattr(sys.modules.get(_ADK_MODULE), type(self)._adk_name, type(self))

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise AttributeError("the class of a value cannot be changed")


class _Invocation(_AdkValue):
    _adk_name = "Invocation"


class _IntermediateData(_AdkValue):
    _adk_name = "IntermediateData"


def eval_metric(name: str, criterion: Mapping[str, Json] | None) -> KnownAttributes:
    """ADK's `EvalMetric`. Its `threshold` is `None`, as for every custom metric in ADK: the
    threshold is that of the criterion.
    """
    return _value(
        metric_name=name,
        threshold=None,
        criterion=None if criterion is None else _value(**criterion),
        custom_function_path=None,
    )


def actual_invocation(actual: Invocation) -> KnownAttributes:
    """ADK's `Invocation`, of what an agent did."""
    uses = responses = None
    if not tools_unknown(actual):
        uses = [_function_call(call) for call in actual.tool_calls]
        responses = [_function_response(call) for call in actual.tool_calls]
    data = {"tool_uses": uses, "tool_responses": responses, "intermediate_responses": None}
    entries = {
        **_COMMON,
        "invocation_id": actual.trace_id,
        "user_content": _content("user", actual.user_input),
        "final_response": _content("model", actual.final_response),
        "intermediate_data": _IntermediateData(Known(data, _UNKNOWN_DATA)),
        "creation_timestamp": (actual.start_ns or 0) / 1e9,
        "duration": actual.duration_s,
    }
    return _Invocation(Known(entries, _UNKNOWN))


def expected_invocation(expected: ReferenceTurn) -> KnownAttributes:
    """ADK's `Invocation`, of a reference. What the reference does not expect is `None`."""
    data = None
    if expected.tool_calls is not None:
        uses = [
            KnownAttributes(
                Known(
                    {"id": None, "name": call.name, "args": expected_arguments(call.arguments)},
                    {"args": "no_reference"},
                )
            )
            for call in expected.tool_calls
        ]
        entries = {"tool_uses": uses, "tool_responses": [], "intermediate_responses": []}
        data = _IntermediateData(Known(entries, {}))
    return _Invocation(
        Known(
            {
                **_COMMON,
                "invocation_id": "",
                "user_content": _content("user", expected.user_input or ""),
                "final_response": _content("model", expected.response),
                "intermediate_data": data,
                "creation_timestamp": 0.0,
                "duration": None,
            },
            {},
        )
    )


_ADK_MODULE = "google.adk.evaluation.eval_case"
_COMMON = {"inference_call_count": None, "rubrics": None, "app_details": None}
_UNKNOWN: Mapping[str, Reason] = {
    "user_content": "not_applicable",
    "final_response": "response_not_recorded",
}
_UNKNOWN_DATA: Mapping[str, Reason] = {
    "tool_uses": "tools_not_recorded",
    "tool_responses": "tools_not_recorded",
    "intermediate_responses": "texts_not_recorded",
}


def _value(**entries: Any) -> KnownAttributes:
    return KnownAttributes(Known(entries, {}))


def _content(role: str, text: str | None) -> KnownAttributes | None:
    if text is None:
        return None
    part = _value(text=text, thought=None, function_call=None, function_response=None)
    return _value(role=role, parts=[part])


def _function_call(call: ToolCall) -> KnownAttributes:
    entries = {"id": call.id, "name": call.name, "args": arguments(call)}
    return KnownAttributes(Known(entries, {"args": "args_not_recorded"}))


def _function_response(call: ToolCall) -> KnownAttributes:
    response = structured(call.result)
    if response is None and call.error is not None:
        response = {"error": call.error}
    elif response is not None and not isinstance(response, dict):
        response = {"result": response}
    entries = {"id": call.id, "name": call.name, "response": response}
    return KnownAttributes(Known(entries, {"response": "results_not_recorded"}))
