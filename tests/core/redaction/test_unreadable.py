"""Objects in text that is not JSON as a whole, and records that cannot be parsed: rules for keys
apply there too, and nothing raises.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.invocations.messages.literals import MAX_LITERAL_CHARACTERS
from pathgauge.collector.core.otlp.spans import LogRecord, Resource, Scope, Span
from pathgauge.collector.core.redaction import KeyRule, Redactor, Rules
from pathgauge.collector.testing import log, span
from support.dialects import INSTALLED
from support.examples import examples

ARGUMENTS = "gen_ai.tool.call.arguments"


def redacted(
    text: str | bytes, match: str = "*.password", action: Any = "drop", **changes: Any
) -> Any:
    """What becomes of the arguments of a tool; twice redacted, they are the same."""
    redactor = Redactor(Rules((KeyRule(match, action),), **changes), {}, b"salt", INSTALLED)
    once = redactor.spans([span("a", "chat", {ARGUMENTS: text})]).records
    assert redactor.spans(once).records == once
    return once[0].attributes.get(ARGUMENTS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{'password': 'hunter2', 'q': 'a', 't': (1, None, True)}",
            "{'q': 'a', 't': (1, None, True)}",
        ),
        ("[{'password': 'hunter2', 3: {'a'}, 'b': b'x'}]", "[{3: {'a'}, 'b': b'x'}]"),
        ('{"password": "hunter2", "q": NaN}', '{"q": NaN}'),
        ('{"password": "hunter2", "q": "\\ud800"}', '{"q": "\\ud800"}'),
        ("{'password': 'hunter2', 'q': '\\ud800'}", "{'q': '\\ud800'}"),
        ('{"password": "hunter2"}\n{"password": "hunter2", "q": 1}\n', '{}\n{"q":1}\n'),
        ('```json\n{"password": "hunter2", "q": 1}\n```', '```json\n{"q":1}\n```'),
        ('args: {"password": "hunter2"}.', "args: {}."),
        ("[tool] args: {'password': 'hunter2'}", "[tool] args: {}"),
        (json.dumps({"args": "{'password': 'hunter2'}"}), '{"args":"{}"}'),
        (
            json.dumps({"args": "{'password': 'hunter2', 'mail': 'a@b.org'}"}),
            "{\"args\":\"{'mail': '[email]'}\"}",
        ),
    ],
)
def test_rules_for_keys_reach_into_objects_however_they_are_written(
    text: str, expected: str
) -> None:
    assert redacted(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter2", "q": "aaaaaaa',
        '{"args": "{\\"password\\": \\"hunter2',
        '{"p\\u0061ssword": "hunter2", "q": "aaaaaaa',
        "{'password': 'hunter2', 'q': ",
        "{password: hunter2}",
        "{'password': hunter2, [1]: 2}",
        '{"a": {}} and {"password": "hunter2"}',
        '"password": "hunter2"} {"a": 1}',
        '{"a": 1} {"password": "hunter2',
        "{'a': {'password': 'hunter2'}" + " " * MAX_LITERAL_CHARACTERS + "}",
        '{"a":' * 120 + '{"password": "hunter2"}' + "}" * 120,
    ],
)
@pytest.mark.parametrize("action", ["mask", "hash", "drop"])
def test_an_object_that_cannot_be_read_is_masked_where_a_rule_may_match_in_it(
    text: str, action: str
) -> None:
    assert redacted(text, action=action) == "[REDACTED]"


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ("*", True),
        ("gen_ai.*", True),
        (f"{ARGUMENTS}.card.number", True),
        (f"{ARGUMENTS}.c*number", True),
        (f"{ARGUMENTS}.card?number", True),
        (f"{ARGUMENTS}.card[.]number", True),
        (f"{ARGUMENTS}.car", False),
        (f"{ARGUMENTS}.umber", False),
        ("*umber", True),
        ("user.*", False),
        ("user.number", False),
    ],
)
def test_only_rules_that_may_match_below_the_attribute_mask_it(match: str, found: bool) -> None:
    text = '{"card": {"number": 4711, "kind": "x'
    assert redacted(text, match, "mask") == ("[REDACTED]" if found else text)


@pytest.mark.parametrize(
    "text",
    [
        "{'user': 'hunter2'}",
        "my password: see below",
        '{"q": "aaa',
        "password {x}",
        "{password}",
        '{"passwords": 1, "q": "',
    ],
)
def test_text_in_which_no_rule_matches_stays(text: str) -> None:
    assert redacted(text) == text


def test_keep_rules_apply_to_text_that_cannot_be_parsed() -> None:
    text = '{"password": "hunter2", "q": "aaaaaaa'
    assert redacted(text, action="keep") == text


def test_bytes_that_are_no_text_are_redacted() -> None:
    assert redacted(b'{"password": "x", "q": "\\u20ac\xff"}') == b'{"q":"?\xff"}'


PIECES = st.lists(
    st.sampled_from(
        [
            *"{}[]()\"',:\\\n ",
            "'password'",
            '"password"',
            "'\\ud800'",
            "\\ud800",
            "NaN",
            "1e999",
            "9" * 30,
            "1j",
            "b'x'",
            "...",
        ]
    ),
    max_size=12,
).map("".join)
CALL = (
    "{'type': 'tool_call', 'name': '\\ud800', 'id': '\\udfff', 'arguments': {'password':"
    " 'hunter2'}}"
)
MESSAGE = f"[{{'role': 'assistant', 'finish_reason': '\\ud800', 'parts': [{CALL}]}}]"


@settings(max_examples=examples(150), deadline=None)
@given(PIECES, st.booleans(), st.sampled_from(["mask", "hash", "drop"]))
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_no_text_makes_redaction_raise(text: str, content: bool, action: Any) -> None:
    redactor = Redactor(
        Rules((KeyRule("*.password", action),), content=content), {}, b"salt", INSTALLED
    )
    attributes = {
        "gen_ai.operation.name": "chat",
        **dict.fromkeys(
            (ARGUMENTS, "gen_ai.output.messages", "ai.response.toolCalls", "metadata", "x"), text
        ),
    }
    redactor.spans(
        [
            span(
                "a",
                "chat",
                attributes,
                resource={"a": text},
                events=[("gen_ai.choice", {"message": text, "finish_reason": text})],
            )
        ]
    )
    redactor.logs(
        [log("gen_ai.choice", {"a": text}, body={"message": text, "finish_reason": text})]
    )


def test_messages_with_lone_surrogates_leave_no_content() -> None:
    redactor = Redactor(Rules(content=False), {}, b"salt", INSTALLED)
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": MESSAGE,
        "metadata": "{'thread_id': '\\ud800'}",
    }
    result = redactor.spans([span("a", "chat", attributes)])
    assert (len(result.records), b"hunter2" in result.body) == (1, False)


def test_of_a_record_that_cannot_be_read_only_ids_and_times_are_kept() -> None:
    class Failing(Registry):
        def classify(self, span: Span) -> Any:
            raise TypeError(span.name)

    redactor = Redactor(Rules(content=False), {}, b"salt", Failing(INSTALLED.dialects))
    sent = span(
        "a", "hunter2", {"gen_ai.tool.name": "pay", "x": "hunter2"}, parent="b", error="hunter2"
    )
    result = redactor.spans([sent])
    [one] = result.records
    assert (one.trace_id, one.span_id, one.parent_id, one.name) == (
        sent.trace_id,
        sent.span_id,
        sent.parent_id,
        "[REDACTED]",
    )
    assert (one.start_ns, one.end_ns, one.proto.kind, one.attributes) == (
        sent.start_ns,
        sent.end_ns,
        sent.proto.kind,
        {"pathgauge.redacted": True},
    )
    assert (result.counts, b"hunter2" in result.body) == ({("unreadable", "drop"): 1}, False)


def test_of_a_log_record_that_cannot_be_read_only_ids_and_times_are_kept() -> None:
    class Failing(LogRecord):
        @property
        def event_name(self) -> str:
            raise SystemExit("hunter2")  # as a dialect of a third party may

    sent = log("hunter2", {"x": "hunter2"}, body="hunter2", span="b")
    result = Redactor(Rules(content=False), {}, b"salt", INSTALLED).logs(
        [Failing(sent.raw, sent.resource, sent.scope)]
    )
    [one] = result.records
    assert (one.trace_id, one.span_id, one.attributes) == (
        sent.trace_id,
        sent.span_id,
        {"pathgauge.redacted": True},
    )
    assert one.proto.time_unix_nano == sent.proto.time_unix_nano
    assert (result.counts, b"hunter2" in result.body) == ({("unreadable", "drop"): 1}, False)


def test_of_a_resource_that_cannot_be_read_nothing_is_kept() -> None:
    sent = span("a", "chat", {"x": "kept"})
    result = Redactor(Rules(), {}, b"salt", INSTALLED).spans(
        [Span(sent.raw, Resource({"x": "hunter2", "n": 2**70}), sent.scope)]
    )
    [one] = result.records
    assert (one.resource, one.attributes, result.counts) == (
        Resource({}),
        {"x": "kept"},
        {("unreadable", "drop"): 1},
    )


def test_of_a_scope_that_cannot_be_read_nothing_is_kept() -> None:
    """Half of a surrogate pair has no UTF-8."""
    sent = span("a", "chat", {"x": "kept"})
    unreadable = Span(sent.raw, sent.resource, Scope("hunter2 \ud800"))
    healthy = span("b", "chat", {"x": "kept"}, scope="openai")
    result = Redactor(Rules((KeyRule("scope.name", "mask"),)), {}, b"salt", INSTALLED).spans(
        [unreadable, healthy]
    )
    assert [one.scope for one in result.records] == [Scope(), Scope("[REDACTED]")]
    assert [one.attributes for one in result.records] == [{"x": "kept"}] * 2
    assert (result.counts["unreadable", "drop"], b"hunter2" in result.body) == (1, False)


@pytest.mark.parametrize("levels", [20, pytest.param(400, marks=pytest.mark.slow)])
def test_too_deeply_nested_texts_are_masked(levels: int) -> None:
    """The quotation marks of each are escaped once more than those around it."""
    text = (
        '"'
        + "".join("\\" + "u005c" * level + "u0022" for level in range(levels))
        + " alice@example.com"
    )
    result = Redactor(Rules(), {}, b"salt", INSTALLED).spans(
        [span("a", "chat", {"x": text}, scope=text)]
    )
    [one] = result.records
    assert (one.name, "[REDACTED]" in one.attributes["x"], "[REDACTED]" in one.scope.name) == (
        "chat",
        True,
        True,
    )
    assert (
        result.counts["unreadable", "drop"],
        b"alice" in result.body,
        len(result.body) < 4 * len(text) + 4096,
    ) == (2, False, True)


def escaped(level: int) -> str:
    """A quotation mark inside of so many texts."""
    return "\\" + "u005c" * (level - 1) + "u0022" if level else '"'


@pytest.mark.parametrize(
    "inside", ["alice@example.com", "alice@example.com " + "\U0001f600" * 1000]
)
@pytest.mark.parametrize("begin", ["", "text: "])
@pytest.mark.parametrize("levels", [3, 8, 24, 90])
def test_encoded_text_does_not_grow_many_times(levels: int, begin: str, inside: str) -> None:
    """Each text inside of another doubles its escapes: 24 of them in 2 KB would be written as 32
    MB.
    """
    opening = [escaped(level) for level in range(levels)]
    text = begin + "".join([*opening, inside, *reversed(opening)])
    result = Redactor(Rules(), {}, b"salt", INSTALLED).spans([span("a", "chat", {"x": text})])
    assert (b"alice" in result.body, len(result.body) < 16 * len(text) + 4096) == (False, True)
    assert result.records[0].name == "chat"
