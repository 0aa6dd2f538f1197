"""Where the time went: model, tool and framework time, with calls that overlap."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pathgauge.scorers.authoring.builders import invocation
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.cost.durations import FrameworkTime, ModelTime, ToolTime, covered
from pathgauge.scorers.types import CallKind, Invocation, ModelCall, Score, ToolCall

S = 1_000_000_000


def model(start: int | None, end: int | None) -> ModelCall:
    return ModelCall(
        "m", start_ns=None if start is None else start * S, end_ns=None if end is None else end * S
    )


def tool(start: int | None, end: int | None, kind: CallKind = "function") -> ToolCall:
    return ToolCall(
        "t",
        {},
        kind=kind,
        start_ns=None if start is None else start * S,
        end_ns=None if end is None else end * S,
    )


def turn(*calls: ModelCall | ToolCall, **others: Any) -> Invocation:
    """A turn of 10 s."""
    models = tuple(call for call in calls if isinstance(call, ModelCall))
    tools = tuple(call for call in calls if isinstance(call, ToolCall))
    return invocation(*tools, **({"model_calls": models, "start_ns": 0, "end_ns": 10 * S} | others))


def times(actual: Invocation) -> list[float | str | None]:
    scores = [scorer.score(actual, None) for scorer in (ModelTime(), ToolTime(), FrameworkTime())]
    return [score.reason or score.value for score in scores]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([model(0, 2), tool(2, 5), model(6, 8)], [4, 3, 3], id="one after the other"),
        pytest.param(
            [model(0, 1), tool(1, 5), tool(2, 4), tool(4, 7)], [1, 6, 3], id="tools in parallel"
        ),
        pytest.param(
            [model(0, 1), tool(1, 5), model(2, 4)], [3, 4, 5], id="a tool that calls a model"
        ),
        pytest.param([model(1, 3)], [2, 0, 8], id="no tools"),
        pytest.param([model(-2, 1), model(9, 14)], [8, 0, 8], id="calls that stick out"),
        pytest.param([model(-3, -1), model(11, 12)], [3, 0, 10], id="calls outside"),
        pytest.param(
            [model(0, 1), tool(None, None, "handoff"), tool(None, None, "final_answer")],
            [1, 0, 9],
            id="no time of their own",
        ),
        pytest.param([model(0, 1), tool(2, 3, "handoff")], [1, 1, 8], id="a handoff with a span"),
        pytest.param([model(0, 1), tool(2, 3, "agent")], [1, 1, 8], id="an agent as a tool"),
        pytest.param(
            [model(0, 1), tool(None, None)],
            [1, "duration_not_recorded", "duration_not_recorded"],
            id="a call without times",
        ),
        pytest.param(
            [model(0, 1), tool(None, None, "agent")],
            [1, *["duration_not_recorded"] * 2],
            id="an agent without times",
        ),
        pytest.param(
            [model(0, 1), tool(1, None)],
            [1, *["duration_not_recorded"] * 2],
            id="a call without end",
        ),
        pytest.param(
            [model(None, 1), tool(1, 2)],
            ["duration_not_recorded", 1, "duration_not_recorded"],
            id="a model without start",
        ),
        pytest.param(
            [model(0, 1), model(3, 2)],
            ["duration_not_recorded", 0, "duration_not_recorded"],
            id="clocks that ran backwards",
        ),
        pytest.param([tool(1, 2)], ["incomplete", 1, "incomplete"], id="models not traced"),
    ],
)
def test_time_is_told_by_what_it_was_spent_on(
    calls: list[ModelCall | ToolCall], expected: list[float | str]
) -> None:
    assert times(turn(*calls)) == expected


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"error": True}, ["undefined"] * 3),
        ({"flags": frozenset({"no_tool_spans"})}, [1, "tools_not_recorded", "tools_not_recorded"]),
        (
            {"flags": frozenset({"dropped_spans"})},
            ["incomplete", "tools_not_recorded", "incomplete"],
        ),
        ({"start_ns": None}, [1, 0, "duration_not_recorded"]),
        ({"end_ns": None}, [1, 0, "duration_not_recorded"]),
        ({"start_ns": 11 * S}, [1, 0, "duration_not_recorded"]),
    ],
)
def test_time_is_not_known_without_all_telemetry(
    others: dict[str, Any], expected: list[float | str]
) -> None:
    assert times(turn(model(0, 1), **others)) == expected


def test_the_line_says_of_what_the_time_is_part() -> None:
    actual = turn(model(0, 2), tool(2, 5), tool(2, 5))
    assert ModelTime().score(actual, None) == Score(2.0, None, "2 s in 1 model call")
    assert ToolTime().score(actual, None) == Score(3.0, None, "3 s in 2 tool calls")
    assert FrameworkTime().score(actual, None) == Score(
        5.0, None, "5 s of 10 s outside of models and tools"
    )


INTERVALS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair))),
    max_size=8,
)


@given(INTERVALS)
def test_covered_time_counts_every_moment_once(intervals: list[tuple[int, int]]) -> None:
    assert covered(intervals) == len(
        {moment for start, end in intervals for moment in range(start, end)}
    )


@given(INTERVALS, INTERVALS)
def test_framework_time_is_what_models_and_tools_leave(
    models: list[tuple[int, int]], tools: list[tuple[int, int]]
) -> None:
    actual = turn(model(0, 0), *(model(*pair) for pair in models), *(tool(*pair) for pair in tools))
    busy = {moment for start, end in (*models, *tools) for moment in range(start, end)} & set(
        range(10)
    )
    assert FrameworkTime().score(actual, None).value == 10 - len(busy)


@pytest.mark.parametrize("scorer", [ModelTime(), ToolTime(), FrameworkTime()])
def test_they_keep_the_contract(scorer: Any) -> None:
    check_scorer(scorer, [(turn(model(0, 2**40), tool(1, 2)), None)])
