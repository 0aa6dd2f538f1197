"""Several partitions share the traces; each session is scored once, by the one that owns it."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.core.pipeline_events import ForwardedTurn, PipelineEvent, Withdrawn
from pathgauge.collector.store.forwarded_turns import decode, encode
from pathgauge.collector.testing import trace_id
from support.examples import examples
from support.session_course import (
    SESSION,
    TRACE_S,
    Sent,
    Told,
    partition_pipeline,
    truth,
    turn,
)

TOTAL = 3
LONG = 10 * (SESSION.max_age + SESSION.reopen)
PAUSES = [0.0, 5.0, SESSION.settle, 50.0, SESSION.idle, 150.0, SESSION.reopen + 120.0]


class Partitions:
    """Pipelines that forward to each other at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.results: dict[str, Evaluation] = {}
        self.pipelines = [partition_pipeline(number, TOTAL) for number in range(TOTAL)]

    def send(self, sent: Sent) -> None:
        self.wait(sent.pause)
        spans = turn(sent)
        number = partition_of_trace(spans[0].trace_id, TOTAL)
        self.take(self.pipelines[number].feed(spans, (), self.now))
        self.wait(TRACE_S)

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while due := [
            (deadline, number)
            for number, one in enumerate(self.pipelines)
            if (deadline := one.deadline()) is not None and deadline <= until
        ]:
            self.now = max(self.now, min(due)[0])
            for pipeline in self.pipelines:
                self.take(pipeline.expire(self.now))
            self.relay()
        self.now = until

    def relay(self) -> None:
        for source, pipeline in enumerate(self.pipelines):
            for one in pipeline.changes().forwarded:
                for target in range(TOTAL):
                    if target == one.target or (one.target is None and target != source):
                        self.take(self.pipelines[target].feed_turn(stored(one), self.now))

    def take(self, events: Iterable[PipelineEvent]) -> None:
        for event in events:
            if isinstance(event, Evaluation) and event.session is not None:
                known = self.results.get(event.key[1])
                assert event.revision == (0 if known is None else known.revision + 1)
                self.results[event.key[1]] = event
            elif isinstance(event, Withdrawn):
                self.results.pop(event.key[1], None)

    def told(self) -> list[Told]:
        names = {trace_id(f"turn {number}"): f"turn {number}" for number in range(1_000)}
        told = []
        for one in self.results.values():
            assert one.session is not None
            turns = frozenset(names[trace] for trace, _ in one.session.members)
            [tokens] = [r.score.value for r in one.results if r.criterion.name == "session_tokens"]
            told.append(Told(turns, one.session.ended_by, one.revision + 1, tokens or 0.0))
        return sorted(told, key=lambda one: sorted(one.turns))


def stored(one: ForwardedTurn) -> ForwardedTurn:
    return decode(encode(one))


@st.composite
def traffic(draw: st.DrawFn) -> list[Sent]:
    sent: list[Sent] = []
    for number in range(draw(st.integers(1, 15))):
        pause, conversation = draw(st.sampled_from(PAUSES)), draw(st.sampled_from("abc"))
        sent.append(Sent(pause, conversation, number, draw(st.integers(0, 5)) == 0))
        if draw(st.integers(0, 3)) == 0:
            late = draw(st.sampled_from([one for one in sent if not one.is_late]))
            sent.append(late._replace(pause=draw(st.sampled_from(PAUSES)), is_late=True))
    return sent


@settings(max_examples=examples(40), deadline=None)
@given(traffic())
def test_partitions_together_have_the_sessions_of_the_model(sent: list[Sent]) -> None:
    partitions = Partitions()
    for one in sent:
        partitions.send(one)
    partitions.wait(LONG)
    assert partitions.told() == truth(sent, LONG)
