"""Delegations in a circle: which ones count, and where the agents are not known."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from pathgauge import AgentRun, DelegationCycles, Score, ToolCall, check_scorer, invocation
from pathgauge.scorers.tool_use.delegation_cycles import MAX_DELEGATIONS


def handoffs(path: str) -> list[ToolCall]:
    """Handoffs along a path of agents, each a letter; a blank begins another path."""
    return [
        ToolCall(f"transfer_to_{taker}", {}, agent=giver, kind="handoff")
        for part in path.split()
        for giver, taker in pairwise(part)
    ]


def score(path: str, **options: Any) -> Score:
    return DelegationCycles(**options).score(invocation(*handoffs(path), agent="a"), None)


@pytest.mark.parametrize(
    ("path", "laps", "returns"),
    [
        ("ab", 0, 0),
        ("aba", 0, 1),
        ("abab", 1, 2),
        ("ababab", 3, 4),
        ("abaca", 0, 2),
        ("abcabc", 2, 3),
        ("abcd", 0, 0),
        ("ab ab", 0, 0),
        ("wab wab", 0, 0),
        ("aa", 0, 1),
        ("aaa", 1, 2),
    ],
)
def test_work_went_round_if_an_agent_passes_it_on_again_after_it_came_back(
    path: str, laps: int, returns: int
) -> None:
    assert score(path).value == laps
    assert score(path, returns=True).value == returns


def test_the_explanation_shows_the_first_circle() -> None:
    assert score("abcabca") == Score(
        3.0,
        None,
        "3 of 6 delegations in a circle: a -> b -> c -> a, and 2 more",
        {
            "cycles": [
                ["a", "b", "c", "a"],
                ["b", "c", "a", "b"],
                ["c", "a", "b", "c"],
            ],
            "delegations": [["a", "b"], ["b", "c"], ["c", "a"]] * 2,
        },
    )


def test_agents_are_compared_by_their_words() -> None:
    calls = (
        ToolCall("delegate_to_billing_agent", {}, agent="Front Desk"),
        ToolCall("transfer_to_agent", {"agent_name": "front-desk"}, agent="Billing Agent"),
        ToolCall("billing agent", {}, agent="front_desk", kind="agent"),
    )
    assert DelegationCycles().score(invocation(*calls), None).details["cycles"] == [
        ["front_desk", "billing_agent", "front_desk"]
    ]


def test_the_runs_count_if_calls_do_not_name_the_agents() -> None:
    runs = tuple(
        AgentRun(str(at), taker, giver, via="handoff")
        for at, (giver, taker) in enumerate([("a", "b"), ("b", "a"), ("a", "b")])
    )
    unnamed = ToolCall("transfer_to_agent", {}, kind="handoff")
    actual = invocation(unnamed, sub_agents=runs)
    assert DelegationCycles().score(actual, None).value == 1.0


@pytest.mark.parametrize(
    ("actual", "reason"),
    [
        (invocation(), "not_applicable"),
        (invocation(ToolCall("transfer_to_agent", {}, kind="handoff")), "not_applicable"),
        (invocation(ToolCall("transfer_to_agent", kind="handoff")), "args_not_recorded"),
        (
            invocation(*handoffs("abab"), flags=frozenset({"dropped_spans"})),
            "tools_not_recorded",
        ),
    ],
)
def test_there_is_no_value_if_the_delegations_are_not_known(actual: Any, reason: str) -> None:
    assert DelegationCycles().score(actual, None).reason == reason


def test_the_reason_tells_no_delegation_from_unnamed_agents() -> None:
    unnamed = invocation(ToolCall("transfer_to_agent", {}, kind="handoff"))
    found = [DelegationCycles().score(one, None).explanation for one in (invocation(), unnamed)]
    assert found == ["no work was delegated", "the agents are not named"]


def test_the_limit_itself_is_evaluated() -> None:
    calls = handoffs("ab " * MAX_DELEGATIONS)
    assert DelegationCycles().score(invocation(*calls), None).value == 0.0
    assert DelegationCycles().score(invocation(*calls, *calls[:1]), None).reason == "too_long"


def test_every_circle_is_one_and_returns_are_at_least_the_laps() -> None:
    random = Random(1)
    for _ in range(300):
        path = "".join(random.choice("abcd") for _ in range(random.randrange(2, 12)))
        laps, returns = score(path), score(path, returns=True)
        assert laps.value is not None
        assert returns.value is not None
        assert laps.value <= returns.value
        made = returns.details["delegations"]
        for cycle in (*laps.details["cycles"], *returns.details["cycles"]):
            assert cycle[0] == cycle[-1]
            assert all([*pair] in made for pair in pairwise(cycle))


def test_it_keeps_the_contract() -> None:
    actual = invocation(*handoffs("abab"))
    check_scorer(DelegationCycles(returns=True), [(actual, None)])
