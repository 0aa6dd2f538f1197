"""An invocation seen as what its main agent did itself, and as what each sub-agent did; scorers of
one agent.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge import (
    Failure,
    Latency,
    ResponseMatchScore,
    Score,
    SpanRecord,
    ToolTrajectoryF1,
)
from pathgauge.scorers.adapters.functions import from_function
from pathgauge.scorers.authoring.builders import expected_calls, reference_turn
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.composite.agent_view import MAX_RUNS, OfAgent, View, own_view, subtree_view
from pathgauge.scorers.types import (
    AgentRun,
    Invocation,
    ModelCall,
    ReferenceTurn,
    ToolCall,
    total_tokens,
)

ROUTED = ToolCall("ask_billing", {"about": "INV-9"}, agent="main", run="1", kind="agent")
BILLED = ToolCall("get_invoice", {"id": "INV-9"}, agent="billing", run="2")
CHECKED = ToolCall("check_tax", {}, agent="tax", run="3")
MODELS = (
    ModelCall("a", "main", "1", "big", 10, 1),
    ModelCall("b", "billing", "2", "small", 20, 2),
    ModelCall("c", "tax", "3", "tiny", 30, 3),
    ModelCall("d", "main", "1", "big", 40, 4),
)
BILLING = AgentRun("2", "billing", "main", "1", "agent", "INV-9?", "120 EUR", start_ns=2, end_ns=5)
TAX = AgentRun(
    "3", "tax", "billing", "2", "agent", "how much tax?", None, "boom", "ValueError", 3, 4
)
WHOLE = Invocation(
    "t",
    "1",
    "genai",
    agent="main",
    user_input="how much?",
    tool_calls=(ROUTED, BILLED, CHECKED),
    sub_agents=(BILLING, TAX),
    model_calls=MODELS,
    final_response="120 euros",
    model="big",
    input_tokens=100,
    output_tokens=10,
    start_ns=1,
    end_ns=6,
)


LINKS = {"1": None, "2": "1", "2a": "2", "3": "2a", "3a": "3", "1a": "1"}
SPANS = tuple(SpanRecord(own, parent) for own, parent in LINKS.items())


def span_ids(view: Invocation) -> list[str]:
    return [span.span_id for span in view.spans]


def test_each_agent_has_the_spans_below_its_own() -> None:
    whole = replace(WHOLE, spans=SPANS)
    assert span_ids(own_view(whole)) == ["1", "1a"]
    assert span_ids(own_view(whole, BILLING)) == ["2", "2a"]
    assert span_ids(own_view(whole, TAX)) == ["3", "3a"]
    assert span_ids(subtree_view(whole, BILLING)) == ["2", "2a", "3", "3a"]
    assert span_ids(own_view(replace(whole, sub_agents=()))) == list(LINKS)


def test_the_main_agent_did_what_no_sub_agent_did() -> None:
    assert own_view(WHOLE) == replace(
        WHOLE,
        tool_calls=(ROUTED,),
        model_calls=(MODELS[0], MODELS[3]),
        sub_agents=(),
        input_tokens=50,
        output_tokens=5,
    )


def test_an_agent_without_sub_agents_is_its_own_view() -> None:
    alone = replace(WHOLE, sub_agents=(), model_calls=(), input_tokens=7)
    assert own_view(alone) == alone


def test_a_sub_agent_alone_and_with_those_below_it() -> None:
    own = replace(
        WHOLE,
        span_id="2",
        agent="billing",
        user_input="INV-9?",
        tool_calls=(BILLED,),
        sub_agents=(),
        model_calls=(MODELS[1],),
        final_response="120 EUR",
        model="small",
        input_tokens=20,
        output_tokens=2,
        start_ns=2,
        end_ns=5,
    )
    assert own_view(WHOLE, BILLING) == own
    assert subtree_view(WHOLE, BILLING) == replace(
        own,
        tool_calls=(BILLED, CHECKED),
        sub_agents=(TAX,),
        model_calls=MODELS[1:3],
        model="tiny",
        input_tokens=50,
        output_tokens=5,
    )


def test_a_sub_agent_that_failed_is_a_failed_invocation() -> None:
    view = own_view(WHOLE, TAX)
    assert (view.error, view.error_type, view.final_response) == (True, "ValueError", None)


@pytest.mark.parametrize(
    ("calls", "total"),
    [
        ((), (None, None)),
        (MODELS[:2], (30, 3)),
        ((MODELS[0], ModelCall("x", error="boom")), (10, 1)),
        ((MODELS[0], ModelCall("x")), (None, None)),
        ((ModelCall("x", input_tokens=3), ModelCall("y", output_tokens=4)), (3, 4)),
        ((ModelCall("x", error="boom"),), (None, None)),
    ],
)
def test_a_total_is_known_when_every_call_that_answered_was_counted(
    calls: tuple[ModelCall, ...], total: tuple[int | None, int | None]
) -> None:
    assert total_tokens(calls) == total


F1 = ToolTrajectoryF1()
EXPECTED = ReferenceTurn(
    tool_calls=expected_calls("ask_billing"),
    agents={
        "billing": reference_turn(*expected_calls("get_invoice check_tax"), response="120 EUR"),
        "tax": reference_turn(*expected_calls("check_tax")),
        "legal": reference_turn(*expected_calls("read_contract"), response="No."),
        "silent": reference_turn(),
    },
)


@pytest.mark.parametrize(
    ("agent", "view", "value"),
    [
        ("main", "own", 1.0),
        ("main", "subtree", 0.5),
        ("billing", "own", 2 / 3),
        ("billing", "subtree", 1.0),
        ("tax", "own", 1.0),
    ],
)
def test_an_agent_is_judged_by_what_it_did_against_its_own_reference(
    agent: str, view: View, value: float
) -> None:
    assert OfAgent(F1, agent, view).score(WHOLE, EXPECTED).value == value


def test_the_evidence_lists_the_runs() -> None:
    score = OfAgent(F1, "billing").score(WHOLE, EXPECTED)
    line = "1 of 2 expected calls matched; missing check_tax"
    own = F1.score(own_view(WHOLE, BILLING), EXPECTED.agents["billing"])
    run = {"run": "2", "value": 2 / 3, "reason": None, "explanation": line, "details": own.details}
    assert score == Score(2 / 3, None, line, {"agent": "billing", "runs": [run]})


def searches(*calls: int, agent: str = "search") -> Invocation:
    """An invocation in which a sub-agent ran so often, each time with so many calls."""
    runs = tuple(
        AgentRun(str(index), agent, "main", "1", start_ns=0, end_ns=10**9 * (index + 1))
        for index in range(len(calls))
    )
    made = tuple(
        ToolCall("fetch", {}, run=str(index))
        for index, count in enumerate(calls)
        for _ in range(count)
    )
    return replace(WHOLE, tool_calls=made, sub_agents=runs)


FETCH = ReferenceTurn(agents={"search": reference_turn(*expected_calls("fetch"))})


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_several_runs_have_the_exact_mean(calls: list[int]) -> None:
    value = OfAgent(F1, "search").score(searches(*calls), FETCH).value
    assert value == math.fsum(2 * min(count, 1) / (1 + count) for count in calls) / len(calls)


def test_of_several_runs_the_worst_explains_the_mean() -> None:
    score = OfAgent(F1, "search").score(searches(1, 0, 1), FETCH)
    assert (
        score.explanation
        == "mean of 3 of 3 runs of search; the worst: 0 of 1 expected calls matched; missing fetch"
    )
    assert [run["value"] for run in score.details["runs"]] == [1.0, 0.0, 1.0]
    assert (
        OfAgent(Latency(), "search")
        .score(searches(1, 0, 1), None)
        .explanation.endswith("the worst: 3 s")
    )


def test_runs_without_a_value_are_listed_and_left_out() -> None:
    one, two = searches(1, 1).sub_agents
    actual = replace(searches(1, 1), sub_agents=(replace(one, error="boom"), two))
    score = OfAgent(Latency(), "search").score(actual, None)
    assert (score.value, score.explanation) == (
        2.0,
        "mean of 1 of 2 runs of search; the worst: 2 s",
    )
    assert [run["reason"] for run in score.details["runs"]] == ["undefined", None]
    none = OfAgent(Latency(), "search").score(
        replace(actual, sub_agents=(replace(one, error="boom"), replace(two, end_ns=None))), None
    )
    assert (none.value, none.reason, none.explanation) == (None, "undefined", "the run failed")
    assert [run["reason"] for run in none.details["runs"]] == ["undefined", "duration_not_recorded"]


def test_too_many_runs_are_not_judged() -> None:
    assert OfAgent(F1, "search").score(searches(*[1] * MAX_RUNS), FETCH).value == 1.0
    assert OfAgent(F1, "search").score(searches(*[1] * (MAX_RUNS + 1)), FETCH) == Score(
        None, "too_long", "201 runs of search; at most 200 are judged"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scorer", "agent", "expected", "score"),
    [
        (F1, "nobody", EXPECTED, (None, "not_applicable", "nobody did not run")),
        (Failure(), "legal", EXPECTED, (None, "not_applicable", "legal did not run")),
        (Latency(), "legal", None, (None, "not_applicable", "legal did not run")),
        (
            F1,
            "legal",
            EXPECTED,
            (0.0, None, "legal did not run: 0 of 1 expected calls matched; missing read_contract"),
        ),
        (F1, "silent", EXPECTED, (1.0, None, "silent did not run: no calls expected")),
        (ResponseMatchScore(), "legal", EXPECTED, (0.0, None, None)),
        (ResponseMatchScore(), "silent", EXPECTED, (None, "no_reference", None)),
        (F1, "legal", None, (None, "no_reference", "no reference")),
        (F1, "billing", ReferenceTurn(), (None, "no_reference", "no reference for the tool calls")),
    ],
)
def test_an_agent_that_did_not_run_is_judged_only_where_the_reference_wants_it(
    scorer: Any,
    agent: str,
    expected: ReferenceTurn | None,
    score: tuple[float | None, str | None, str | None],
) -> None:
    found = OfAgent(scorer, agent).score(WHOLE, expected)
    assert (found.value, found.reason, found.explanation if score[2] else None) == score


@pytest.mark.parametrize("scorer", [F1, ResponseMatchScore()])
def test_where_spans_may_be_missing_nobody_knows_whether_the_agent_ran(scorer: Any) -> None:
    holes = replace(WHOLE, flags=frozenset({"dropped_spans"}))
    assert OfAgent(scorer, "legal").score(holes, EXPECTED).reason == "tools_not_recorded"


def test_an_idle_agent_has_no_run_in_the_evidence() -> None:
    (run,) = OfAgent(F1, "legal").score(WHOLE, EXPECTED).details["runs"]
    assert run["run"] is None


def test_name_range_and_direction_are_those_of_the_scorer() -> None:
    seconds = from_function(
        lambda invocation: 3, name="three", low=-1, high=5, higher_is_better=False
    )
    for scorer in (F1, Latency(), seconds):
        of = OfAgent(scorer, "billing")
        for declared in ("name", "version", "low", "high", "higher_is_better", "needs_reference"):
            assert getattr(of, declared) == getattr(scorer, declared)


def test_a_view_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^view: found 'all', expected one of own, subtree$"):
        OfAgent(F1, "billing", "all")  # type: ignore[arg-type]


@pytest.mark.parametrize("agent", ["agent", "other", "billing"])
@pytest.mark.parametrize("scorer", [F1, Latency(), Failure(), ResponseMatchScore()])
@pytest.mark.parametrize("view", ["own", "subtree"])
def test_a_scorer_of_one_agent_keeps_the_contract(scorer: Any, agent: str, view: View) -> None:
    check_scorer(
        OfAgent(scorer, agent, view), [(WHOLE, EXPECTED), (searches(1, 2, agent="other"), FETCH)]
    )
