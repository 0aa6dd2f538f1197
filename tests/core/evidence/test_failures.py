"""The category and the signature of failures, for invocations scored by real scorers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import ClassVar

import pytest
from hypothesis import example, given, strategies as st

from pathgauge import (
    AgentRun,
    ArgumentAccuracy,
    ErrorRecovery,
    ExpectedCall,
    Failure as EndedWithError,
    FailureCategory,
    ForbiddenTools,
    GroundedValues,
    Invocation,
    Json,
    Latency,
    ModelCall,
    RedundantCalls,
    Reference,
    ReferenceTurn,
    RequiredTools,
    ResponseContains,
    ResponseMatchScore,
    Score,
    Scorer,
    StepEfficiency,
    ToolCall,
    ToolErrorRate,
    ToolLoops,
    ToolRecall,
    ToolTrajectoryAvgScore,
    ToolTrajectoryF1,
    TotalTokens,
    TrajectoryMatch,
    from_function,
)
from pathgauge.collector.config.plugins.scorers import SCORERS
from pathgauge.collector.core.evaluations.aggregation import Aggregation
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    Evaluator,
    Result,
)
from pathgauge.collector.core.evidence.categories import CATEGORIES, PRECEDENCE, category_of
from pathgauge.collector.core.evidence.failures import Category, Failure, failure_of
from pathgauge.collector.core.evidence.possible_categories import possible_categories
from pathgauge.collector.core.references import Match
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation as run,
    reference_turn,
    tool_call,
    tool_calls,
)
from pathgauge.scorers.authoring.ranges import Amount, Share
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.composite import Composite, Member
from pathgauge.scorers.session_protocol import scores_sessions
from support.repository import DOCS

PAGE = (DOCS / "failures.md").read_text()
EXACT = ToolTrajectoryAvgScore()
NAMES = ToolTrajectoryF1()
ARGUMENTS = ToolTrajectoryF1(match_mode="name_and_args")
ANY_ORDER = TrajectoryMatch("unordered_exact")
FIND = expected_call("find_user", email="a@b.c")
RESET = expected_call("reset_password", user_id=7)
EXPECTED = reference_turn(FIND, RESET, expected_call("send_email"))
FOUND = tool_call("find_user", email="a@b.c")
SENT = tool_call("send_email")


def evaluated(actual: Invocation, expected: ReferenceTurn | None, *scorers: Scorer) -> Evaluation:
    """Judged by criteria that only a perfect score passes."""
    match = Match(unmatched="no_scenario_id")
    if expected is not None:
        match = Match(Reference("scenario", (expected,)), expected, 0)
    criteria = [
        Criterion(f"criterion {at}", scorer, 1.0 if scorer.higher_is_better else 0.0)
        for at, scorer in enumerate(scorers)
    ]
    return Evaluator(tuple(criteria)).evaluate(actual, match)


def failure(
    actual: Invocation, expected: ReferenceTurn | None, *scorers: Scorer
) -> tuple[Category, str] | None:
    found = failure_of(evaluated(actual, expected, *scorers))
    if found is None:
        return None
    possible = frozenset().union(*map(possible_categories, scorers))
    assert found.category in possible  # so its count has started at 0
    return found.category, found.signature


def reset(user_id: Json = 7) -> ToolCall:
    return tool_call("reset_password", user_id=user_id)


BROKEN = replace(FOUND, error="no connection to 10.1.2.3")


@pytest.mark.parametrize(
    ("actual", "failed"),
    [
        (run(FOUND, reset(), SENT), None),
        (run(reset(), SENT), ("missing_call", "find_user missing")),
        (run(FOUND, reset()), ("missing_call", "send_email missing")),
        (run(), ("missing_call", "find_user missing; reset_password missing; send_email missing")),
        (
            run(reset(8), SENT),
            ("missing_call", "find_user missing; reset_password.user_id differs"),
        ),
        (
            run(tool_call("search"), reset(), SENT),
            ("wrong_tool", "find_user missing; search unexpected"),
        ),
        (run(FOUND, reset(8), SENT), ("wrong_argument", "reset_password.user_id differs")),
        (
            run(FOUND, tool_call("reset_password", uid=7), SENT),
            ("wrong_argument", "reset_password.uid differs; reset_password.user_id differs"),
        ),
        (
            run(FOUND, ToolCall("reset_password", "7"), SENT),
            ("wrong_argument", "reset_password arguments differ"),
        ),
        (
            run(FOUND, ToolCall("reset_password")),
            ("missing_call", "send_email missing; reset_password arguments not recorded"),
        ),
        (
            run(FOUND, ToolCall("reset_password"), tool_call("search"), SENT),
            ("extra_call", "reset_password arguments not recorded; search unexpected"),
        ),
        (
            run(ToolCall("find_user"), reset(8), SENT),
            (
                "wrong_argument",
                "reset_password.user_id differs; find_user arguments not recorded",
            ),
        ),
        (
            run(FOUND, ToolCall("reset_password"), final_response=""),
            ("ended_early", "send_email missing; reset_password arguments not recorded"),
        ),
        (
            run(FOUND, ToolCall("send_email"), final_response=""),
            ("missing_call", "reset_password missing; send_email arguments not recorded"),
        ),
        (
            run(FOUND, reset(8), tool_call("search"), SENT),
            ("wrong_argument", "reset_password.user_id differs; search unexpected"),
        ),
        (run(FOUND, SENT, reset()), ("order", "send_email out of order")),
        (
            run(FOUND, SENT, tool_call("search"), reset()),
            ("order", "send_email out of order; search unexpected"),
        ),
        (
            run(FOUND, replace(SENT, error="no password"), reset()),
            ("order", "send_email out of order"),
        ),
        (run(FOUND, tool_call("search"), reset(), SENT), ("extra_call", "search unexpected")),
        (run(FOUND, FOUND, reset(), SENT), ("extra_call", "find_user unexpected")),
        (run(FOUND, FOUND, FOUND, reset(), SENT), ("loop", "find_user repeated")),
        (run(FOUND, FOUND, FOUND), ("loop", "find_user repeated")),
        (
            run(FOUND, reset(), SENT, tool_call("search"), tool_call("search")),
            ("extra_call", "search unexpected"),
        ),
        (
            run(FOUND, reset(), SENT, *[tool_call("search")] * 3),
            ("loop", "search repeated"),
        ),
        (
            run(FOUND, tool_call("find_user", email="b"), tool_call("find_user", email="c")),
            (
                "wrong_tool",
                "reset_password missing; send_email missing; find_user unexpected",
            ),
        ),
        (run(BROKEN), ("tool_error", "find_user failed")),
        (run(BROKEN, BROKEN, BROKEN), ("tool_error", "find_user failed")),
        (run(replace(FOUND, result={"error": "gone"}), SENT), ("tool_error", "find_user failed")),
        (run(BROKEN, FOUND), ("wrong_tool", "")),
        (
            run(FOUND, replace(reset(8), error="unknown user"), SENT),
            ("wrong_argument", "reset_password.user_id differs"),
        ),
        (run(FOUND, reset(), final_response=""), ("ended_early", "send_email missing")),
        (run(FOUND, reset(), final_response=" \n"), ("ended_early", "send_email missing")),
        (run(FOUND, reset(), final_response=None), ("missing_call", "send_email missing")),
        (
            run(FOUND, model_calls=(ModelCall("1"), ModelCall("2", error="429"))),
            ("ended_early", "reset_password missing; send_email missing"),
        ),
        (
            run(FOUND, model_calls=(ModelCall("1", error="429"), ModelCall("2"))),
            ("missing_call", "reset_password missing; send_email missing"),
        ),
        (
            run(FOUND, reset(), sub_agents=(AgentRun("1", "mailer", error="down"),)),
            ("ended_early", "send_email missing"),
        ),
        (
            run(FOUND, reset(), sub_agents=(AgentRun("1", "a", error="down"), AgentRun("2", "b"))),
            ("missing_call", "send_email missing"),
        ),
        (run(FOUND, SENT, final_response=""), ("missing_call", "reset_password missing")),
        (
            run(FOUND, reset(8), final_response=""),
            ("missing_call", "send_email missing; reset_password.user_id differs"),
        ),
        (
            run(FOUND, reset(), error=True, error_type="Timeout"),
            ("error", "ended with an error; send_email missing"),
        ),
        (run(BROKEN, error=True, final_response=""), ("error", "")),
    ],
)
def test_the_calls_of_a_run_tell_its_category(
    actual: Invocation, failed: tuple[Category, str] | None
) -> None:
    found = failure(actual, EXPECTED, EXACT)
    if failed is None or found is None:
        assert found == failed
    else:
        assert (found[0], failed[1] and found[1]) == failed


@pytest.mark.parametrize(
    ("scorer", "category"),
    [
        (NAMES, "order"),
        (ARGUMENTS, "order"),
        (EXACT, "order"),
        (ToolTrajectoryF1(match_mode="name_and_required_args"), "order"),
        (ANY_ORDER, None),
        (ToolRecall(), None),
    ],
)
def test_an_order_is_wrong_where_a_criterion_asks_for_it(
    scorer: Scorer, category: Category | None
) -> None:
    found = failure(run(reset(), FOUND, SENT), EXPECTED, scorer)
    assert (found and found[0]) == category


def test_swapped_arguments_of_calls_of_one_tool_are_a_wrong_order() -> None:
    look = [tool_call("look", at=at) for at in (1, 2)]
    expected = reference_turn(*(expected_call("look", at=at) for at in (1, 2)))
    assert failure(run(*reversed(look)), expected, EXACT) == ("order", "look out of order")


@pytest.mark.parametrize(("made", "moved"), [("b c a", "a"), ("c a b", "c")])
def test_the_call_that_left_its_place_is_out_of_order(made: str, moved: str) -> None:
    turn = reference_turn(*expected_calls("a b c"))
    assert failure(run(*tool_calls(made)), turn, EXACT) == ("order", f"{moved} out of order")


def test_expected_repetitions_are_no_loop() -> None:
    turn = reference_turn(*expected_calls("poll poll poll"))
    actual = run(*tool_calls("poll search poll note poll"))
    assert failure(actual, turn, EXACT) == ("extra_call", "note unexpected; search unexpected")


def test_the_most_detailed_of_several_failed_criteria_is_used() -> None:
    actual = run(reset(8), SENT)
    signature = "find_user missing; reset_password.user_id differs"
    orders: list[list[Scorer]] = [[NAMES, EXACT], [EXACT, NAMES], [ToolRecall(), ANY_ORDER, NAMES]]
    for scorers in orders:
        assert failure(actual, EXPECTED, *scorers) == ("missing_call", signature)


def test_a_criterion_that_passed_does_not_tell_the_category() -> None:
    actual = run(FOUND, SENT, reset(), tool_call("search"), final_response="no")
    contains = ResponseContains(("yes",))
    assert failure(actual, EXPECTED, ToolRecall(), contains) == (
        "wrong_answer",
        "response_contains failed",
    )


def test_the_alternative_that_agrees_best_is_compared() -> None:
    turn = replace(reference_turn(*expected_calls("a b c")), alternatives=(expected_calls("x y"),))
    actual = run(*tool_calls("x z"))
    assert failure(actual, turn, EXACT) == ("wrong_tool", "y missing; z unexpected")


def test_optional_calls_are_never_missing() -> None:
    turn = reference_turn(expected_call("a"), replace(expected_call("b"), optional=True))
    actual = run(final_response="")
    assert failure(actual, turn, NAMES) == ("ended_early", "a missing")


def test_an_accuracy_of_arguments_names_the_arguments() -> None:
    actual = run(FOUND, reset(8), SENT)
    assert failure(actual, EXPECTED, ArgumentAccuracy()) == (
        "wrong_argument",
        "reset_password.user_id differs",
    )


def test_needless_steps_are_extra_calls() -> None:
    actual = run(FOUND, reset(), SENT, tool_call("search"))
    assert failure(actual, EXPECTED, StepEfficiency()) == ("extra_call", "search unexpected")


ANSWERED = replace(EXPECTED, response="The password was reset.")


@pytest.mark.parametrize(
    ("actual", "scorers", "failed"),
    [
        (run(), [ResponseMatchScore()], ("wrong_answer", "response_match_score failed")),
        (
            run(),
            [ResponseMatchScore(), ResponseContains(("reset",))],
            ("wrong_answer", "response_contains failed; response_match_score failed"),
        ),
        (
            run(user_input="My number?", final_response="Your number is 4711."),
            [ResponseMatchScore(), GroundedValues()],
            ("ungrounded_value", "grounded_values failed"),
        ),
        (run(), [Latency()], ("slow", "latency failed")),
        (run(input_tokens=5, output_tokens=1), [TotalTokens()], ("slow", "total_tokens failed")),
        (run(), [Latency(), ResponseMatchScore()], ("wrong_answer", "response_match_score failed")),
        (run(error=True), [EndedWithError()], ("error", "ended with an error")),
        (run(BROKEN, FOUND), [ToolErrorRate()], ("tool_error", "find_user failed")),
        (run(BROKEN), [ErrorRecovery()], ("tool_error", "find_user failed")),
        (run(BROKEN), [ResponseMatchScore()], ("tool_error", "find_user failed")),
        (run(FOUND, FOUND, FOUND), [ToolLoops()], ("loop", "find_user repeated")),
        (run(FOUND, FOUND), [RedundantCalls()], ("loop", "find_user repeated")),
        (run(), [RequiredTools(("find_user",))], ("missing_call", "required_tools failed")),
        (run(FOUND), [ForbiddenTools(("find_user",))], ("extra_call", "forbidden_tools failed")),
        (
            run(FOUND),
            [Latency(), ForbiddenTools(("find_user",))],
            ("extra_call", "forbidden_tools failed"),
        ),
    ],
)
def test_a_criterion_without_expected_calls_tells_by_its_scorer(
    actual: Invocation, scorers: list[Scorer], failed: tuple[Category, str]
) -> None:
    assert failure(actual, ANSWERED, *scorers) == failed


@dataclass(frozen=True)
class Money(Amount):
    """A scorer of a plug-in, with an amount."""

    name: ClassVar[str] = "money"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(1.0)


@dataclass(frozen=True)
class OwnTrajectory(Share):
    """A scorer of a plug-in, with the details that a test gives."""

    name: ClassVar[str] = "own"
    needs_reference: ClassVar[bool] = True
    details: Mapping[str, Json] | None = None

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        return Score(0.0, None, "", self.details or {})


@pytest.mark.parametrize(
    ("scorer", "failed"),
    [
        (Money(), ("slow", "money failed")),
        (from_function(lambda invocation: 0.5), ("wrong_answer", "lambda failed")),
        (OwnTrajectory(), ("wrong_answer", "own failed")),
        (OwnTrajectory({"missing": ["a", "b"]}), ("wrong_answer", "own failed")),
        (
            OwnTrajectory({"matched": 1, "missing": 1, "unexpected": 1}),
            ("wrong_answer", "own failed"),
        ),
        (
            OwnTrajectory({"matched": [], "missing": [[0, "a"]], "unexpected": []}),
            ("missing_call", "a missing"),
        ),
    ],
)
def test_a_scorer_of_a_plug_in_tells_by_its_details_or_its_range(
    scorer: Scorer, failed: tuple[Category, str]
) -> None:
    assert failure(run(), ANSWERED, scorer) == failed


def test_the_judge_of_failures_tells_the_category_itself() -> None:
    judge = FailureCategory()
    assert [category_of(judge, verdict) for verdict in ("loop", "wrong_argument", "none")] == [
        "loop",
        "wrong_argument",
        "wrong_answer",
    ]
    assert category_of(Latency(), "loop") == "slow"


def test_every_scorer_has_a_category_on_purpose() -> None:
    by_default = {
        point.name
        for point in entry_points(group=SCORERS.group)
        if point.value.startswith("pathgauge.")
        and category_of(point.load()) in ("wrong_answer", "slow")
        and not scores_sessions(point.load())  # a session that failed has no category
    }
    assert by_default == {
        # answers
        "bleu",
        "composite",
        "failure_category",
        "final_response_match_v2",
        "intent_resolution",
        "llm_judge",
        "pairwise",
        "pointwise",
        "refusal",
        "response_contains",
        "response_evaluation_score",
        "response_exact_match",
        "response_excludes",
        "response_length",
        "response_match_score",
        "response_pattern",
        "response_schema",
        "rouge_1",
        "rouge_2",
        "rouge_l",
        "rouge_l_sum",
        "rubric_based_final_response_quality_v1",
        "safety_v1",
        "task_adherence",
        # amounts
        "context_overflow",
        "cost",
        "cost_of_passed",
        "framework_time",
        "input_tokens",
        "latency",
        "max_model_calls",
        "max_turns",
        "model_calls",
        "model_time",
        "output_tokens",
        "token_efficiency",
        "tool_time",
        "total_tokens",
    }


def test_the_precedence_orders_all_categories_and_is_documented() -> None:
    assert sorted(PRECEDENCE) == sorted(CATEGORIES)
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)[: len(PRECEDENCE)] == [*PRECEDENCE]


def test_the_page_lists_scorers_with_their_categories() -> None:
    listed = re.findall(r"^\| (.*`.*) \| `(\w+)` \|$", PAGE, re.MULTILINE)
    classes = {point.name: point.load() for point in entry_points(group=SCORERS.group)}
    found = {name: category for names, category in listed for name in re.findall(r"`(\w+)`", names)}
    assert len(found) > 20
    assert found == {name: category_of(classes[name]) for name in found}


def test_a_composite_criterion_fails_like_its_members() -> None:
    both = Composite((Member("criterion 0", EXACT, 1.0), Member("fast", Latency(), 0.0)))
    actual = run(FOUND, reset())
    assert failure(actual, EXPECTED, EXACT, both) == ("missing_call", "send_email missing")
    assert failure(actual, EXPECTED, both) == ("wrong_tool", "tool_trajectory_avg_score failed")
    alone = Composite((Member("exact", ToolRecall(), 0.5), Member("fast", Latency(), 0.0)))
    assert failure(actual, EXPECTED, alone) == ("slow", "latency failed")


@pytest.mark.parametrize(
    ("calls", "failed"),
    [
        (("pay",), ("missing_call", "mail missing")),
        (("pay", "mail"), None),
        ((), ("ended_early", "pay missing; mail missing")),
    ],
)
def test_a_criterion_about_a_sub_agent_tells_by_the_calls_of_that_agent(
    calls: tuple[str, ...], failed: tuple[Category, str] | None
) -> None:
    made = [replace(tool_call(name), run="7", agent="billing") for name in calls]
    answer = "paid" if calls else ""
    sub_agents = (AgentRun("7", "billing", final_response=answer),)
    turn = ReferenceTurn(agents={"billing": reference_turn(*expected_calls("pay mail"))})
    actual = run(*tool_calls("ask ask ask"), *made, sub_agents=sub_agents)
    assert failure(actual, turn, OfAgent(EXACT, "billing")) == failed
    if not calls:
        assert failure(run(), turn, OfAgent(EXACT, "billing")) == failed


def test_of_several_runs_of_an_agent_the_worst_tells() -> None:
    made = [replace(tool_call(name), run=span) for span, name in [("7", "pay"), ("8", "ask")]]
    sub_agents = (AgentRun("7", "billing"), AgentRun("8", "billing"))
    turn = ReferenceTurn(agents={"billing": reference_turn(*expected_calls("pay"))})
    actual = run(*made, sub_agents=sub_agents)
    assert failure(actual, turn, OfAgent(EXACT, "billing")) == (
        "wrong_tool",
        "pay missing; ask unexpected",
    )


def test_a_run_of_an_agent_that_is_as_expected_tells_nothing() -> None:
    made = [replace(tool_call(name), run=span) for span, name in [("7", "pay"), ("7", "mail")]]
    made.append(replace(tool_call("pay"), run="8"))
    sub_agents = (AgentRun("7", "billing"), AgentRun("8", "billing"))
    turn = ReferenceTurn(agents={"billing": reference_turn(*expected_calls("pay mail"))})
    actual = run(*made, sub_agents=sub_agents)
    assert failure(actual, turn, OfAgent(EXACT, "billing")) == ("missing_call", "mail missing")


def test_a_criterion_about_the_main_agent_ignores_the_calls_of_others() -> None:
    turn = reference_turn(*expected_calls("ask answer"))
    charged = ToolCall("charge", {}, error="declined", run="7")
    actual = run(*tool_calls("ask"), charged, sub_agents=(AgentRun("7", "billing"),))
    assert failure(actual, turn, OfAgent(EXACT, "agent")) == ("missing_call", "answer missing")
    assert failure(actual, turn, OfAgent(EXACT, "agent", "subtree")) == (
        "wrong_tool",
        "answer missing; charge unexpected",
    )


def test_a_wrong_answer_is_named_only_where_the_calls_are_right() -> None:
    judged = Result(Criterion("judge", ResponseMatchScore(), 1.0), Score(0.0), "failed")
    passed = evaluated(run(FOUND, reset(), SENT), EXPECTED, EXACT)
    failed = evaluated(run(FOUND, reset()), EXPECTED, EXACT)
    found = [failure_of(replace(one, results=(*one.results, judged))) for one in (passed, failed)]
    assert found == [
        Failure("wrong_answer", "response_match_score failed"),
        Failure("missing_call", "send_email missing"),
    ]


@pytest.mark.parametrize(
    "criterion",
    [
        Criterion("informational", EXACT),
        Criterion("aggregated", EXACT, 1.0, aggregation=Aggregation("agent")),
        Criterion("lenient", EXACT, 0.0),
        Criterion("broken", from_function(lambda invocation: 1 / 0), 1.0),
        Criterion("without value", ResponseMatchScore(), 1.0),
    ],
    ids=lambda criterion: criterion.name,
)
def test_nothing_failed_without_the_verdict_failed(criterion: Criterion) -> None:
    match = Match(Reference("scenario", (EXPECTED,)), EXPECTED, 0)
    actual = run(BROKEN, error=True, final_response="")
    assert failure_of(Evaluator((criterion,)).evaluate(actual, match)) is None


def test_a_loop_is_found_beside_a_call_that_is_expected_more_often() -> None:
    poll, search = tool_call("poll"), tool_call("search")
    expected = reference_turn(*[expected_call("poll")] * 4)
    actual = run(*[poll] * 4, *[search] * 3)
    assert failure(actual, expected, EXACT) == ("loop", "search repeated")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
TOOLS = st.sampled_from(["a", "b", "c"])
CALLS = st.lists(st.tuples(TOOLS, st.sampled_from(["x", "y"]), st.integers(0, 2)), max_size=7)


def actual_calls(calls: list[tuple[str, str, int]], values: list[Json]) -> tuple[ToolCall, ...]:
    return tuple(tool_call(tool, **{key: values[at]}) for tool, key, at in calls)


@given(st.permutations(range(6)), st.lists(st.tuples(TOOLS, st.integers(0, 2)), max_size=6))
def test_expected_calls_in_another_order_have_no_other_arguments(
    order: list[int], calls: list[tuple[str, int]]
) -> None:
    expected = reference_turn(*(expected_call(tool, x=value) for tool, value in calls))
    shuffled = [calls[at] for at in order if at < len(calls)]
    actual = run(*(tool_call(tool, x=value) for tool, value in shuffled))
    for scorer in (EXACT, ARGUMENTS, NAMES):
        found = failure(actual, expected, scorer)
        assert (found is None) == (scorer.score(actual, expected).value == 1)
        if found is not None:
            category, text = found
            assert category == "order"
            assert all(part.endswith(" out of order") for part in text.split("; "))


@given(
    st.lists(st.tuples(TOOLS, st.integers(0, 2)), max_size=30),
    st.lists(st.tuples(TOOLS, st.integers(0, 3)), max_size=30),
)
@example([("a", number) for number in range(30)], [*[("a", 99)] * 25, ("a", 0)])
def test_nothing_is_out_of_order_where_the_order_does_not_count(
    wanted: list[tuple[str, int]], made: list[tuple[str, int]]
) -> None:
    expected = reference_turn(*(expected_call(tool, x=value) for tool, value in wanted))
    actual = run(*(ToolCall(tool, {"x": at} if at < 3 else "{'x': ...") for tool, at in made))
    found = failure(actual, expected, ANY_ORDER)
    assert found is None or "out of order" not in found[1]


@given(CALLS, CALLS)
def test_a_loop_has_two_unexpected_repetitions_of_a_call(
    wanted: list[tuple[str, str, int]], added: list[tuple[str, str, int]]
) -> None:
    made = wanted + added
    expected = reference_turn(*(expected_call(tool, **{key: at}) for tool, key, at in wanted))
    found = failure(run(*(tool_call(tool, **{key: at}) for tool, key, at in made)), expected, EXACT)
    repeated = [made.count(call) - max(1, wanted.count(call)) for call in added]
    if found is None:
        assert not added
    else:
        assert found[0] == ("loop" if max(repeated) >= 2 else "extra_call")


@given(CALLS, CALLS, st.lists(VALUES, min_size=3, max_size=3, unique_by=repr))
def test_a_failure_does_not_depend_on_values(
    made: list[tuple[str, str, int]], wanted: list[tuple[str, str, int]], values: list[Json]
) -> None:
    plain: list[Json] = ["secret one", "secret two", "secret three"]
    expected = [
        reference_turn(*(expected_call(tool, **{key: of[at]}) for tool, key, at in wanted))
        for of in (plain, values)
    ]
    one, again, other = (
        evaluated(run(*actual_calls(made, of)), turn, EXACT, ANY_ORDER, ArgumentAccuracy())
        for of, turn in ((plain, expected[0]), (plain, expected[0]), (values, expected[1]))
    )
    found = failure_of(one)
    assert found == failure_of(again) == failure_of(other)
    assert (found is None) == all(result.verdict != "failed" for result in one.results)
    assert found is None or ("secret" not in found.signature and found.signature)


@given(st.lists(st.text(max_size=300), max_size=60), st.lists(st.text(max_size=300), max_size=9))
def test_a_signature_is_one_short_line(tools: list[str], arguments: list[str]) -> None:
    calls = [ToolCall(name, dict.fromkeys(arguments, 1)) for name in tools]
    expected = reference_turn(*(ExpectedCall(name, {}) for name in reversed(tools)))
    found = failure_of(evaluated(run(*calls), expected, EXACT))
    if found is not None:
        assert len(found.signature) <= 200
        assert found.signature.isprintable()


def test_a_long_signature_counts_what_it_leaves_out() -> None:
    expected = reference_turn(*(expected_call(f"tool_{at:04}") for at in range(1000)))
    found = failure(run(), expected, EXACT)
    assert found is not None
    assert found[1].startswith("tool_0000 missing; tool_0001 missing; ")
    assert found[1].endswith(" missing; 990 more")


def test_names_of_any_size_and_content_are_shown_in_short() -> None:
    expected = reference_turn(expected_call("<b>\x1b[31m\u202e\n\nx"), expected_call("y" * 10**6))
    assert failure(run(), expected, EXACT) == (
        "missing_call",
        f"<b>?[31m? x missing; {'y' * 59}… missing",
    )
