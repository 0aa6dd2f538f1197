"""Redaction of whole requests: actions, fields, and properties that always hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp.spans import LogRecord, Resource, Scope, Span
from pathgauge.collector.core.redaction import KeyRule, Redacted, Redactor, Rules
from pathgauge.collector.testing import log, span
from support.dialects import INSTALLED
from support.examples import examples
from support.planted import KINDS, VALUES, everywhere, logs, spans

EMAIL, CARD, PHONE = "alice@example.com", "4111 1111 1111 1111", "+49 30 1234567"


def redactor(*rules: tuple[str, Any], **changes: Any) -> Redactor:
    return Redactor(
        Rules(tuple(KeyRule(*rule) for rule in rules), **changes), {}, b"salt", INSTALLED
    )


def redacted(
    attributes: Mapping[str, Any], *rules: tuple[str, Any], **changes: Any
) -> dict[str, Any]:
    """The attributes, without the one that says that they were changed."""
    [one] = redactor(*rules, **changes).spans([span("a", "chat", attributes)]).records
    return {key: value for key, value in one.attributes.items() if key != "pathgauge.redacted"}


def bytes_of(redacted: Redacted[Any]) -> bytes:
    shared = [(one.resource, one.scope) for one in redacted.records]
    return redacted.body + repr(shared).encode() + b"".join(one.raw for one in redacted.records)


@pytest.mark.parametrize("hidden", VALUES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("action", ["mask", "hash", "drop"])
def test_no_secret_survives_wherever_it_is_put(kind: Any, hidden: str, action: str) -> None:
    secret = kind(Random(hidden))
    value = VALUES[hidden](secret)
    rules = redactor(detectors=dict.fromkeys(("token", "email", "card", "phone"), action))
    results: list[Redacted[Any]] = [
        rules.spans(list(spans(everywhere(secret, value)))),
        rules.logs(list(logs(everywhere(secret, value)))),
    ]
    core = secret.split()[-1].encode()
    assert [
        core in bytes_of(result) or secret.encode() in bytes_of(result) for result in results
    ] == [False, False]


HIDDEN = {
    "hunter2": ['DB_PASSWORD="hunter2hunter2"', "password=\thunter2", "password\t= 'hunter2'"],
    "abcd1234": ["Bearer\tabcd1234", "bearer\r\nabcd1234", "BEARER\nabcd1234"],
    "example.com": [
        "a\tb@example.com",
        '"john doe"@example.com',
        '"john\tdoe"@example.com',
        "\u2011b@example.com",
    ],
    "1234567": ["call\t0171/1234567", "\n-0171/1234567", "\t+491711234567\n"],
    "1111 1111": ["a\n4111 1111 1111 1111\n", "\x014111 1111 1111 1111"],
    "ghp_": ["\tghp_" + "a1" * 12],
    "eyJ": ["\teyJhbGciOiJI.eyJzdWIiOi.abcdef"],
    "MIIE": ["-----BEGIN PRIVATE KEY-----\nMIIEabc\n-----END PRIVATE KEY-----"],
}


@pytest.mark.parametrize(
    ("secret", "text"), [(secret, text) for secret, texts in HIDDEN.items() for text in texts]
)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: json.dumps({"k": text}),
        lambda text: json.dumps([text], ensure_ascii=False),
        json.dumps,
        lambda text: json.dumps({text: 1}),
        lambda text: "see " + json.dumps({"k": text}),
    ],
    ids=["member", "element", "text", "key", "in text"],
)
def test_no_secret_survives_however_deep_it_is_in_json_in_json(
    secret: str, text: str, wrap: Any
) -> None:
    kept, levels = [], text
    for level in range(5):
        found = [
            redacted({"a": value})["a"] for value in (levels, levels.encode(), {"b": [levels]})
        ]
        kept += [(level, one) for one in found if secret in str(one)]
        levels = wrap(levels)
    assert kept == []


TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            EMAIL,
            CARD,
            PHONE,
            "sk-proj-abcdefghijklmnop1234",
            "[email]",
            "@",
            "4111",
            "+49",
            "Bearer ",
            "[hash:abcdefghijklmnop]",
        ]
    ),
)
PIECES = st.lists(TEXTS, max_size=4).map("".join)
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | PIECES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=3),
    max_leaves=8,
)
ATTRIBUTES = st.dictionaries(
    PIECES,
    DATA | DATA.map(json.dumps) | DATA.map(json.dumps).map(json.dumps) | st.binary(max_size=20),
    max_size=4,
)
ACTIONS = st.sampled_from(["keep", "mask", "hash", "drop"])
RULES = st.builds(
    Rules,
    st.lists(
        st.builds(KeyRule, st.sampled_from(["*", "a*", "*.b", "span.name", "log.body"]), ACTIONS),
        max_size=2,
    ).map(tuple),
    st.dictionaries(st.sampled_from(["token", "email", "card", "phone"]), ACTIONS),
    st.booleans(),
)


@settings(max_examples=examples(80), deadline=None)
@given(RULES, st.lists(st.tuples(PIECES, ATTRIBUTES, ATTRIBUTES), max_size=3))
def test_redaction_is_idempotent_and_the_body_decodes_to_the_records(
    rules: Rules, planted: list[tuple[str, dict[str, Any], dict[str, Any]]]
) -> None:
    redactor = Redactor(rules, {}, b"salt", INSTALLED)
    resource = Resource(planted[0][1] if planted else {})
    sent = [
        span(str(n), name, own, resource=shared, error=name, events=[(name, own)])
        for n, (name, own, shared) in enumerate(planted)
    ]
    sent += [Span(one.raw, resource, Scope("scope", "1")) for one in sent]
    once = redactor.spans(sent)
    assert redactor.spans(once.records).records == once.records
    assert shared_and_raw(otlp.decode_traces(once.body).records) == shared_and_raw(once.records)
    logged = redactor.logs(
        [log(name, own, body=shared) for name, own, shared in planted], without_trace=2
    )
    again = redactor.logs(logged.records)
    assert shared_and_raw(again.records) == shared_and_raw(logged.records)
    decoded = otlp.decode_logs(logged.body)
    assert (shared_and_raw(decoded.records), decoded.without_trace) == (
        shared_and_raw(logged.records),
        2,
    )


def shared_and_raw(records: Iterable[Span | LogRecord]) -> list[tuple[Resource, Scope, bytes]]:
    return [(one.resource, one.scope, one.raw) for one in records]


@settings(max_examples=examples(50), deadline=None)
@given(DATA)
def test_a_request_without_findings_is_unchanged_to_the_byte(value: Any) -> None:
    sent = span(
        "a",
        "chat",
        {
            "key": "text",
            "nested": {"list": [1, "two", None]},
            "json": '{ "a" :1.10,"b":[ 1e2 ] }',
            "n": 4711,
        },
    )
    assert redactor().spans([sent]).records == (sent,)
    if not redactor().spans([span("b", "chat", {"a": value})]).counts:
        sent = span("b", "chat", {"a": value})
        assert redactor().spans([sent]).records == (sent,)


def test_masked_values_keep_the_shape_that_scoring_needs() -> None:
    attributes = {
        "gen_ai.tool.call.arguments": json.dumps(
            {
                "to": EMAIL,
                "amount": 12.5,
                "count": 3,
                "when": 1700000000123,
                "card": 4111111111111111,
            }
        ),
        "gen_ai.output.messages": [
            {
                "role": "assistant",
                "parts": [
                    {
                        "type": "tool_call",
                        "id": "call_41",
                        "name": "mail",
                        "arguments": {"to": EMAIL},
                    }
                ],
            }
        ],
        "text": f"my card is {CARD}",
        "gen_ai.usage.input_tokens": 4111111111111111,
    }
    assert redacted(attributes) == {
        "gen_ai.tool.call.arguments": (
            '{"to":"[email]","amount":12.5,"count":3,"when":1700000000123,"card":"[card]"}'
        ),
        "gen_ai.output.messages": [
            {
                "role": "assistant",
                "parts": [
                    {
                        "type": "tool_call",
                        "id": "call_41",
                        "name": "mail",
                        "arguments": {"to": "[email]"},
                    }
                ],
            }
        ],
        "text": "my card is [card]",
        "gen_ai.usage.input_tokens": 4111111111111111,
    }


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("keep", {"a.user": EMAIL, "b": {"user": [EMAIL], "n": 1}, "c": f'{{"user": "{EMAIL}"}}'}),
        (
            "mask",
            {
                "a.user": "[REDACTED]",
                "b": {"user": "[REDACTED]", "n": 1},
                "c": '{"user":"[REDACTED]"}',
            },
        ),
        ("drop", {"b": {"n": 1}, "c": "{}"}),
    ],
)
def test_a_pattern_decides_over_attributes_members_and_members_in_json(
    action: str, expected: dict[str, Any]
) -> None:
    attributes = {"a.user": EMAIL, "b": {"user": [EMAIL], "n": 1}, "c": f'{{"user": "{EMAIL}"}}'}
    assert redacted(attributes, ("*.user", action)) == expected


@pytest.mark.parametrize("action", ["keep", "mask", "hash"])
def test_a_secret_in_a_key_is_redacted_also_where_a_pattern_decides_about_the_value(
    action: str,
) -> None:
    key = f"user.{EMAIL}.password"
    members = {key: "x", EMAIL: {"password": "x"}}
    sent = {key: "x", "object": members, "json": json.dumps(members)}
    found = redacted(sent, ("*.password", action))
    assert EMAIL not in repr(found)
    assert len(found) == 3
    assert redacted(found, ("*.password", action)) == found


def test_a_text_hashes_alike_as_an_attribute_and_inside_json() -> None:
    found = redacted({"user.id": "4711", "args": '{"user":{"id":"4711"}}'}, ("*user.id", "hash"))
    assert json.loads(found["args"])["user"]["id"] == found["user.id"]


def test_the_first_pattern_that_matches_decides() -> None:
    assert redacted(
        {"user.id": "u", "user.name": "n"}, ("user.id", "keep"), ("user.*", "drop")
    ) == {"user.id": "u"}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("span.name", ("[REDACTED]", "lost", "[REDACTED]")),
        ("span.status.message", ("chat", "[REDACTED]", "chat")),
    ],
)
def test_patterns_match_fields_that_are_no_attributes(
    rule: str, expected: tuple[str, str, str]
) -> None:
    rules = redactor((rule, "mask"))
    [one] = rules.spans([span("a", "chat", error="lost")]).records
    [only] = rules.spans([span("b", "chat")]).records
    assert (one.name, one.status_message, only.name) == expected


@pytest.mark.parametrize("key", ["error.stack_trace", "name", "pathgauge.flags"])
def test_what_a_dialect_looks_at_is_redacted_where_it_may_hold_anything(key: str) -> None:
    assert EMAIL not in repr(redacted({key: f"of {EMAIL}"}))


def test_a_stack_trace_is_content() -> None:
    sent = {"error.stack_trace": "ValueError: no order of Ann", "error.code": "404"}
    assert redacted(sent, content=False) == {"error.code": "404"}


def test_only_patterns_redact_names_that_scoring_compares() -> None:
    attributes = {
        "gen_ai.tool.name": "mail@v2.final",
        "pathgauge.scenario.id": "refund@v2.final",
        "gen_ai.agent.name": "bob@example.com",
    }
    assert redacted(attributes) == attributes
    assert redacted(attributes, ("gen_ai.agent.name", "mask"))["gen_ai.agent.name"] == "[REDACTED]"


def test_objects_in_place_of_names_are_redacted() -> None:
    attributes: dict[str, Any] = {
        "gen_ai.request.model": {"secret": "x", "a": EMAIL},
        "gen_ai.agent.name": [{"a": [EMAIL]}],
    }
    assert redacted(attributes) == {
        "gen_ai.request.model": {"secret": "x", "a": "[email]"},
        "gen_ai.agent.name": [{"a": ["[email]"]}],
    }
    assert redacted({"gen_ai.request.model": {"secret": "x"}}, ("*.secret", "drop")) == {
        "gen_ai.request.model": {}
    }
    assert redacted({"gen_ai.tool.name": '{"secret": "x"}'}, ("*.secret", "drop")) == {
        "gen_ai.tool.name": "{}"
    }
    assert redacted({"gen_ai.tool.name": "mail@v2.final {}"}, ("*.secret", "drop")) == {
        "gen_ai.tool.name": "mail@v2.final {}"
    }


def test_ids_stay_different_from_each_other() -> None:
    conversations = {
        redacted({"gen_ai.conversation.id": f"{who}@example.com"})["gen_ai.conversation.id"]
        for who in ("alice", "bob")
    }
    assert len(conversations) == 2
    assert not any("example" in conversation for conversation in conversations)


def test_the_own_member_of_the_tracestate_stays() -> None:
    [one] = (
        redactor()
        .spans([span("a", "chat", trace_state=f"x={EMAIL}, pathgauge=c:refund%40v2.final;t:0")])
        .records
    )
    assert one.trace_state == "x=[email],pathgauge=c:refund%40v2.final;t:0"


def test_only_changed_records_are_marked() -> None:
    clean, changed, hashed = (
        redactor(("user.id", "hash"))
        .spans(
            [
                span("a", "chat", resource={"host.owner": EMAIL}),
                span("b", "chat", {"note": EMAIL}),
                span("c", "chat", {"user.id": "u"}),
            ]
        )
        .records
    )
    assert [one.attributes.get("pathgauge.redacted") for one in (clean, changed, hashed)] == [
        None,
        True,
        True,
    ]
    assert clean.resource.attributes == {"host.owner": "[email]"}


def test_fields_hidden_on_the_wire_are_not_kept() -> None:
    """Protobuf reads the last of a repeated field, and passes on unknown fields."""
    raw = b"\x2a\x11" + EMAIL.encode() + span("a", "chat").raw + b"\xfa\x07\x11" + EMAIL.encode()
    result = redactor().spans([Span(raw, Resource(), Scope())])
    assert EMAIL.encode() not in bytes_of(result)


def test_tenants_have_rules_of_their_own() -> None:
    both = Redactor(Rules(), {"a": Rules(detectors={})}, b"salt", INSTALLED)
    kept, masked = (
        both.spans([span("a", "chat", {"note": EMAIL}, tenant=tenant)]).records[0]
        for tenant in ("a", "b")
    )
    assert (kept.attributes["note"], masked.attributes["note"], masked.tenant) == (
        EMAIL,
        "[email]",
        "b",
    )


def test_what_was_redacted_is_counted() -> None:
    rules = redactor(("secret.*", "drop"))
    result = rules.spans(
        [
            span(
                "a",
                f"to {EMAIL}",
                {
                    "secret.a": 1,
                    "note": f"{EMAIL} {EMAIL} {CARD}",
                    "text": json.dumps({"x": PHONE}),
                },
            )
        ]
    )
    assert result.counts == {
        ("attribute", "drop"): 1,
        ("email", "mask"): 3,
        ("card", "mask"): 1,
        ("phone", "mask"): 1,
    }


@pytest.mark.parametrize("levels", [95, 300, 5000])
def test_json_that_is_nested_without_end_is_redacted(levels: int) -> None:
    nested = json.dumps("[" * levels + json.dumps(EMAIL) + "]" * levels)
    for _ in range(2):
        nested = '["' + nested.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    assert EMAIL not in str(redacted({"a": {"b": [nested]}}))


def test_json_that_is_nested_too_deep_is_redacted_once_however_many_lines_are_above_it() -> None:
    nested = "[" * 120 + json.dumps(EMAIL) + "]" * 120
    assert redacted({"a": "\n" * 2000 + nested}) == {
        "a": "\n" * 2000 + nested.replace(EMAIL, "[email]")
    }


def test_a_pattern_for_a_member_reaches_it_by_its_whole_path() -> None:
    attributes = {
        "args": '{"card": {"number": 7, "kind": "x"}}',
        "user": {"id": 7},
        "userid": {"id": 7},
    }
    assert redacted(attributes, ("args.card.n*", "drop"), ("user.i?", "mask")) == {
        "args": '{"card":{"kind":"x"}}',
        "user": {"id": "[REDACTED]"},
        "userid": {"id": 7},
    }


@pytest.mark.parametrize("structured", [False, True])
def test_a_path_of_more_characters_than_are_compared_is_dropped_where_there_are_patterns(
    structured: bool,
) -> None:
    deep = {"k" * 2000: {"k" * 2000: {"a": 1, "password": 2, "k" * 100: 3}, "b": 4}, "c": 5}
    attributes: dict[str, Any] = {
        "x": deep if structured else json.dumps(deep, separators=(",", ":"))
    }
    below = {"k" * 2000: {"k" * 2000: {"a": 1}, "b": 4}, "c": 5}
    found = redacted(attributes, ("*.password", "drop"))["x"]
    assert (found if structured else json.loads(found)) == below
    assert redacted(attributes) == attributes
