"""Evidence says what was scored, in JSON of bounded size, whatever the telemetry holds."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator, Verdict
from pathgauge.collector.core.evidence.comparison import Row, comparisons
from pathgauge.collector.core.evidence.evidence import (
    CriterionEvidence,
    Evidence,
    decode,
    encode,
    evidence_of,
    overall,
)
from pathgauge.collector.core.evidence.shortening import MAX_BYTES
from pathgauge.collector.core.references import Match
from pathgauge.scorers.authoring.extras import SpanRecord
from pathgauge.scorers.matching.matchers import Near, OneOf
from pathgauge.scorers.types import (
    ExpectedCall,
    Flag,
    Invocation,
    Json,
    Reference,
    ReferenceTurn,
    ToolCall,
)
from support.evaluated import evaluation

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def invocation(
    arguments: Json = None, result: Json = None, answer: str | None = None
) -> Invocation:
    calls = (ToolCall("find", arguments, result=result),)
    return Invocation("1" * 32, "2" * 16, "genai", tool_calls=calls, final_response=answer)


@given(arguments=st.dictionaries(st.text(), JSON, max_size=4), result=JSON, answer=st.text())
def test_evidence_is_read_as_it_was_written(arguments: Json, result: Json, answer: str) -> None:
    evidence = Evidence(invocation(arguments, result, answer))
    assert decode(encode(evidence)) == evidence


def test_equal_evidence_is_written_alike() -> None:
    flags: list[Flag] = ["truncated", "content_missing", "orphan_spans", "redacted", "clock_skew"]
    written = {
        encode(Evidence(replace(invocation(), flags=frozenset(order))))
        for order in permutations(flags)
    }
    assert len(written) == 1
    (text,) = written
    assert json.loads(text)["invocation"]["flags"] == sorted(flags)


def test_it_holds_the_turn_of_the_reference_with_its_matchers() -> None:
    turn = ReferenceTurn(
        tool_calls=(ExpectedCall("pay", {"amount": Near(12.5, abs=0.01, rel=0.0)}),),
        alternatives=((ExpectedCall("pay", {"currency": OneOf(("EUR", "USD"))}),),),
    )
    reference = Reference("shop", (turn,), "v7", "shop.yaml:3")
    one = Evaluator((Criterion("exact", ToolTrajectoryAvgScore(), 1.0),)).evaluate(
        replace(invocation(), tool_calls=(ToolCall("pay", {"amount": 1}),)),
        Match(reference, turn, 0),
    )
    found = decode(encode(evidence_of(one)))
    [(_, [row])] = comparisons(found)
    assert row.expected == 'pay(amount={"$near": 12.5, "abs": 0.01, "rel": 0.0})'
    assert found.turn is not None
    assert found.turn.tool_calls == (
        ExpectedCall("pay", {"amount": {"$near": 12.5, "abs": 0.01, "rel": 0.0}}),
    )
    assert found.turn.alternatives == (
        (ExpectedCall("pay", {"currency": {"$one_of": ["EUR", "USD"]}}),),
    )
    assert (found.scenario_id, found.reference_version, found.reference_source) == (
        "shop",
        "v7",
        "shop.yaml:3",
    )


def test_spans_that_scorers_needed_are_left_out() -> None:
    one = evaluation("a")
    with_spans = replace(one, invocation=replace(one.invocation, spans=(SpanRecord("3" * 16),)))
    assert evidence_of(with_spans) == evidence_of(one)


@pytest.mark.parametrize(
    "content",
    [
        "x" * 1_000_000,
        ["x" * 100] * 10_000,
        {str(n): "x" * 100 for n in range(10_000)},
        "ü" * 500_000,
    ],
)
def test_long_content_loses_its_end(content: Json) -> None:
    text = encode(Evidence(invocation({"content": content}, result=content)))
    found = decode(text)
    assert len(text) <= MAX_BYTES + 1_000
    assert found.cut
    assert found.invocation.tool_calls[0].name == "find"


def test_many_long_calls_are_cut_to_a_bounded_size() -> None:
    calls = tuple(
        ToolCall("f" * 1_000, {"a": "b" * 1_000}, result="c" * 1_000) for _ in range(2_000)
    )
    text = encode(Evidence(Invocation("1" * 32, "2" * 16, "genai", tool_calls=calls)))
    assert len(text) <= 2 * MAX_BYTES
    assert decode(text).cut


def test_deep_content_is_cut() -> None:
    deep: Json = "x" * MAX_BYTES
    for _ in range(100):
        deep = [deep]
    assert decode(encode(Evidence(invocation({"a": deep})))).cut


@pytest.mark.parametrize("text", ["\ud800", "\x00", "\u202e", "</script>"])
def test_any_text_can_be_kept(text: str) -> None:
    found = decode(encode(Evidence(invocation({text: text}, result=text, answer=text))))
    kept = found.invocation.final_response or ""
    assert kept.encode("utf-8", "replace") == text.encode("utf-8", "replace")


def test_details_of_a_plug_in_may_be_anything() -> None:
    details = {"set": {3, 1}, "object": object(), "matched": "nothing of ours"}
    criterion = CriterionEvidence("own", "own 1", "failed", details=details)
    evidence = Evidence(invocation(), (criterion,))
    found = decode(encode(evidence)).criteria[0].details
    assert found is not None
    assert found["set"] == [1, 3]
    assert comparisons(evidence) == []


def test_values_that_only_a_later_version_knows_are_left_out() -> None:
    evidence = evidence_of(evaluation("a"))
    later = json.loads(encode(evidence))
    later["invocation"]["flags"] = ["later", "truncated", "newer"]
    later["failure"]["category"] = "later"
    later["unmatched"] = "later"
    later["field"] = "later"
    flagged = replace(evidence.invocation, flags=frozenset({"truncated"}))
    assert decode(json.dumps(later)) == replace(
        decode(encode(evidence)), invocation=flagged, failure=None
    )
    later["criteria"][0]["verdict"] = "later"
    with pytest.raises(ValueError, match="another version"):
        decode(json.dumps(later))


def test_evidence_of_another_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="another version"):
        decode('{"invocation": {"trace": 1}}')


def test_criteria_that_agree_share_a_comparison() -> None:
    [(names, rows)] = comparisons(evidence_of(evaluation("a")))
    assert names == ["trajectory"]
    assert [(row.mark, row.expected, row.actual) for row in rows] == [
        ("~", 'find_order(order="A-1")', 'find_order(order="A-2")'),
        ("=", "track", "track()"),
    ]
    assert all(isinstance(row, Row) for row in rows)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], "not_evaluated"),
        (["not_evaluated", "informational"], "informational"),
        (["passed", "informational"], "passed"),
        (["passed", "error"], "error"),
        (["error", "failed", "passed"], "failed"),
    ],
)
def test_the_worst_verdict_counts(verdicts: list[Verdict], expected: Verdict) -> None:
    assert overall(verdicts) == expected
