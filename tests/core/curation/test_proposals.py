"""References that are learned from runs: what varies, what is optional, what is left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.core.curation.acceptance import accepts
from pathgauge.collector.core.curation.grouping import Group, Observed, grouped
from pathgauge.collector.core.curation.proposal import LeftOut, Options, Proposal, propose
from pathgauge.collector.core.curation.runs import Run
from pathgauge.collector.core.curation.written import document
from pathgauge.scorers.types import Invocation, ToolCall
from support.curated_traffic import BAD, BEFORE, LATER, TUNING, Behaviour, Labelled, labelled
from support.held_out_traffic import HELD_OUT
from support.thinning import thinned


def invocation(run: Labelled, number: int) -> Invocation:
    script = run.script
    calls = [call for some in script.rounds for call in some]
    return Invocation(
        f"{number:032x}",
        f"{number:016x}",
        "genai",
        scenario_id=script.scenario_id or None,
        user_input=script.user_input,
        final_response=script.answer or None,
        tool_calls=tuple(ToolCall(call.name, call.arguments) for call in calls),
    )


def of(paths: Sequence[str], answer: str = "It is done.", *, first: int = 0) -> list[Observed]:
    """Runs that call these tools, such as `a b c`; `b+c` are requested by one message."""
    runs = []
    for number, path in enumerate(paths, start=first):
        calls: list[ToolCall] = []
        for group, step in enumerate(path.split()):
            tools = step.split("+")
            calls += [ToolCall(tool, {}, group=group if tools[1:] else None) for tool in tools]
        one = Invocation(f"{number:032x}", "0" * 16, "genai", scenario_id="s")
        runs.append(Observed(replaced(one, calls, answer)))
    return runs


def replaced(one: Invocation, calls: Sequence[ToolCall], answer: str | None) -> Invocation:
    return Invocation(
        one.trace_id,
        one.span_id,
        one.dialect,
        scenario_id=one.scenario_id,
        tool_calls=tuple(calls),
        final_response=answer,
    )


def proposed(observed: Sequence[Observed], options: Options | None = None) -> Proposal:
    [group] = grouped(observed).groups
    proposal = propose(group, options or Options())
    assert proposal is not None
    return proposal


def test_numbers_that_no_float_can_hold_are_set_aside_like_others() -> None:
    def one(number: int, amount: float) -> Observed:
        bare = Invocation(f"{number:032x}", "0" * 16, "genai", scenario_id="s")
        return Observed(replaced(bare, [ToolCall("pay", {"amount": amount})], "It is done."))

    amounts = [*range(100, 140), 10**400, float("inf")]
    found = proposed([one(number, amount) for number, amount in enumerate(amounts)])
    assert (found.kept, found.accepted, found.rejected) == (40, 40, 2)


def test_arguments_that_yaml_would_read_as_matchers_are_not_compared() -> None:
    queries = [{"$text": f"ORD-{number}", "limit": 5} for number in range(10, 30)]
    plain = [{"filter": {"age": {"$gt": number}}} for number in range(10, 30)]
    cases: list[tuple[list[dict[str, Any]], str]] = [
        (queries, "find"),
        (plain, "{name: find, args: {filter: {age: {$any: true}}}}"),
        ([{"$text": "x"}] * 20, "{name: find, args: {$literal: {$text: x}}}"),
    ]
    for arguments, expected in cases:
        runs = [
            Observed(replaced(one.invocation, [ToolCall("find", given)], "Found."))
            for one, given in zip(of(["find"] * 20), arguments, strict=True)
        ]
        proposal = proposed(runs)
        assert (proposal.accepted, proposal.kept) == (20, 20)
        assert f"  - {expected}\n" in document(proposal)


def shapes(proposal: Proposal) -> list[str]:
    """Each way, such as `a b? {c d}`."""
    turn = proposal.reference.turns[0]
    found = []
    for calls in (turn.tool_calls or (), *turn.alternatives):
        steps: dict[object, list[str]] = {}
        for place, call in enumerate(calls):
            key = ("alone", place) if call.group is None else call.group
            steps.setdefault(key, []).append(call.name + "?" * call.optional)
        names = (" ".join(some) for some in steps.values())
        found.append(" ".join(f"{{{some}}}" if " " in some else some for some in names))
    return found


@pytest.mark.parametrize(
    ("paths", "learned"),
    [
        (["a b c"] * 20, ["a b c"]),
        (["a b c"] * 15 + ["a c"] * 15, ["a b? c"]),
        (["a b c"] * 15 + ["b a c"] * 15, ["{a b} c"]),
        (["a b+c"] * 20, ["a {b c}"]),
        (["a b"] * 20 + ["a c"] * 20, ["a c", "a b"]),
        (["a b c"] * 20 + ["a"] * 20, ["a b c", "a"]),
        (["s"] * 12 + ["s s"] * 12 + ["s s s"] * 12, ["s s? s?"]),
        ([""] * 12, [""]),
    ],
)
def test_paths_become_steps(paths: list[str], learned: list[str]) -> None:
    random.Random(1).shuffle(paths)
    assert sorted(shapes(proposed(of(paths)))) == sorted(learned)


@pytest.mark.parametrize("rare", ["a c", "a b c x", "a b b c", "b a c", "a x c", ""])
def test_what_few_runs_do_is_left_out_and_named(rare: str) -> None:
    proposal = proposed(of(["a b c"] * 40 + [rare] * 3))
    assert shapes(proposal) == ["a b c"]
    assert (proposal.kept, proposal.accepted, proposal.rejected) == (40, 40, 3)
    assert sum(one.runs for one in proposal.left_out) == 3
    assert proposal.left_out[0].traces[0] == f"{40:032x}"


def test_what_more_runs_do_than_may_be_bad_is_learned() -> None:
    paths = ["a b c"] * 40 + ["a c"] * 9
    assert shapes(proposed(of(paths))) == ["a b? c"]
    assert shapes(proposed(of(paths), Options(bad_share=0.2))) == ["a b c"]
    assert shapes(proposed(of(["a b c"] * 40 + ["a c"]), Options(bad_share=0))) == ["a b? c"]


def test_arguments_that_were_not_always_recorded_are_not_compared() -> None:
    runs = [
        Observed(
            replaced(one.invocation, [ToolCall("a", {"x": 1} if number % 2 else None)], "Done.")
        )
        for number, one in enumerate(of(["a"] * 20))
    ]
    [call] = proposed(runs).reference.turns[0].tool_calls or ()
    assert call.arguments is None


def test_the_comments_name_ten_deviations_and_stay_comments() -> None:
    proposal = proposed(of(["a"] * 20))
    left_out = tuple(LeftOut(f"has {n}\n\x1b[31mx: 1", 2, ("t",)) for n in range(12))
    lines = document(replace(proposal, left_out=left_out)).splitlines()
    comments = [line for line in lines if line.startswith("# ")]
    assert comments[1] == "# Left out: 2 runs, such as trace t: has 0 ?[31mx: 1"
    assert comments[-1] == "# Left out: 4 more"
    assert len(comments) == 12


def test_the_threshold_is_one_that_all_turns_meet() -> None:
    def turn(n: int) -> dict[str, Any]:
        given = ("It is done.", f"Order {n} of {n % 7} lamps was sent to you today.")[n % 2]
        return {
            "scenario_id": "s",
            "conversation_id": f"c{n // 2}",
            "start_ns": n,
            "final_response": given,
        }

    [group] = groups_of(40, turn)
    proposal = propose(group)
    assert proposal is not None
    assert 0 < proposal.reference.criteria["response_match_score"] < 1
    assert proposal.accepted == 20


def test_too_few_runs_give_no_proposal() -> None:
    [group] = grouped(of(["a"] * 9)).groups
    assert propose(group) is None
    assert propose(group, Options(min_runs=9)) is not None


def test_an_answer_without_the_usual_words_is_left_out() -> None:
    runs = of(["a"] * 40, "Your refund is on its way, Anna.")
    runs += of(["a"] * 2, "Sorry, something went wrong.", first=40)
    proposal = proposed(runs)
    turn = proposal.reference.turns[0]
    assert turn.response_contains == ("Your refund is on its way, Anna",)
    assert proposal.kept == 40


def test_numbers_of_answers_are_no_phrases() -> None:
    runs = [
        Observed(replaced(one.invocation, (), f"Your order 2026-{n} has been sent."))
        for n, one in enumerate(of([""] * 20))
    ]
    assert proposed(runs).reference.turns[0].response_contains == ("has been sent", "Your order")


def test_a_proposal_is_the_same_for_the_same_runs_in_any_order() -> None:
    runs = [Observed(invocation(one, n)) for n, one in enumerate(runs_of(TUNING[0]))]
    first = document(proposed(runs))
    random.Random(3).shuffle(runs)
    assert document(proposed(runs)) == first


def runs_of(behaviour: Behaviour) -> list[Labelled]:
    return labelled(behaviour, 200, 31, BEFORE, 0.1)


@pytest.mark.parametrize(
    "behaviour", thinned([*TUNING, *HELD_OUT], 6), ids=lambda one: one.__name__
)
def test_bad_runs_among_good_ones_are_not_learned(behaviour: Behaviour) -> None:
    runs = [Observed(invocation(one, n)) for n, one in enumerate(runs_of(behaviour))]
    judged(proposed(runs), labelled(behaviour, 300, 32, LATER, 0.5))


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("kind", sorted(BAD))
@pytest.mark.parametrize("behaviour", TUNING, ids=lambda one: one.__name__)
def test_bad_runs_that_are_all_bad_in_the_same_way_are_not_learned(
    behaviour: Behaviour, kind: str
) -> None:
    seen = labelled(behaviour, 200, 41, BEFORE, 0.1, kinds=[kind])
    runs = [Observed(invocation(one, n)) for n, one in enumerate(seen)]
    judged(proposed(runs), labelled(behaviour, 300, 42, LATER, 0.5, kinds=[kind]))


def judged(proposal: Proposal, unseen: Sequence[Labelled]) -> None:
    accepted = [accepts(proposal.reference, [Run.of(invocation(one, 0))]) for one in unseen]
    good = [ok for ok, one in zip(accepted, unseen, strict=True) if not one.bad]
    bad = [ok for ok, one in zip(accepted, unseen, strict=True) if one.bad]
    assert sum(good) >= 0.95 * len(good)
    assert sum(bad) <= 0.05 * len(bad)


def observed(count: int, change: Callable[[int], dict[str, object]]) -> list[Observed]:
    return [
        Observed(Invocation(f"{n:032x}", f"{n:016x}", "genai", **change(n)))  # type: ignore[arg-type]
        for n in range(count)
    ]


def groups_of(count: int, change: Callable[[int], dict[str, object]]) -> list[Group]:
    return grouped(observed(count, change)).groups


def test_runs_without_a_scenario_id_are_grouped_by_input_and_tools() -> None:
    inputs = ("Where is my order A-{}?", "Refund the order of {} euros please!")
    tools = ("track", "refund")
    groups = groups_of(
        24,
        lambda n: {
            "user_input": inputs[n % 2].format(n),
            "tool_calls": (ToolCall(tools[n % 2], {}),),
        },
    )
    assert [(one.scenario_id, len(one.turns[0])) for one in groups] == [
        ("refund-the-order-euros-please", 12),
        ("where-order", 12),
    ]
    note = "the traffic has no scenario id: set this one, or scenario.match_user_input"
    assert [one.notes for one in groups] == [[note], [note]]


@pytest.mark.parametrize(
    "inputs",
    [
        ("我的订单什么时候到", "请取消酒店预订", "我的订单什么时候能到", "请帮我取消酒店预订"),
        (
            "注文はいつ届きますか",
            "予約を取り消したい",
            "注文はいつごろ届きますか",
            "予約を取り消してください",
        ),
    ],
)
def test_inputs_in_scripts_without_blanks_are_grouped(inputs: tuple[str, ...]) -> None:
    groups = groups_of(
        24, lambda n: {"user_input": inputs[n % 4], "tool_calls": (ToolCall("find", {}),)}
    )
    assert [len(one.turns[0]) for one in groups] == [12, 12]


def test_turns_of_conversations_are_learned_apart() -> None:
    [group] = groups_of(
        24,
        lambda n: {
            "scenario_id": "s",
            "conversation_id": f"c{n // 2}",
            "start_ns": n,
            "tool_calls": (ToolCall(("ask", "book")[n % 2], {}),),
        },
    )
    proposal = propose(group)
    assert proposal is not None
    first, second = proposal.reference.turns
    assert [call.name for call in first.tool_calls or ()] == ["ask"]
    assert [call.name for call in second.tool_calls or ()] == ["book"]
    assert proposal.accepted == 12


@pytest.mark.parametrize("failed", [0, 1, 2])
@pytest.mark.parametrize("conversations", [0, 5, 15])
def test_a_conversation_with_a_failed_turn_is_no_example_of_the_other_turns(
    failed: int, conversations: int
) -> None:
    tools = ("find", "check", "pay")
    found = grouped(
        Observed(
            Invocation(
                f"{number:031x}{turn}",
                "0" * 16,
                "genai",
                scenario_id="s",
                conversation_id=f"c{number}",
                start_ns=turn,
                tool_calls=(ToolCall(tool, {}),),
            ),
            failed=number < conversations and turn == failed,
        )
        for number in range(25)
        for turn, tool in enumerate(tools)
    )
    [group] = found.groups
    assert [{step.tool for run in runs for step in run.calls} for runs in group.turns] == [
        {tool} for tool in tools
    ]
    assert {len(runs) for runs in group.turns} == {25 - conversations}
    assert found.left_out == {
        reason: count
        for reason, count in (
            ("failed", conversations),
            ("in conversations with such a turn", 2 * conversations),
        )
        if count
    }


def test_runs_that_are_no_examples_are_counted() -> None:
    one = Invocation("1" * 32, "1" * 16, "genai", scenario_id="s")
    failed = Invocation("2" * 32, "2" * 16, "genai", scenario_id="s", error=True)
    lost = Invocation(
        "3" * 32, "3" * 16, "genai", scenario_id="s", flags=frozenset({"lost_tool_calls"})
    )
    found = grouped(
        [
            Observed(one),
            Observed(one, failed=True),
            Observed(failed),
            Observed(lost),
            Observed(one, matched=True),
            Observed(replaced(one, [ToolCall("a", {})] * 101, None)),
        ]
    )
    assert dict(found.left_out) == {
        "failed": 2,
        "with incomplete telemetry": 1,
        "with a reference": 1,
        "with more than 100 calls": 1,
    }
    assert len(found.groups[0].turns[0]) == 1


def test_equal_answers_are_expected_as_they_are_but_their_numbers_are_no_phrases() -> None:
    proposal = proposed(of(["a"] * 20, "Order 2026 was sent."))
    turn = proposal.reference.turns[0]
    assert turn.response == "Order 2026 was sent."
    assert turn.response_contains == ("was sent", "Order")
    assert proposal.reference.criteria == {
        "tool_trajectory_avg_score": 1.0,
        "failure": 0,
        "response_contains": 1.0,
        "response_match_score": 1.0,
    }


def test_the_same_input_with_other_tools_is_another_group() -> None:
    groups = groups_of(
        24, lambda n: {"user_input": "Help me.", "tool_calls": (ToolCall(f"t{n % 2}", {}),)}
    )
    assert [(one.scenario_id, len(one.turns[0])) for one in groups] == [
        ("help", 12),
        ("help-2", 12),
    ]
