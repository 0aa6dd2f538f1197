"""What is understood of a capture when the dialect of its framework is left out, field by field.

Each field of each expected invocation is right, missing (`null`, or absent), or wrong, which is
worse: something else than what happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

Verdict = Literal["right", "missing", "wrong"]
Judged = tuple[str, Verdict]
"""A field and its verdict."""

_FIELDS = ("agent", "user_input", "final_response", "model", "conversation_id", "scenario_id")


def judged(
    expected: Sequence[Mapping[str, Any]], read: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], list[Judged]]]:
    """The invocations that were read, or `{}`, with the verdicts on the fields that really
    exist. Invocations of a trace are paired by their spans, by what was asked, else in their order.
    """
    rest = list(read)
    for truth in expected:
        traces = [one for one in rest if one["trace_id"] == truth["trace_id"]]
        same = [one for one in traces if one["span_id"] == truth["span_id"]]
        asked = [one for one in traces if one["user_input"] == truth["user_input"]]
        found = next(iter(same or asked or traces), {})
        if found:
            rest.remove(found)
        yield found, [("invocation", "right" if found else "missing"), *_fields(truth, found)]
    for one in rest:
        yield one, [("invocation", "wrong")]


def _fields(truth: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[Judged]:
    for field in _FIELDS:
        if truth[field] is not None:
            yield field, _verdict(truth[field], found.get(field))
    tokens = truth["input_tokens"], truth["output_tokens"]
    if tokens != (None, None):
        got = found.get("input_tokens"), found.get("output_tokens")
        yield "tokens", _verdict(tokens, None if got == (None, None) else got)
    if found:
        yield "error", "right" if truth["error"] == found["error"] else "wrong"
    else:
        yield "error", "missing"
    yield from _calls(truth["tool_calls"], found.get("tool_calls"))


def _calls(
    truth: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]] | None
) -> Iterator[Judged]:
    names = [one["name"] for one in truth]
    got = [one["name"] for one in found or ()]
    if Counter(got) == Counter(names):
        yield "tools", "right"
    else:
        yield "tools", "missing" if not Counter(got) - Counter(names) else "wrong"
    rest = list(found or ())
    for call in truth:
        same = [one for one in rest if one["name"] == call["name"]]
        equal = [one for one in same if one["arguments"] == call["arguments"]]
        one = next(iter(equal or same), {})
        if one:
            rest.remove(one)
        for field in ("arguments", "result"):
            if call[field] is not None:
                yield field, _verdict(call[field], one.get(field))


def _verdict(truth: Any, found: Any) -> Verdict:
    if found is None:
        return "missing"
    return "right" if found == truth else "wrong"
