"""Sinks and the store treat events that have been through a publication like the original ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
import zstandard
from hypothesis import given, settings, strategies as st
from structlog.testing import capture_logs

from pathgauge import Latency, ToolTrajectoryAvgScore, ToolTrajectoryF1
from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.conversation import ConversationResult, ConversationScore
from pathgauge.collector.core.evaluations.evaluator import (
    VERDICTS,
    Criterion,
    Evaluation,
    Evaluator,
    Result,
    WhenJudged,
)
from pathgauge.collector.core.evaluations.shadow_result import Shadowed, ShadowResult
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    Judged,
    PublishedEvent,
    ShadowJudged,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.references import UNMATCHED, Match, ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.store.publications import (
    FORMAT,
    PublicationError,
    UnknownFormatError,
    decode,
    encode,
)
from pathgauge.scorers.types import (
    ExpectedCall,
    Flag,
    Invocation,
    Reason,
    Reference,
    ReferenceTurn,
    Score,
    ToolCall,
)
from support.dialects import INSTALLED
from support.evaluated import evaluation
from support.examples import examples
from support.judged import JUDGED, WORKS, DueOpinion, run_of, tool_of
from support.published import shown, stored_rows
from support.repository import CAPTURES

EXACT = Criterion("exact", ToolTrajectoryAvgScore(), 1.0)
F1 = Criterion("f1", ToolTrajectoryF1(), 0.9)
SECONDS = Criterion("seconds", Latency(), 1)
SHARE = Criterion("share", ToolTrajectoryF1(), 0.5, aggregation=Aggregation("agent", "share", 0.9))
STRICT = Criterion("exact", ToolTrajectoryAvgScore(), 0.5)
OPINION = Criterion("opinion", DueOpinion(), 0.5, judge="model@template")
EVALUATOR = Evaluator(
    (EXACT, F1, SECONDS, SHARE, WORKS, OPINION), {"strict": (STRICT, replace(OPINION, judge=""))}
)
CALLS = (ExpectedCall("find"), ExpectedCall("pay"))
REFERENCES = ReferenceSet(
    [
        Reference("refund", (ReferenceTurn(tool_calls=CALLS),), "v1", "refund.yaml"),
        Reference("strict", (ReferenceTurn(tool_calls=CALLS),), "v1"),
        Reference("chat", (ReferenceTurn(tool_calls=CALLS), ReferenceTurn()), "v2", required=True),
    ]
)
OTHER_EVALUATOR = Evaluator((replace(EXACT, threshold=0.2), F1, replace(OPINION, judge="new@t")))
OTHER_REFERENCES = ReferenceSet([Reference("refund", (ReferenceTurn(),), "v7")])
ACTIVE = [(EVALUATOR, REFERENCES), (OTHER_EVALUATOR, OTHER_REFERENCES)]

EVERY = sorted(path.parent for path in CAPTURES.rglob("invocations.json"))
SEVERAL = EVERY[:: len(EVERY) // 12]


def through(
    events: Sequence[PublishedEvent],
    evaluator: Evaluator = EVALUATOR,
    references: ReferenceSet = REFERENCES,
    *,
    with_content: bool = False,
) -> Sequence[PublishedEvent]:
    """The events after a publication."""
    data = encode(Publication(1.0, events), with_content=with_content)
    return decode(data, evaluator, references).events


def check(events: Sequence[PublishedEvent], evaluator: Evaluator, references: ReferenceSet) -> None:
    received = through(events, evaluator, references)
    assert len(received) == len(events)
    direct, published = (shown(those, evaluator, references) for those in (events, received))
    for name, expected in direct.items():
        assert published[name] == expected
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        assert stored_rows(Path(first), events) == stored_rows(Path(second), received)


def captured(directory: Path) -> tuple[list[PublishedEvent], ReferenceSet]:
    """The events of a capture that arrives in two parts, with references that match its user
    inputs.
    """
    files = read_path(directory)
    spans = files.spans

    def run(references: ReferenceSet) -> list[PublishedEvent]:
        pipeline = Pipeline(INSTALLED, EVALUATOR, references, InternalTelemetry())
        events = pipeline.feed(spans[::2], files.logs, 0.0)
        events += pipeline.expire(100.0)
        events += pipeline.feed(spans[1::2], (), 101.0)
        events += pipeline.drain(200.0)
        assert not any(isinstance(event, Unreadable) for event in events)
        return [event for event in events if not isinstance(event, Unreadable)]

    inputs = {
        event.invocation.user_input: event.invocation.tool_calls
        for event in run(ReferenceSet())
        if isinstance(event, Evaluation)
    }
    found = [
        Reference(
            f"scenario {number}",
            (ReferenceTurn(text, tuple(ExpectedCall(call.name) for call in calls[1:])),),
            f"v{number}",
        )
        for number, (text, calls) in enumerate(inputs.items())
    ]
    references = ReferenceSet(found, match_user_input=True)
    return run(references), references


@pytest.mark.parametrize("directory", SEVERAL, ids=lambda path: str(path.relative_to(CAPTURES)))
def test_events_of_a_framework_have_the_same_effect(directory: Path) -> None:
    events, references = captured(directory)
    check(events, EVALUATOR, references)


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("directory", EVERY, ids=lambda path: str(path.relative_to(CAPTURES)))
def test_events_of_every_capture_have_the_same_effect(directory: Path) -> None:
    events, references = captured(directory)
    check(events, EVALUATOR, references)
    check(events, OTHER_EVALUATOR, OTHER_REFERENCES)


def conversation() -> list[PublishedEvent]:
    """Two turns of three, the second of them first, through a pipeline."""
    pipeline = Pipeline(INSTALLED, EVALUATOR, REFERENCES, InternalTelemetry())
    attributes = {"gen_ai.conversation.id": "c-1", "pathgauge.scenario.id": "chat"}
    events = []
    for name, start in (("second", 10.0), ("first", 0.0), ("third", 20.0)):
        spans = [tool_of(name, "find"), run_of(name, start=start, attributes=attributes)]
        events += pipeline.feed(spans, (), start)
        events += pipeline.expire(start + 30)
    events += pipeline.drain(1e6)
    return [event for event in events if not isinstance(event, Unreadable)]


@pytest.mark.parametrize(("evaluator", "references"), ACTIVE)
def test_conversations_have_the_same_effect(evaluator: Evaluator, references: ReferenceSet) -> None:
    events = conversation()
    [result] = [event for event in events if isinstance(event, ConversationResult)]
    assert result.scores
    assert [event.revision for event in events if isinstance(event, Evaluation)][:1] == [0]
    check(events, evaluator, references)


def test_earlier_versions_leave_a_conversation_without_a_mean_where_it_is() -> None:
    """They would take it for damaged."""
    [result] = [event for event in conversation() if isinstance(event, ConversationResult)]
    criterion = result.scores[0].criterion
    without = replace(result, scores=(ConversationScore(criterion, None),))
    assert encode(Publication(1.0, [result]))[0] == FORMAT
    assert encode(Publication(1.0, [without]))[0] != FORMAT
    assert through([without], EVALUATOR, REFERENCES) == [without]


NAMES = st.text(max_size=8) | st.sampled_from(["agent", "\ud800", "x\udfff" * 99, "é" * 400])
OPTIONAL = st.none() | NAMES
NUMBERS = st.none() | st.integers(0, 2**70) | st.sampled_from([0, 2**63, 2**64])
SCORES = st.floats(0, 1) | st.sampled_from([0, 1])
TOOLS = st.builds(
    ToolCall, st.sampled_from(["find", "pay"]) | NAMES, error=OPTIONAL, agent=OPTIONAL
)
INVOCATIONS = st.builds(
    Invocation,
    st.sampled_from(["a" * 32, "b" * 32]),
    st.sampled_from(["c" * 16, "d" * 16]),
    st.sampled_from(["genai", "adk"]),
    tenant=st.sampled_from(["", "acme"]),
    agent=OPTIONAL,
    agent_version=OPTIONAL,
    scenario_id=st.sampled_from(["refund", "strict", "chat", "refuns"]) | OPTIONAL,
    conversation_id=OPTIONAL,
    tool_calls=st.lists(TOOLS, max_size=3).map(tuple),
    error=st.booleans(),
    error_type=OPTIONAL,
    input_tokens=NUMBERS,
    output_tokens=NUMBERS,
    start_ns=NUMBERS,
    end_ns=NUMBERS,
    flags=st.frozensets(st.sampled_from(get_args(Flag)), max_size=3),
)
JUDGE_DETAILS = st.fixed_dictionaries(
    {}, optional={"agreement": SCORES | NAMES, "samples": st.integers(0, 5) | NAMES, "x": NAMES}
)
OPINIONS = st.builds(
    Result,
    st.sampled_from([OPINION, replace(OPINION, judge="old@t"), JUDGED]),
    st.builds(
        Score,
        SCORES,
        explanation=NAMES | st.just("long " * 2000),
        details=st.fixed_dictionaries({"judge": JUDGE_DETAILS | NAMES}),
    )
    | st.builds(Score.not_evaluated, st.sampled_from(get_args(Reason)), NAMES),
    st.sampled_from(VERDICTS),
)


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    invocation = draw(INVOCATIONS)
    reference = draw(st.sampled_from([*REFERENCES, None]))
    match = Match(unmatched=draw(st.sampled_from(UNMATCHED)))
    if reference is not None:
        index = draw(st.integers(0, len(reference.turns) - 1))
        match = Match(reference, reference.turns[index], index)
    judging = draw(st.sampled_from(get_args(WhenJudged)))
    one = EVALUATOR.evaluate(invocation, match, judging=judging)
    results = (*one.results, *draw(st.lists(OPINIONS, max_size=1)))
    return with_failure(
        replace(one, results=results, revision=draw(st.integers(0, 3)), closed_by="idle")
    )


EVENTS = st.lists(
    evaluations()
    | st.builds(Judged, evaluations(), st.booleans(), st.booleans())
    | evaluations().map(lambda one: Withdrawn(one.key))
    | st.builds(
        ConversationResult,
        st.sampled_from(["", "acme"]),
        NAMES,
        st.sampled_from([*REFERENCES]),
        OPTIONAL,
        OPTIONAL,
        st.lists(
            st.builds(ConversationScore, st.sampled_from(EVALUATOR.criteria), SCORES), max_size=2
        ).map(tuple),
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=6,
)


@settings(max_examples=examples(25), deadline=None)
@given(EVENTS, st.sampled_from(ACTIVE))
def test_any_events_have_the_same_effect(
    events: list[PublishedEvent], active: tuple[Evaluator, ReferenceSet]
) -> None:
    with capture_logs():
        check(events, *active)


@pytest.mark.parametrize(("evaluator", "references"), ACTIVE)
def test_what_judges_say_has_the_same_effect(
    evaluator: Evaluator, references: ReferenceSet
) -> None:
    passed, failed = evaluated(error=False), evaluated(trace="c" * 32)
    details = {"judge": {"agreement": 0.75, "samples": 4, "answers": ["text"]}}
    opinion = Result(OPINION, Score(0.25, None, "long " * 2000, details), "failed")
    late = [
        with_failure(replace(one, results=(opinion,), failure=None)) for one in (passed, failed)
    ]
    events: list[PublishedEvent] = [
        passed,
        failed,
        Judged(late[0], first=True),
        Judged(late[1], first=True, failed_before=True),
        Judged(late[1], first=False, failed_before=True),
    ]
    check(events, evaluator, references)


def test_what_is_active_is_used_again() -> None:
    one = replace(evaluated(scenario_id="strict"), awaits=True)
    [received] = through([one])
    assert isinstance(received, Evaluation)
    assert received.match.reference is one.match.reference
    assert received.match.turn is one.match.turn
    assert received.results[0].criterion is STRICT
    results = tuple(
        replace(result, score=replace(result.score, details={})) for result in one.results
    )
    plain = [
        replace(result, score=replace(result.score, details={})) for result in received.results
    ]
    assert replace(received, results=tuple(plain)) == replace(one, results=results)


def test_what_is_not_active_is_replaced_by_the_same_stand_ins_every_time() -> None:
    one = evaluated()
    [received] = through([one], Evaluator(()), ReferenceSet())
    [again] = through([one], Evaluator(()), ReferenceSet())
    assert isinstance(received, Evaluation)
    assert isinstance(again, Evaluation)
    for result, before, after in zip(received.results, one.results, again.results, strict=True):
        assert result.criterion is after.criterion
        assert replace(result.criterion, scorer=before.criterion.scorer) == before.criterion
        for name in ("name", "version", "low", "high", "higher_is_better", "needs_reference"):
            found = getattr(result.criterion.scorer, name)
            assert found == getattr(before.criterion.scorer, name)
        score = result.criterion.scorer.score(one.invocation, None)
        assert (score.value, score.reason) == (None, "not_applicable")
    reference = received.match.reference
    assert reference is not None
    assert again.match.reference is reference
    assert (reference.scenario_id, reference.version) == ("refund", "v1")


def evaluated(*, trace: str = "a" * 32, **fields: Any) -> Evaluation:
    known: dict[str, Any] = {"agent": "agent", "scenario_id": "refund", "error": True, **fields}
    invocation = Invocation(trace, "b" * 16, "genai", **known)
    return with_failure(EVALUATOR.evaluate(invocation, REFERENCES.match(invocation)))


SECRET = "4111-1111"
SPOKEN = evaluated(
    user_input=SECRET,
    final_response=SECRET,
    tool_calls=(
        ToolCall("find", {"card": SECRET}, SECRET, {"card": SECRET}, kind="agent", group=7),
    ),
    tool_schemas={"find": {"title": SECRET}},
    turn=4,
    run_id="run",
    user_id="user",
    model="model",
    start_ns=1,
    end_ns=2,
    flags=frozenset({"clock_skew"}),
)


def test_content_does_not_leave_the_scorer() -> None:
    data = encode(Publication(1.0, [SPOKEN]))
    assert SECRET not in text_of(data)
    [received] = decode(data, EVALUATOR, REFERENCES).events
    assert isinstance(received, Evaluation)
    assert received.invocation == replace(
        SPOKEN.invocation,
        user_input=None,
        final_response=None,
        tool_calls=(ToolCall("find", kind="agent", group=7),),
        tool_schemas={},
    )


def text_of(data: bytes) -> str:
    [size] = struct.unpack_from(">I", data, 1)
    return zstandard.decompress(data[5 : 5 + size]).decode()


def test_a_sink_may_get_the_content() -> None:
    judged = Judged(SPOKEN, first=True)
    received = through([SPOKEN, judged], with_content=True)
    assert [event.invocation for event in received if isinstance(event, Evaluation)] == [
        SPOKEN.invocation
    ]
    assert [event.evaluation.invocation for event in received if isinstance(event, Judged)] == [
        SPOKEN.invocation
    ]


def test_an_event_that_cannot_be_written_is_left_out_with_its_evidence() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no text")

    good, bad = evaluation("good"), evaluation("bad")
    invocation = replace(bad.invocation, agent=Unprintable())  # type: ignore[arg-type]
    bad = replace(bad, invocation=invocation)
    withdrawn = Withdrawn(good.key)
    publication = Publication(
        1.0, [bad, good, bad, withdrawn], evidence={0: b"bad", 1: b"good", 3: b"withdrawn"}
    )
    with capture_logs() as logs:
        data = encode(publication)
    assert [line["event"] for line in logs] == ["an event cannot be published"] * 2
    received = decode(data, EVALUATOR, REFERENCES)
    assert [type(event) for event in received.events] == [Evaluation, Withdrawn]
    assert received.evidence == {0: b"good", 1: b"withdrawn"}


def test_an_event_that_cannot_be_read_is_left_out_with_its_evidence() -> None:
    publication = Publication(1.0, [SPOKEN, Withdrawn(SPOKEN.key)], evidence={0: b"x", 1: b"yz"})
    lines = text_of(encode(publication)).split("\n")
    body = zstandard.compress("\n".join([*lines[:2], '["new"]', lines[3]]).encode())
    data = struct.pack(">BI", FORMAT, len(body)) + body + b"xyz"
    with capture_logs() as logs:
        received = decode(data, EVALUATOR, REFERENCES)
    assert [line["event"] for line in logs] == ["an event of a publication cannot be read"]
    assert received.events == [Withdrawn(SPOKEN.key)]
    assert received.evidence == {0: b"yz"}


def test_counts_records_and_evidence_arrive() -> None:
    counts = [Row(("traces_opened",), (3,)), Row(("spans_dropped", "too_old"), (1,))]
    records = [Row(("agent_records", "", "a", "\ud800"), [1.0, 0.0]), Row(("agent_records",), None)]
    evidence = {0: b"\x00\n\t", 1: b""}
    events: list[PublishedEvent] = [SPOKEN, Withdrawn(SPOKEN.key)]
    received = decode(
        encode(Publication(12.5, events, counts, records, evidence)), EVALUATOR, REFERENCES
    )
    assert received.wall == 12.5
    assert [(key, list(state or ())) for key, state in received.counts] == [
        (("traces_opened",), [3]),
        (("spans_dropped", "too_old"), [1]),
    ]
    assert received.records == records
    assert received.evidence == evidence


DATA = encode(Publication(1.0, [SPOKEN], evidence={0: b"evidence"}))


@pytest.mark.parametrize("data", [bytes([FORMAT + 9]) + DATA[1:], json.dumps({}).encode()])
def test_another_format_is_an_error_that_says_so(data: bytes) -> None:
    with pytest.raises(UnknownFormatError, match="another version"):
        decode(data, EVALUATOR, REFERENCES)


@given(st.integers(0, len(DATA) - 1))
def test_a_damaged_publication_is_an_error(size: int) -> None:
    with pytest.raises(PublicationError):
        decode(DATA[:size], EVALUATOR, REFERENCES)


def test_results_of_judges_in_shadow_are_told_in_a_format_that_earlier_versions_refuse() -> None:
    result = ShadowResult("safe", "safe 1", 0.5, None, "failed", 1.0, "local:next@1f3a")
    event = ShadowJudged(("", "a" * 32, "b" * 16), 2, Shadowed("new", "v2", (result,)))
    body = encode(Publication(1.0, [event]))
    assert body[0] > encode(Publication(1.0, []))[0]
    assert decode(body, Evaluator(()), ReferenceSet()).events == [event]
