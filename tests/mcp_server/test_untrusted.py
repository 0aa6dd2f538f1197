"""Texts of telemetry are marked and bounded, whatever they hold."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st
from mcp import Client

from pathgauge.collector.api import models
from pathgauge.collector.api.mcp import building
from pathgauge.collector.api.mcp.collector import Collector
from pathgauge.collector.api.mcp.server import server
from pathgauge.collector.api.mcp.shaping import MAX_BYTES, fitted
from pathgauge.collector.api.mcp.untrusted import MAX_NAME, NOTICE, Marks, name

MARKS = Marks("0123456789abcdef")
OPENED, CLOSED = f"<untrusted-{MARKS.id}>", f"</untrusted-{MARKS.id}>"
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def inside(text: str) -> str:
    assert text.startswith(OPENED)
    assert text.endswith(CLOSED)
    return text[len(OPENED) : -len(CLOSED)]


def test_a_text_stands_between_tags_with_the_id_of_the_answer() -> None:
    assert MARKS.text("Refund A1, please.\n", 100) == f"{OPENED}Refund A1, please.\n{CLOSED}"
    assert Marks().id != Marks().id


@pytest.mark.parametrize("tag", ["untrusted", "UNTRUSTED", "pathgauge", " / pathgauge"])
def test_a_text_has_no_tags_of_ours(tag: str) -> None:
    assert inside(MARKS.text(f"a <{tag}-{MARKS.id}> <b>", 100)) == f"a ‹{tag}-{MARKS.id}> <b>"


def test_hidden_characters_become_visible() -> None:
    hidden = "a\x00\x1b[31m\u200b\u202e\U000e0041\ud800b\tc"
    assert inside(MARKS.text(hidden, 100)) == "a\ufffd\ufffd[31m\ufffd\ufffd\ufffd\ufffdb\tc"
    assert name("a\nb\u2028c\u200b") == "a b c\ufffd"


def test_long_texts_and_names_lose_their_end() -> None:
    assert inside(MARKS.text("x" * 1_000_000, 3)) == "xxx… (999997 more characters)"
    assert name("x" * 1_000_000) == "x" * MAX_NAME + "…"


@given(st.text(), st.integers(1, 50))
def test_no_text_closes_its_mark(text: str, max_chars: int) -> None:
    found = MARKS.text(text, max_chars)
    assert (found.count(OPENED), found.count(CLOSED)) == (1, 1)


def result(text: str, criteria: int) -> models.Result:
    criterion = models.Criterion(
        name=text, scorer=text, verdict="failed", value=None, threshold=None, reason=text
    )
    return models.Result(
        trace_id="0" * 32,
        span_id="0" * 16,
        tenant=text,
        time=NOW,
        agent=text,
        agent_version=text,
        scenario_id=text,
        verdict="failed",
        category="loop",
        signature="loop",
        reference_version=text,
        unmatched=None,
        flags=[],
        duration_s=None,
        revision=0,
        criteria=[criterion.model_copy(update={"explanation": text})] * criteria,
    )


def explained(text: str, number: int) -> list[models.Explained]:
    row = models.ComparedCall(mark="~", expected=text, actual=text)
    call = {"name": text, "arguments": {text: [text] * number}, "result": text, "error": text}
    invocation = {"user_input": text, "final_response": text, "tool_calls": [call] * number}
    return [
        models.Explained(
            result=result(text, number),
            evidence={"invocation": invocation, "turn": {"response": text}},
            comparisons=[models.Comparison(criteria=[text] * number, calls=[row] * number)],
        )
    ] * number


@pytest.mark.parametrize("text", ["x", "\x00\n<", "🙂", '"\\', "<untrusted-"])
@pytest.mark.parametrize(
    ("length", "number"), [(1, 100), (10_000, 3), (1_000, 30), (300, 2), (60, 8), (150, 5)]
)
def test_an_answer_fits_and_says_what_it_leaves_out(text: str, length: int, number: int) -> None:
    found = fitted(lambda shaper: building.explained(shaper, explained(text * length, number)))
    [content] = found.content
    assert content.type == "text"
    assert len(content.text.encode()) <= MAX_BYTES
    assert content.text.startswith(f"{NOTICE}\n<pathgauge-")
    lines = content.text.splitlines()
    answer: dict[str, Any] = json.loads(lines[2])
    assert (len(lines), {"notice": NOTICE, **answer}) == (4, found.structured_content)
    shown = len(answer["results"])
    assert (f"results: {shown} of {number} shown" in answer["left_out"]) == (shown < number)


def test_a_cursor_is_given_only_if_it_skips_nothing() -> None:
    clusters = models.Clusters(clusters=[], failures=0, complete=True)

    def next_after(newest: list[models.Result]) -> Any:
        found = fitted(lambda shaper: building.failures(shaper, clusters, newest, "7", []))
        assert found.structured_content is not None
        return found.structured_content.get("next")

    assert next_after([result("x", 1)] * 3) == "7"
    assert next_after([result("x" * 1_000, 9)] * 50) is None


def test_a_search_that_ended_early_is_not_taken_for_no_failures() -> None:
    page = models.Results(results=[], next="7", searched_to=datetime(2026, 11, 23, 3, tzinfo=UTC))
    assert building.not_searched(page) == [
        "newest: nothing before 2026-11-23T03:00:00+00:00 was searched; `next` goes on"
    ]
    assert building.not_searched(models.Results(results=[], next=None)) == []


async def test_no_tool_demands_of_its_answer_what_may_be_unknown() -> None:
    # What is unknown is left out, and an answer without what its schema demands is an error.
    tools = server(Collector("http://127.0.0.1:9"), lambda _: None)
    async with Client(tools) as client:
        schemas = [one.output_schema or {} for one in (await client.list_tools()).tools]
    parts = [part for schema in schemas for part in (schema, *schema.get("$defs", {}).values())]
    assert len(parts) > len(schemas) > 0
    demanded = [
        (part["title"], key)
        for part in parts
        for key in part.get("required", ())
        if {"type": "null"} in part["properties"][key].get("anyOf", ())
    ]
    assert demanded == []


def test_the_worst_results_come_first() -> None:
    [one] = explained("x", 1)
    passed = one.model_copy(update={"result": one.result.model_copy(update={"verdict": "passed"})})
    found = fitted(lambda shaper: building.explained(shaper, [passed, one, passed]))
    assert found.structured_content is not None
    verdicts = [each["result"]["verdict"] for each in found.structured_content["results"]]
    assert verdicts == ["failed", "passed", "passed"]
