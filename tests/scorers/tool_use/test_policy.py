"""Policies: rules about the order and the number of tool calls."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import TypeAdapter, ValidationError

from pathgauge.scorers.authoring.builders import invocation, tool_call, tool_calls
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.policy import ToolPolicy
from pathgauge.scorers.tool_use.temporal_rules import Rule
from pathgauge.scorers.types import Score, ToolCall

ADAPTER: TypeAdapter[Any] = TypeAdapter(ToolPolicy)


def policy(*rules: dict[str, Any], **options: Any) -> ToolPolicy:
    """A policy as it is written in a configuration."""
    scorer: ToolPolicy = ADAPTER.validate_python({"rules": list(rules), **options}, extra="forbid")
    return scorer


def value_or_reason(rule: dict[str, Any], *calls: ToolCall, **others: Any) -> float | str | None:
    score = policy(rule).score(invocation(*calls, **others), None)
    return score.reason or score.value


@pytest.mark.parametrize(
    ("rule", "kept", "broken"),
    [
        ({"never": "x"}, ["", "a", "xx"], ["x", "a x"]),
        ({"precedes": ["a", "b"]}, ["", "a", "a b", "a b b", "a b a b"], ["b", "b a", "c b a b"]),
        ({"precedes": ["a", "a"]}, ["", "a", "a a"], []),
        (
            {"responds": ["a", "b"]},
            ["", "b", "a b", "a a b", "a b c", "b a b"],
            ["a", "a b a", "b a"],
        ),
        (
            {"absent_between": ["a", "x", "b"]},
            ["", "x", "a x", "a b", "x a b x", "a b x b", "b x a", "a x a x"],
            ["a x b", "a a x b", "a b a x b", "a x x b", "a x a b"],
        ),
        ({"absent_between": ["a", "x", "a"]}, ["a a", "x a", "a x"], ["a x a", "a a x a"]),
        ({"absent_between": ["a", "a", "b"]}, ["a b", "a b a b"], ["a a b"]),
        ({"at_most": ["a", 2]}, ["", "a b a"], ["a a a", "a b a b a"]),
        ({"at_most": ["a", 0]}, ["b"], ["a"]),
    ],
)
def test_rules_about_names(rule: dict[str, Any], kept: list[str], broken: list[str]) -> None:
    values = {calls: value_or_reason(rule, *tool_calls(calls)) for calls in (*kept, *broken)}
    assert values == {calls: float(calls in kept) for calls in values}


PENDING, DONE, FAILED = {"status": "pending_confirmation"}, {"status": "done"}, {"error": "timeout"}
OUTCOMES: dict[str, Any] = {
    "p": PENDING,
    "d": DONE,
    "f": FAILED,
    "r": {"approved": False},
    "?": None,
}


def confirmed(written: str) -> list[ToolCall]:
    """Calls such as `T:d C:r`, of the tool and of what confirms it, and how they ended."""
    return [
        ToolCall("pay" if one[0] == "T" else "confirm_pay", {}, result=OUTCOMES[one[2]])
        for one in written.split()
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", 1.0),
        ("C:d", 1.0),
        ("C:d T:d", 1.0),
        ("T:p C:d T:d", 1.0),
        ("T:p", 1.0),
        ("T:r", 1.0),
        ("C:d T:f T:d", 1.0),
        ("C:d T:d C:d T:d", 1.0),
        ("T:d", 0.0),
        ("T:f", 0.0),
        ("T:d C:d", 0.0),
        ("C:d T:d T:d", 0.0),
        ("C:r T:d", 0.0),
        ("C:f T:d", 0.0),
        ("C:d C:r T:d", 1.0),
        ("T:?", "results_not_recorded"),
        ("C:? T:d", "results_not_recorded"),
        ("C:d T:?", 1.0),
        ("C:d T:? T:d", "results_not_recorded"),
        ("T:? T:d", 0.0),
    ],
)
def test_each_call_has_a_confirmation_of_its_own(written: str, expected: float | str) -> None:
    assert value_or_reason({"requires_confirmation": "pay"}, *confirmed(written)) == expected


def test_the_confirming_tool_can_be_chosen() -> None:
    rule = {"requires_confirmation": "pay", "confirmed_by": "approve_{tool}"}
    approve, pay = ToolCall("approve_pay", {}, result=DONE), ToolCall("pay", {}, result=DONE)
    assert [value_or_reason(rule, approve, pay), value_or_reason(rule, *confirmed("C:d T:d"))] == [
        1.0,
        0.0,
    ]


BIG = {"amount": {"$one_of": [500, 900]}, "note": {"$ignore": True}}


@pytest.mark.parametrize(
    ("rule", "calls", "expected"),
    [
        ({"never": "pay", "when": {"to": "x"}}, [tool_call("pay", to="x", amount=1)], 0.0),
        ({"never": "pay", "when": {"to": "x"}}, [tool_call("pay", to="y")], 1.0),
        ({"never": "pay", "when": {"to": "x"}}, [tool_call("pay")], 1.0),
        ({"never": "pay", "when": {"to": "x"}}, [tool_call("send", to="x")], 1.0),
        ({"never": "pay", "when": {"to": "x"}}, [ToolCall("pay", '"{\\"to\\": \\"x\\"}"')], 0.0),
        ({"never": "pay", "when": {"to": "x"}}, [ToolCall("pay", "to x")], 1.0),
        ({"never": "pay", "when": {"to": "x"}}, [ToolCall("pay")], "args_not_recorded"),
        ({"never": "pay", "when": {"to": "x"}}, [ToolCall("pay"), tool_call("pay", to="x")], 0.0),
        ({"never": "pay", "when": {}}, [ToolCall("pay")], "args_not_recorded"),
        ({"never": "pay", "when": {}}, [tool_call("pay")], 0.0),
        (
            {"never": "pay", "when": {"to": {"$regex": "a*"}}},
            [tool_call("pay", to="a" * 20_000)],
            "too_long",
        ),
        ({"never": "pay", "when": BIG}, [tool_call("pay", amount=900.0)], 0.0),
        ({"never": "pay", "when": BIG}, [tool_call("pay", amount=90, note="x")], 1.0),
        (
            {"precedes": ["check", "pay"], "when": BIG},
            [tool_call("pay", amount=1), tool_call("check"), tool_call("pay", amount=500)],
            1.0,
        ),
        (
            {"precedes": ["check", "pay"], "when": BIG},
            [tool_call("pay", amount=500), tool_call("check")],
            0.0,
        ),
        ({"precedes": ["check", "pay"], "when": BIG}, [ToolCall("check"), ToolCall("pay")], 1.0),
        (
            {"precedes": ["check", "pay"], "when": BIG},
            [ToolCall("pay"), ToolCall("check")],
            "args_not_recorded",
        ),
        ({"responds": ["pay", "mail"], "when": BIG}, [tool_call("pay", amount=1)], 1.0),
        ({"responds": ["pay", "mail"], "when": BIG}, [tool_call("pay", amount=500)], 0.0),
        ({"responds": ["pay", "mail"], "when": BIG}, [ToolCall("pay"), ToolCall("mail")], 1.0),
        (
            {"absent_between": ["a", "pay", "b"], "when": BIG},
            [tool_call("a"), tool_call("pay", amount=1), tool_call("b")],
            1.0,
        ),
        (
            {"absent_between": ["a", "pay", "b"], "when": BIG},
            [tool_call("a"), tool_call("pay", amount=500), tool_call("b")],
            0.0,
        ),
        (
            {"at_most": ["pay", 1], "when": BIG},
            [tool_call("pay", amount=1), tool_call("pay", amount=500), tool_call("pay", amount=1)],
            1.0,
        ),
        (
            {"at_most": ["pay", 1], "when": BIG},
            [ToolCall("pay"), tool_call("pay", amount=500)],
            "args_not_recorded",
        ),
        (
            {"at_most": ["pay", 2], "when": BIG},
            [ToolCall("pay"), tool_call("pay", amount=500)],
            1.0,
        ),
        (
            {"requires_confirmation": "pay", "when": BIG},
            [ToolCall("pay", {"amount": 1}, result=DONE)],
            1.0,
        ),
        (
            {"requires_confirmation": "pay", "when": BIG},
            [ToolCall("pay", {"amount": 500}, result=DONE)],
            0.0,
        ),
        (
            {"requires_confirmation": "pay", "when": BIG},
            [
                *confirmed("C:d"),
                ToolCall("pay", {"amount": 1}, result=DONE),
                ToolCall("pay", {"amount": 500}, result=DONE),
            ],
            1.0,
        ),
        (
            {"requires_confirmation": "pay", "when": BIG},
            [ToolCall("pay", result=DONE)],
            "args_not_recorded",
        ),
    ],
)
def test_a_condition_chooses_the_calls_that_are_judged(
    rule: dict[str, Any], calls: list[ToolCall], expected: float | str
) -> None:
    assert value_or_reason(rule, *calls) == expected


@pytest.mark.parametrize(
    ("rule", "calls", "expected"),
    [
        ({"never": "a"}, "a", 0.0),
        ({"at_most": ["a", 1]}, "a a", 0.0),
        ({"never": "a"}, "b", "tools_not_recorded"),
        ({"precedes": ["a", "b"]}, "b", "tools_not_recorded"),
        ({"responds": ["a", "b"]}, "a", "tools_not_recorded"),
        ({"absent_between": ["a", "x", "b"]}, "a x b", "tools_not_recorded"),
        ({"requires_confirmation": "a"}, "a", "tools_not_recorded"),
    ],
)
def test_only_calls_that_may_never_be_made_are_certain_when_others_may_be_missing(
    rule: dict[str, Any], calls: str, expected: float | str
) -> None:
    assert value_or_reason(rule, *tool_calls(calls), flags=frozenset({"dropped_spans"})) == expected


def test_a_certain_breach_counts_beside_rules_that_are_not_known() -> None:
    rules: list[dict[str, Any]] = [{"precedes": ["a", "b"]}, {"never": "b"}]
    lossy = invocation(*tool_calls("b"), flags=frozenset({"dropped_spans"}))
    score = policy(*rules).score(lossy, None)
    assert score == Score(
        0.0,
        None,
        "1 of 2 rules kept; broken: never b (call 0 of b)",
        {"violations": [{"rule": "never b", "calls": [[0, "b"]]}]},
    )
    assert policy(*rules, partial=True).score(lossy, None).reason == "tools_not_recorded"


def test_violations_are_reported_with_their_positions() -> None:
    rules: list[dict[str, Any]] = [
        {"never": "drop", "name": "no\ndrops"},
        {"precedes": ["check", "refund"]},
        {"at_most": ["search", 1]},
        {"responds": ["open", "close"]},
        {"never": "other"},
    ]
    actual = invocation(*tool_calls("drop search refund search drop open"))
    violations = [
        {"rule": "no\ndrops", "calls": [[0, "drop"], [4, "drop"]]},
        {"rule": "precedes check, refund", "calls": [[2, "refund"]]},
        {"rule": "at_most search, 1", "calls": [[3, "search"]]},
        {"rule": "responds open, close", "calls": [[5, "open"]]},
    ]
    line = (
        "1 of 5 rules kept; broken: no drops (call 0 of drop); precedes check, refund (call 2 of"
        " refund); at_most search, 1 (call 3 of search); 1 more"
    )
    assert policy(*rules).score(actual, None) == Score(0.0, None, line, {"violations": violations})
    assert policy(*rules, partial=True).score(actual, None) == Score(
        0.2, None, line, {"violations": violations}
    )
    assert (
        policy(*rules[:3]).score(actual, None).explanation
        == "0" + line.removesuffix("; 1 more").replace("of 5", "of 3")[1:]
    )
    assert policy(*rules).score(invocation(), None) == Score(
        1.0, None, "5 of 5 rules kept", {"violations": []}
    )


def test_an_unknown_value_names_the_possible_violations() -> None:
    rules: list[dict[str, Any]] = [{"never": "a"}, {"never": "pay", "when": {"to": "x"}}]
    score = policy(*rules).score(invocation(ToolCall("pay")), None)
    line = "args not recorded; it may be that 1 of 2 rules kept; broken: never pay (call 0 of pay)"
    assert score == Score(
        None,
        "args_not_recorded",
        line,
        {"violations": [{"rule": "never pay", "calls": [[0, "pay"]]}]},
    )
    assert policy(*rules).score(invocation(ToolCall("pay"), ToolCall("a")), None).value == 0.0
    assert (
        policy(*rules, partial=True).score(invocation(ToolCall("pay"), ToolCall("a")), None).reason
        == "args_not_recorded"
    )


def test_the_reason_is_what_would_have_decided() -> None:
    known_order = {"precedes": ["check", "pay"], "when": {"to": "x"}}
    calls = ToolCall("check"), ToolCall("pay"), ToolCall("book")
    assert (
        policy(known_order, {"requires_confirmation": "book"})
        .score(invocation(*calls), None)
        .reason
        == "results_not_recorded"
    )


def test_a_policy_without_rules_has_no_value() -> None:
    assert ToolPolicy().score(invocation(), None) == Score.not_evaluated(
        "not_applicable", "the policy has no rules"
    )


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            {},
            (
                "found no rule, expected one of never, precedes, responds, absent_between, at_most,"
                " requires_confirmation"
            ),
        ),
        ({"never": "a", "at_most": ["a", 1]}, "found never and at_most, expected one of never"),
        ({"nevr": "a"}, "nevr"),
        ({"never": " "}, "never: found '', expected the name of a tool"),
        ({"never": "a", "confirmed_by": ""}, "never: found '', expected the name of a tool"),
        (
            {"never": "a", "confirmed_by": "b"},
            "confirmed_by: found beside never, expected beside requires_confirmation",
        ),
        ({"precedes": ["a", ""]}, "precedes: found '', expected the name of a tool"),
        ({"precedes": ["a"]}, "precedes"),
        ({"precedes": ["a", "b", "c"]}, "precedes"),
        ({"absent_between": ["a", "b"]}, "absent_between"),
        ({"at_most": ["a", -1]}, "at_most: found -1, expected a number that is not negative"),
        ({"at_most": ["a", "many"]}, "at_most"),
        (
            {"never": "a", "when": {"to": {"$regexp": "x"}}},
            "when: to.\\$regexp: found an unknown key",
        ),
        ({"never": "a", "when": {"$any": True}}, "when: found Anything\\(\\), expected an object"),
        ({"never": "a", "when": ["to"]}, "when"),
    ],
)
def test_a_rule_that_makes_no_sense_is_rejected(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        policy(rule)


RULES = (
    Rule(never="delete", when={"path": {"$regex": "/etc/.*"}}, name="leave the system alone"),
    Rule(precedes=("search", "book")),
    Rule(responds=("search", "book")),
    Rule(absent_between=("search", "pay", "book")),
    Rule(at_most=("search", 3)),
    Rule(
        requires_confirmation="book",
        confirmed_by="ask_human",
        when={"room": {"$at_least": {"beds": 2}}},
    ),
)


def test_rules_survive_the_way_through_a_configuration_file() -> None:
    scorer = ToolPolicy(RULES, partial=True)
    read = ADAPTER.validate_python(json.loads(ADAPTER.dump_json(scorer)), extra="forbid")
    assert (read, hash(read)) == (scorer, hash(scorer))
    assert read != ToolPolicy(
        (
            *RULES[:-1],
            Rule(requires_confirmation="book", confirmed_by="ask_human", when={"room": {}}),
        ),
        partial=True,
    )


def test_it_keeps_the_contract() -> None:
    more: Any = [
        (invocation(tool_call("delete", path="/etc/x"), ToolCall("book", result="x")), None)
    ]
    for scorer in (ToolPolicy(), ToolPolicy(RULES), ToolPolicy(RULES, partial=True)):
        check_scorer(scorer, more)


CALLS = st.lists(st.sampled_from("abx"), max_size=7)


@given(CALLS)
def test_rules_say_what_their_definitions_say(calls: list[str]) -> None:
    made = tool_calls(" ".join(calls))
    places = {name: [index for index, call in enumerate(calls) if call == name] for name in "abx"}
    between = any(
        a < x < b
        for a in places["a"]
        for x in places["x"]
        for b in places["b"]
        if "b" not in calls[a:x]
    )
    assert value_or_reason({"never": "a"}, *made) == float(not places["a"])
    assert value_or_reason({"precedes": ["a", "b"]}, *made) == float(
        all(any(a < b for a in places["a"]) for b in places["b"])
    )
    assert value_or_reason({"responds": ["a", "b"]}, *made) == float(
        all(any(a < b for b in places["b"]) for a in places["a"])
    )
    assert value_or_reason({"absent_between": ["a", "x", "b"]}, *made) == float(not between)
    assert value_or_reason({"at_most": ["a", 2]}, *made) == float(len(places["a"]) <= 2)


@given(
    st.lists(st.builds("{}:{}".format, st.sampled_from("TC"), st.sampled_from("pdfr")), max_size=7),
    st.data(),
)
def test_what_is_not_recorded_never_turns_one_value_into_the_other(
    steps: list[str], data: st.DataObject
) -> None:
    rule = {"requires_confirmation": "pay"}
    hidden = [step if data.draw(st.booleans()) else f"{step[0]}:?" for step in steps]
    known, guessed = (value_or_reason(rule, *confirmed(" ".join(some))) for some in (steps, hidden))
    assert guessed in ("results_not_recorded", known)
