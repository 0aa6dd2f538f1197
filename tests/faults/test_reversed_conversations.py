"""Little traffic that makes much work and many results: the turns of conversations arrive newest
first, and thousands of small invocations arrive at once. The store has the smallest size that can
be configured. No other sender is refused, and all final scores are correct.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.core.evaluations.conversation import MAX_RENUMBERINGS
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.testing import span
from support.running import Collector, until
from support.turns import otlp, script, turn

from .restarted import RestartedCollector
from .sizes import times

pytestmark = pytest.mark.slow

EXPECTED, KEPT = 50, 200
"""Turns that the reference has, and turns that are kept of one conversation."""
CONVERSATIONS = times(2, 40)
FLOOD, AT_ONCE = times(5_000, 40_000), 500
"""Invocations without conversation, and how many of them one request has."""
IDLE_S = 8.0
"""Longer than a busy machine takes from one turn to the next."""
MAX_BYTES = 64 << 20
PATIENCE_S = 300.0


def conversation_turn(conversation: int, number: int) -> list[Span]:
    """The turn that the reference expects at this place, if it expects one."""
    name, start = f"{conversation} {number}", 10.0 * number
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "test.case.id": "talk",
        "gen_ai.conversation.id": str(conversation),
    }
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool {number}"}
    return [
        span(name, "invoke_agent a", attributes, trace=name, start=start, end=start + 9),
        span(f"{name}/t", "t", called, trace=name, parent=name, start=start + 1, end=start + 2),
    ]


def invocation(number: int) -> Span:
    name = f"flood {number}"
    return span(name, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, trace=name)


def compressed(spans: Iterable[Span]) -> bytes:
    scope = ScopeSpans(spans=[one.proto for one in spans])
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[scope])])
    return gzip.compress(request.SerializeToString())


def start(folder: Path, *mistakes: str) -> RestartedCollector:
    reference = {
        "scenario": "talk",
        "turns": [{"expected_tools": [f"tool {number}"]} for number in range(EXPECTED)],
    }
    (folder / "talk.yaml").write_text(json.dumps(reference))
    scored = ["latency", "failure", "tool_calls", "model_calls", "input_tokens", "output_tokens"]
    collector = RestartedCollector(
        folder,
        references=["talk.yaml"],
        criteria={"tool_trajectory_f1": 1.0, **dict.fromkeys(scored)},
        conversations={"idle": f"{IDLE_S}s"},
        max_bytes=MAX_BYTES,
        max_backlog_age="1h",  # a slow machine must not refuse for another reason than space
    )
    collector.start(*mistakes)
    return collector


@contextmanager
def other_sender(collector: Collector) -> Iterator[Counter[int]]:
    """Sends an invocation every 50 ms; yields how often it got which HTTP status."""
    statuses, done = Counter[int](), threading.Event()

    def send() -> None:
        body = otlp(turn(script("", "lookup")))
        while not done.wait(0.05):
            statuses[collector.post("/v1/traces", body)[0]] += 1

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield statuses
    finally:
        done.set()
        sender.join()


def sent(collector: Collector, bodies: Iterable[bytes]) -> int:
    """Send these bodies until they are accepted, in 2 s at most; returns their size."""
    size = 0
    for body in bodies:
        accepted = until(
            lambda body=body: (  # type: ignore[misc]
                collector.post("/v1/traces", body, content_encoding="gzip")[0] == 200
            ),
            2.0,
        )
        if not accepted:
            break
        size += len(body)
    return size


def of_invocations(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Results, invocations with a result, and the highest revision."""
    select = "SELECT count(*), count(DISTINCT span_id), max(revision) FROM results"
    found: tuple[int, int, int] = connection.execute(select).fetchone()
    return found


def broken_bounds(collector: RestartedCollector, statuses: Counter[int]) -> Iterator[str]:
    """Every bound that does not hold, and whether others noticed anything."""
    if set(statuses) != {200}:
        yield f"other senders were answered {dict(statuses)}"
    if (ready := collector.get("/readyz")) != (200, "ready\n"):
        yield f"/readyz says {ready}"
    if (used := collector.value("pathgauge_queue_size", queue="store")) > MAX_BYTES:
        yield f"the store uses {used:,.0f} bytes"
    with closing(sqlite3.connect(f"file:{collector.store}/pathgauge.db?mode=ro", uri=True)) as file:
        rows, invocations, revision = of_invocations(file)
    if rows > 2 * invocations:
        yield f"{rows} results of {invocations} invocations"
    if revision > MAX_RENUMBERINGS + 1:
        yield f"an invocation was evaluated {revision + 1} times"


def reversed_conversations(
    folder: Path, conversations: int, *mistakes: str, patience: float = PATIENCE_S
) -> list[str]:
    """Every broken guarantee when turns arrive newest first, each in a request of its own."""
    collector = start(folder, *mistakes)
    turns = conversations * KEPT
    breaches = []
    try:
        with other_sender(collector) as statuses:
            size = sent(
                collector,
                (
                    compressed(conversation_turn(conversation, number))
                    for conversation in range(conversations)
                    for number in reversed(range(KEPT))
                ),
            )
            print(f"{turns} turns in {size:,} bytes")
            finished = {("matched",): EXPECTED * conversations, ("missing",): 0}
            finished["unexpected",] = turns - EXPECTED * conversations
            until(lambda: case_turns(collector) == finished, patience)
        if case_turns(collector) != finished:
            breaches.append(f"turns of finished conversations: {case_turns(collector)}")
        breaches += broken_bounds(collector, statuses)
        breaches += wrong_scores(collector, conversations)
    finally:
        collector.stop()
    return breaches


def case_turns(collector: Collector) -> dict[tuple[str, ...], float]:
    return collector.series("pathgauge_case_turns_total", "state")


def wrong_scores(collector: RestartedCollector, conversations: int) -> Iterator[str]:
    """Turns that did not end with the score of their own number."""
    newest: dict[str, float | None] = {}
    with closing(sqlite3.connect(f"file:{collector.store}/pathgauge.db?mode=ro", uri=True)) as file:
        select = "SELECT span_id, body FROM results WHERE scenario = 'talk' ORDER BY revision"
        for span_id, body in file.execute(select):
            [f1] = [
                one["value"]
                for one in json.loads(body)["criteria"]
                if one["name"] == "tool_trajectory_f1"
            ] or [None]
            newest[span_id] = f1
    expected = {
        conversation_turn(conversation, number)[0].span_id: 1.0 if number < EXPECTED else None
        for conversation in range(conversations)
        for number in range(KEPT)
    }
    wrong = {key for key, value in expected.items() if newest.get(key) != value}
    if wrong:
        yield f"{len(wrong)} of {len(expected)} turns have a wrong score at the end"


def test_turns_that_arrive_newest_first_leave_space_for_everybody(tmp_path: Path) -> None:
    assert reversed_conversations(tmp_path, CONVERSATIONS) == []


@pytest.mark.long
@pytest.mark.parametrize("mistake", ["renumber_every_time", "keep_every_revision", "never_settle"])
def test_turns_that_arrive_newest_first_bring_to_light(tmp_path: Path, mistake: str) -> None:
    breaches = reversed_conversations(tmp_path, 2, mistake, patience=20.0)
    print(breaches)
    assert breaches != []


def test_a_flood_of_small_invocations_leaves_space_for_everybody(tmp_path: Path) -> None:
    collector = start(tmp_path)
    try:
        with other_sender(collector) as statuses:
            size = sent(
                collector,
                (
                    compressed(map(invocation, range(begin, begin + AT_ONCE)))
                    for begin in range(0, FLOOD, AT_ONCE)
                ),
            )
            print(f"{FLOOD} invocations in {size:,} bytes")
            read = until(
                lambda: collector.value("pathgauge_invocations_read_total") >= FLOOD, PATIENCE_S
            )
        used = collector.value("pathgauge_queue_size", queue="store")
        print(f"the store uses {used:,.0f} bytes")
        assert read
        assert list(broken_bounds(collector, statuses)) == []
    finally:
        collector.stop()
