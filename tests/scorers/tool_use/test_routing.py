"""Routing: the sub-agent that received the work, by spans and by calls."""

from typing import Any

import pytest

from pathgauge.scorers.authoring.builders import invocation, tool_call
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.routing import RoutingAccuracy
from pathgauge.scorers.types import AgentRun, CallKind, Invocation, ReferenceTurn, Score, ToolCall


def runs(*agents: str | None) -> dict[str, Any]:
    return {
        "sub_agents": tuple(AgentRun(str(number), agent) for number, agent in enumerate(agents))
    }


def value_or_reason(
    expected: str | None, actual: Invocation, which: Any = "first"
) -> float | str | None:
    score = RoutingAccuracy(which=which).score(actual, ReferenceTurn(expected_agent=expected))
    assert [
        RoutingAccuracy(expected, which).score(actual, turn) for turn in (None, ReferenceTurn())
    ] == [score, score]
    return score.reason or score.value


def handoff(name: str, kind: CallKind = "function", **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, kind=kind)


UNRECORDED = ToolCall("transfer_to_agent", kind="handoff")


@pytest.mark.parametrize(
    ("calls", "agents", "first", "in_any"),
    [
        pytest.param([], ["billing"], 1.0, 1.0, id="a run"),
        pytest.param([], ["Billing "], 1.0, 1.0, id="a run in other letters"),
        pytest.param([], ["sales"], 0.0, 0.0, id="a run of another agent"),
        pytest.param([], ["bill"], 0.0, 0.0, id="a part of the name"),
        pytest.param([], ["billing_agent"], 0.0, 0.0, id="more than the name"),
        pytest.param([], ["sales", "billing"], 0.0, 1.0, id="the wrong one first"),
        pytest.param([], ["billing", "sales"], 1.0, 1.0, id="the right one first"),
        pytest.param([], [None], "not_applicable", "not_applicable", id="a run without name"),
        pytest.param([], [None, "billing"], "not_applicable", 1.0, id="a run without name first"),
        pytest.param([handoff("delegate_to_billing")], [], 1.0, 1.0, id="a delegation"),
        pytest.param(
            [handoff("delegate_to_billing_disputes")],
            [],
            0.0,
            0.0,
            id="a delegation to another agent",
        ),
        pytest.param(
            [handoff("search"), handoff("transfer_to_billing")], [], 1.0, 1.0, id="a transfer"
        ),
        pytest.param([handoff("handoff_to_billing")], [], 1.0, 1.0, id="a handoff"),
        pytest.param([handoff("hand_off_to_billing")], [], 1.0, 1.0, id="a handoff in two words"),
        pytest.param(
            [handoff("delegate_to_sales"), handoff("delegate_to_billing")],
            [],
            0.0,
            1.0,
            id="two delegations",
        ),
        pytest.param(
            [handoff("transfer_to_agent", agent_name="billing")],
            [],
            1.0,
            1.0,
            id="a name among the arguments",
        ),
        pytest.param(
            [handoff("delegate_work_to_coworker", "agent", coworker="Billing")],
            [],
            1.0,
            1.0,
            id="a coworker",
        ),
        pytest.param(
            [handoff("transfer_to_agent", agent_name=["billing"])],
            [],
            *["not_applicable"] * 2,
            id="no name there",
        ),
        pytest.param(
            [handoff("transfer_to_agent", agent_name=" - ")],
            [],
            *["not_applicable"] * 2,
            id="a blank name there",
        ),
        pytest.param([UNRECORDED], [], *["args_not_recorded"] * 2, id="arguments not recorded"),
        pytest.param(
            [UNRECORDED, handoff("delegate_to_billing")],
            [],
            "args_not_recorded",
            1.0,
            id="the first not recorded",
        ),
        pytest.param([UNRECORDED], ["billing"], 1.0, 1.0, id="not recorded, but seen"),
        pytest.param([UNRECORDED], ["sales"], 0.0, 0.0, id="not recorded, but seen elsewhere"),
        pytest.param([handoff("billing", "agent")], [], 1.0, 1.0, id="an agent as a tool"),
        pytest.param(
            [handoff("ask_billing", "agent")],
            ["billing"],
            1.0,
            1.0,
            id="a run below an agent as a tool",
        ),
        pytest.param(
            [handoff("pass_on", "handoff")],
            [],
            *["not_applicable"] * 2,
            id="a handoff to nobody known",
        ),
        pytest.param(
            [handoff("delegate_to_billing")],
            ["billing_v2"],
            1.0,
            1.0,
            id="the name in the call alone",
        ),
        pytest.param([handoff("billing")], [], 0.0, 0.0, id="a function of that name"),
        pytest.param([], [], 0.0, 0.0, id="the main agent did it"),
    ],
)
def test_runs_and_calls_show_where_the_work_went(
    calls: list[ToolCall], agents: list[str | None], first: float | str, in_any: float | str
) -> None:
    actual = invocation(*calls, **runs(*agents))
    assert [value_or_reason("billing", actual, which) for which in ("first", "any")] == [
        first,
        in_any,
    ]


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (invocation(agent="Billing-Agent"), 1.0),
        (invocation(agent="sales"), 0.0),
        (invocation(agent=None), "not_applicable"),
        (invocation(agent="billing agent", **runs("sales")), 0.0),
    ],
)
def test_without_sub_agents_the_main_agent_did_the_work(
    actual: Invocation, expected: float | str
) -> None:
    assert value_or_reason("billing_agent", actual) == expected


LOSSY = frozenset({"dropped_spans"})
NO_TOOLS = frozenset({"no_tool_spans"})


@pytest.mark.parametrize(
    ("actual", "first", "in_any"),
    [
        (invocation(flags=NO_TOOLS), "tools_not_recorded", "tools_not_recorded"),
        (invocation(agent="billing", flags=NO_TOOLS), "tools_not_recorded", "tools_not_recorded"),
        (invocation(flags=NO_TOOLS, **runs("billing")), 1.0, 1.0),
        (invocation(flags=NO_TOOLS, **runs("sales")), 0.0, 0.0),
        (invocation(handoff("delegate_to_billing"), flags=NO_TOOLS), "tools_not_recorded", 1.0),
        (invocation(flags=LOSSY, **runs("billing")), "tools_not_recorded", 1.0),
        (invocation(flags=LOSSY, **runs("sales")), "tools_not_recorded", "tools_not_recorded"),
    ],
)
def test_routing_is_unknown_if_runs_or_calls_may_be_missing(
    actual: Invocation, first: float | str, in_any: float | str
) -> None:
    assert [value_or_reason("billing", actual, which) for which in ("first", "any")] == [
        first,
        in_any,
    ]


@pytest.mark.parametrize("expected", [None, "", " -_"])
def test_without_an_expected_agent_there_is_no_value(expected: str | None) -> None:
    score = RoutingAccuracy().score(
        invocation(**runs("billing")), ReferenceTurn(expected_agent=expected)
    )
    assert score == Score.not_evaluated("no_reference", "no agent is expected")


def test_the_reference_takes_precedence_over_the_option() -> None:
    actual = invocation(handoff("delegate_to_sales"), tool_call("search"), **runs("sales", None))
    score = RoutingAccuracy("sales", "any").score(actual, ReferenceTurn(expected_agent="Sales"))
    details = {"expected": "Sales", "sub_agents": ["sales", None], "called": ["sales"]}
    assert score == Score(1.0, None, "the work went to sales, expected Sales", details)


def test_options_are_checked() -> None:
    routed: Any = (
        invocation(handoff("transfer_to_agent"), handoff("transfer_to_\n"), **runs("a", None)),
        ReferenceTurn(expected_agent="b\nc"),
    )
    for scorer in (RoutingAccuracy(), RoutingAccuracy("agent"), RoutingAccuracy(which="any")):
        check_scorer(scorer, [routed])
    with pytest.raises(ValueError, match="which: found 'last', expected one of first, any"):
        RoutingAccuracy(which="last")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="agent: found '-', expected the name of an agent"):
        RoutingAccuracy("-")
