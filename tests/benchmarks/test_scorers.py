"""What each registered scorer costs for an invocation of few and of many calls, in one run.

Once for what agents do, with a dozen tools and a reference that mostly agrees; once for what hurts:
one tool called again and again, each call with arguments that two expected calls ask for, and a
response of one word. Responses have as many words as there are calls. Every score is of an
invocation that was not seen before, and the fastest counts, since these machines are noisy. The
bars are in seconds of CPU of one machine at rest: on another one, or a busy one, they give way as a
yardstick does in the same run. `make bench` takes long enough to mean something.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from pathgauge.collector.config import criteria
from pathgauge.collector.config.active import GATE_CRITERIA
from pathgauge.collector.config.criteria import Location
from pathgauge.collector.config.plugins.scorers import SCORERS, scorer_class
from pathgauge.collector.core.documents import Document
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.references import Match
from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.session_protocol import SessionScorer, SessionTurn, scores_sessions
from pathgauge.scorers.types import (
    AgentRun,
    ExpectedCall,
    Invocation,
    Json,
    ModelCall,
    Reference,
    ReferenceTurn,
    Score,
    ToolCall,
)
from support.pace import Pace, timed

LONG = "BENCH_SECONDS" in os.environ
SECONDS = float(os.environ.get("BENCH_SECONDS", "0"))
ROUNDS = 3
"""Scores of a kind at a time, unless one takes longer than `SLOW_S`."""
SLOW_S = 0.05

Agreed = tuple[Invocation, ReferenceTurn]
Scoring = Callable[[], Score]

SIZES = (3, 30, 300, 2_000)
USUAL = 5
USUAL_MOST_S = 150e-6 if LONG else 1e-3
MAX_S = 1.0 if LONG else 5.0
SQUARE_AND_SLACK = (SIZES[-1] / SIZES[-2]) ** 2 * 2
TOO_QUICK_TO_TELL_S = 0.01

OPTIONS: dict[str, Json] = {
    "allowed_tools": {"tools": ["search", "find*"]},
    "composite": {"of": ["response_match_score", "tool_trajectory_avg_score"]},
    "context_overflow": {"limit": 100_000},
    "cost_of_passed": {"of": ["response_match_score", "tool_trajectory_avg_score"]},
    "interrupt_rejection": {"sensitive_tool": "search"},
    "mean_of_turns": {"of": "tool_trajectory_avg_score"},
    "has_matching_span": {"query": {"some_descendant_has": {"name_contains": "search"}}},
    "pending_confirmation_flow": {"sensitive_tool": "search"},
    "response_excludes": {"phrases": ["cannot", "sorry"]},
    "response_length": {"max_words": 5},
    "response_match_score": {"threshold": 0.0},
    "response_pattern": {"pattern": "[a-z]+ing$"},
    "response_schema": {"schema": {"type": "object"}},
    "skill_invoked": {"skills": ["search"]},
    "tool_graph": {"graph": {"search": ["refund", "notify"]}},
    "tool_policy": {
        "rules": [
            {"precedes": ["find_order", "refund"]},
            {"responds": ["search", "summarize"]},
            {"absent_between": ["search", "refund", "notify"]},
            {"at_most": ["search", 5]},
            {"never": "search", "when": {"limit": {"$near": 6, "abs": 1}}},
        ]
    },
    "tool_trajectory_avg_score": {"threshold": 0.0},
    "trajectory_single_tool_use": {"tool_name": "search"},
}
"""Options of scorers that need some, or do nothing without."""
VARIANTS: dict[str, Json] = {
    "f1, name_and_args": {"scorer": "tool_trajectory_f1", "match_mode": "name_and_args"},
    "f1, required": {"scorer": "tool_trajectory_f1", "match_mode": "name_and_required_args"},
    "f1, required, any order": {
        "scorer": "tool_trajectory_f1",
        "match_mode": "name_and_required_args",
        "ordered": False,
    },
    "f1, required, parallel": {
        "scorer": "tool_trajectory_f1",
        "match_mode": "name_and_required_args",
        "parallel_calls": "any_order",
    },
}
"""Options with which a scorer does more than by default."""

TOOLS = (
    "search",
    "find_order",
    "check_policy",
    "refund",
    "notify",
    "read_file",
    "write_file",
    "plan",
    "rank",
    "fetch",
    "summarize",
    "ask",
)
WORDS = (
    "your",
    "order",
    "was",
    "refunded",
    "and",
    "we",
    "have",
    "notified",
    "you",
    "by",
    "mail",
    "that",
    "the",
    "parcel",
    "is",
    "on",
)
STEP_NS = 1_000_000
SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "limit": {"type": "integer"},
        "filter": {"type": "object"},
    },
    "required": ["order_id"],
}


def realistic(size: int) -> Agreed:
    """A dozen tools in turn, a reference that asks for most of the calls."""
    calls = tuple(
        ToolCall(
            TOOLS[i * 5 % len(TOOLS)],
            _arguments(i),
            id=f"call_{i}",
            result={"status": "ok", "items": [i], "available_actions": ["refund", "notify"]},
            error="timeout" if i % 17 == 16 else None,
            agent="support",
            run=f"run_{i % 4}",
            group=i // 2,
            start_ns=i * STEP_NS,
            end_ns=(i + 1) * STEP_NS,
        )
        for i in range(size)
    )
    asked = tuple(
        ExpectedCall(call.name, _arguments(i) if i % 5 else None)
        for i, call in enumerate(calls)
        if i % 9 != 8
    )
    text = " ".join(WORDS[i * 3 % len(WORDS)] + ("." if i % 12 == 11 else "") for i in range(size))
    return _run(*calls, final_response=text), _turn(asked, text.replace("refunded", "paid back"))


def _arguments(i: int) -> dict[str, Json]:
    return {"order_id": f"A-{i % 50}", "limit": i % 7} | (
        {} if i % 3 else {"filter": {"status": "open", "tags": ["new", i]}}
    )


def adversarial(size: int) -> Agreed:
    """One tool, where pairing a call with the first expected one that it answers is always the
    wrong choice.
    """
    calls = tuple(
        ToolCall("search", {f"k{i}": 1, f"k{i + 1}": 1}, error="failed" if i % 2 else None)
        for i in range(size)
    )
    asked = tuple(ExpectedCall("search", {f"k{i}": 1}) for i in reversed(range(size)))
    return _run(*calls, final_response="tea tea\n" * size), _turn(asked, "tea\n" * size)


def _run(*calls: ToolCall, final_response: str) -> Invocation:
    runs = tuple(
        AgentRun(
            f"run_{i}", f"agent_{i}", "support", "run_0", user_input="help", final_response="done"
        )
        for i in range(1, 4)
    )
    models = tuple(
        ModelCall(
            f"m{i}", "support", f"run_{i % 4}", "gpt", 100, 20, None, i * STEP_NS, (i + 1) * STEP_NS
        )
        for i in range(len(calls) + 1)
    )
    schemas = dict.fromkeys(TOOLS, SCHEMA)
    return invocation(
        *calls,
        final_response=final_response,
        sub_agents=runs,
        model_calls=models,
        tool_schemas=schemas,
        turn=0,
    )


def _turn(asked: tuple[ExpectedCall, ...], response: str) -> ReferenceTurn:
    return ReferenceTurn(
        "help",
        asked,
        response,
        forbidden=(ExpectedCall("drop_table"), ExpectedCall("refund", {"limit": 100})),
        response_contains=("refunded", "mail"),
        expected_agent="agent_1",
        escalate=False,
    )


MIXES: dict[str, Callable[[int], Agreed]] = {"usual": realistic, "hard": adversarial}


def fresh(actual: Invocation) -> Invocation:
    """An equal invocation, of which no scorer can have kept anything."""
    return replace(actual, tool_calls=tuple(list(actual.tool_calls)))


def of_invocation(criterion: Criterion, situation: Agreed) -> Scoring:
    """Scores an invocation."""
    actual, expected = situation
    return partial(criterion.scorer.score, fresh(actual), expected)


def of_session(scorer: SessionScorer, size: int) -> Scoring:
    """Scores a session of so many turns, which ask different questions."""
    questions = (" ".join((*WORDS[: i % 5], f"order {i}")) for i in range(size))
    said = (replace(realistic(2)[0], user_input=question) for question in questions)
    turns = tuple(SessionTurn(one, {"tool_trajectory_avg_score": 1.0}) for one in said)
    reference = Reference("talk", tuple(realistic(2)[1] for _ in turns))
    return partial(scorer.score_session, turns, reference)


class Cost:
    """Seconds of CPU that a scorer takes for a situation, the fastest so far."""

    def __init__(self, prepare: Callable[[], Scoring]) -> None:
        self._prepare = prepare
        self.seconds = float("inf")
        self.too_long = False

    def measure(self) -> None:
        for _ in range(ROUNDS):
            seconds = timed(partial(self._once, self._prepare()))
            self.seconds = min(self.seconds, seconds)
            if seconds > SLOW_S:
                break

    def _once(self, scoring: Scoring) -> None:
        self.too_long = scoring().reason == "too_long"

    def __str__(self) -> str:
        if self.too_long:
            return "too long"
        decimals = 1 if self.seconds < 1e-3 else 0
        return f"{self.seconds * 1e6:,.{decimals}f}"


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def built(written: dict[str, Json]) -> tuple[Criterion, ...]:
    """Criteria as a configuration would have them."""
    return criteria.build(written, Location(Document("", None), ("criteria",)))


@pytest.mark.slow
def test_no_scorer_takes_long_or_grows_faster_than_the_square_of_the_calls() -> None:
    situations = {(mix, size): make(size) for mix, make in MIXES.items() for size in SIZES}
    costs = {
        criterion.name: {
            key: Cost(partial(of_invocation, criterion, situation))
            for key, situation in situations.items()
        }
        for criterion in all_built()
    }
    assert slow_ones(costs, "calls") == {}


@pytest.mark.slow
def test_no_scorer_of_sessions_takes_long_or_grows_faster_than_the_square_of_the_turns() -> None:
    costs = {
        criterion.name: {("turns", size): Cost(partial(of_session, scorer, size)) for size in SIZES}
        for criterion in all_built()
        if scores_sessions(scorer := criterion.scorer)
    }
    assert len(costs) > 5
    assert slow_ones(costs, "turns") == {}


def all_built() -> tuple[Criterion, ...]:
    """All registered scorers but judges, which wait for a model."""
    names = [
        name for name in SCORERS.names() if not getattr(scorer_class(name), "asks_model", False)
    ]
    return built({name: OPTIONS.get(name) for name in names} | VARIANTS)


def slow_ones(costs: dict[str, dict[tuple[str, int], Cost]], of: str) -> dict[str, list[str]]:
    """Measure and print all costs; return those that are too high by `too_slow`. `of` says what
    there are many of.
    """
    pace = Pace()
    end = time.monotonic() + SECONDS
    with without_garbage_collection():
        while True:
            for row in costs.values():
                pace.measure()
                for cost in row.values():
                    cost.measure()
            if time.monotonic() > end:
                break
    width = 3 + max(map(len, costs))
    columns = [f"{mix} {size}" for mix, size in next(iter(costs.values()))]
    print(f"\n{f'us of CPU for so many {of}':{width}}" + "".join(f"{one:>11}" for one in columns))
    for name, row in costs.items():
        print(f"{name:{width}}" + "".join(f"{cost!s:>11}" for cost in row.values()))
    print(f"this machine took {pace.slower:.1f} times as long as the one where the bars were set")
    return {
        name: slow
        for name, row in costs.items()
        if (slow := too_slow(row, MAX_S * pace.slower, of))
    }


def too_slow(row: dict[tuple[str, int], Cost], max_s: float, of: str) -> list[str]:
    """The mixes in which a scorer takes longer than that for many, or grows too fast up to them."""
    slow = []
    for mix in dict.fromkeys(mix for mix, _ in row):
        many, less = row[mix, SIZES[-1]], row[mix, SIZES[-2]]
        most = min(max_s, max(TOO_QUICK_TO_TELL_S, less.seconds * SQUARE_AND_SLACK))
        if many.seconds > most and not (many.too_long and many.seconds <= max_s):
            slow.append(
                f"{mix}: {many.seconds * 1e3:.1f} ms for {SIZES[-1]:,} {of},"
                f" {less.seconds * 1e3:.1f} ms for {SIZES[-2]:,}"
            )
    return slow


@pytest.mark.slow
def test_the_default_criteria_cost_little_beside_the_call_of_a_tool() -> None:
    evaluator = Evaluator(built({**criteria.DEFAULTS, **GATE_CRITERIA}))
    actual, turn = realistic(USUAL)
    match = Match(Reference("scenario", (turn,)), turn, 0)
    pace, seconds = Pace(), float("inf")
    with without_garbage_collection():
        for _ in range(200 if LONG else 5):
            pace.measure()
            seconds = min(
                seconds,
                *(timed(partial(evaluator.evaluate, fresh(actual), match)) for _ in range(100)),
            )
    names = ", ".join(criterion.name for criterion in evaluator.criteria)
    print(f"\n{seconds * 1e6:.1f} us of CPU for {USUAL} calls by {names}")
    assert [
        result.criterion.name
        for result in evaluator.evaluate(actual, match).results
        if result.score.value is None
    ] == []
    assert seconds <= USUAL_MOST_S * pace.slower
