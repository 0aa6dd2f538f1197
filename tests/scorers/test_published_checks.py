"""Check functions that documents publish become scorers as they stand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pathgauge import ReferenceTurn, ToolCall
from pathgauge.scorers.adapters.functions import from_function
from pathgauge.scorers.authoring.builders import expected_calls, invocation, tool_call, tool_calls
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.types import Invocation

CHECKS: dict[str, Any] = {}
exec(Path(__file__).with_name("published_checks.txt").read_text(), CHECKS)


def check_trajectory(expected: list[str], actual: list[str], mode: str) -> SimpleNamespace:
    """The library function that one of the checks calls, as its document describes it."""
    remaining = iter(actual)
    return SimpleNamespace(
        passed=mode == "subsequence" and all(name in remaining for name in expected)
    )


CHECKS["check_trajectory"] = check_trajectory
CHECKS["eval_routing"] = lambda result, scenario: (
    scenario["expected_subagent"] in str(result["tool_calls"])
)

PENDING = ToolCall("refund", {}, result='{"status": "pending_confirmation"}')
DONE = ToolCall("refund", {}, result={"status": "done"})
SUGGESTING = ToolCall("pay", {}, result={"error": "declined", "suggestions": ["another card"]})
LISTING = ToolCall("search", {}, result={"available_actions": [{"tool": "book"}, {"tool": "hold"}]})
SENSITIVE = {"scenario": {"sensitive_tool": "refund"}}

TURN = ReferenceTurn(
    tool_calls=expected_calls("search book"),
    response_contains=("Booked",),
    expected_agent="billing",
    escalate=True,
)


@pytest.mark.parametrize(
    ("name", "options", "actual", "expected", "value"),
    [
        ("essential_tools_present", {}, invocation(*tool_calls("tool1")), None, 0.5),
        (
            "essential_tools_present",
            {"required_tools": ["a", "b"]},
            invocation(*tool_calls("b x a a")),
            None,
            1.0,
        ),
        ("essential_tools_present", {"required_tools": []}, invocation(), None, 1.0),
        (
            "essential_tools_present",
            {},
            invocation(flags=frozenset({"no_tool_spans"})),
            None,
            "tools_not_recorded",
        ),
        (
            "eval_max_turns",
            {"scenario": {"success_criteria": {"max_turns": 2}}},
            invocation(*tool_calls("a")),
            None,
            1.0,
        ),
        (
            "eval_max_turns",
            {"scenario": {"success_criteria": {"max_turns": 2}}},
            invocation(*tool_calls("a b")),
            None,
            0.0,
        ),
        ("eval_max_turns", {}, invocation(), ReferenceTurn(), "no_reference"),
        (
            "eval_token_efficiency",
            {},
            invocation(input_tokens=4_000, output_tokens=1_000),
            None,
            1.0,
        ),
        (
            "eval_token_efficiency",
            {"max_tokens": 4_999},
            invocation(input_tokens=4_000, output_tokens=1_000),
            None,
            0.0,
        ),
        ("eval_token_efficiency", {}, invocation(input_tokens=4_000), None, "tokens_not_recorded"),
        ("eval_response_contains", {}, invocation(final_response="BOOKED!"), TURN, 1.0),
        ("eval_response_contains", {}, invocation(final_response="Sorry."), TURN, 0.0),
        (
            "eval_response_contains",
            {},
            invocation(final_response=None),
            TURN,
            "response_not_recorded",
        ),
        ("eval_response_contains", {}, invocation(), ReferenceTurn(), "no_reference"),
        ("eval_response_contains", {}, invocation(), None, "no_reference"),
        ("eval_escalation", {}, invocation(*tool_calls("escalate_to_human")), TURN, 1.0),
        ("eval_escalation", {}, invocation(), TURN, 0.0),
        ("eval_escalation", {}, invocation(), ReferenceTurn(escalate=False), 1.0),
        ("eval_escalation", {}, invocation(), ReferenceTurn(), "no_reference"),
        (
            "eval_signal_task_complete",
            {},
            invocation(*tool_calls("signal_task_complete")),
            None,
            1.0,
        ),
        ("eval_signal_task_complete", {}, invocation(), None, 0.0),
        ("eval_level_1_2", {}, invocation(*tool_calls("book search")), TURN, 1.0),
        ("eval_level_1_2", {}, invocation(*tool_calls("book")), TURN, 0.0),
        ("eval_level_1_2", {}, invocation(), ReferenceTurn(), "no_reference"),
        (
            "eval_pending_confirmation_flow",
            SENSITIVE,
            invocation(PENDING, tool_call("confirm_refund")),
            None,
            1.0,
        ),
        ("eval_pending_confirmation_flow", SENSITIVE, invocation(DONE), None, 0.0),
        (
            "eval_pending_confirmation_flow",
            SENSITIVE,
            invocation(ToolCall("refund", {})),
            None,
            "results_not_recorded",
        ),
        ("eval_interrupt_rejection", {}, invocation(), ReferenceTurn(), 1.0),
        (
            "eval_interrupt_rejection",
            {"scenario": {"approval": "reject"}},
            invocation(),
            None,
            "not_applicable",
        ),
        (
            "eval_error_suggestions",
            {},
            invocation(SUGGESTING, final_response="Try another card."),
            TURN,
            1.0,
        ),
        (
            "eval_error_suggestions",
            {},
            invocation(SUGGESTING, final_response="It failed."),
            TURN,
            0.0,
        ),
        (
            "eval_error_suggestions",
            {},
            invocation(ToolCall("pay", {}, error="declined")),
            TURN,
            0.0,
        ),
        (
            "eval_tool_graph",
            {"scenario": {"expected_tool_graph": {"search": ["book"]}}},
            invocation(LISTING),
            None,
            1.0,
        ),
        (
            "eval_tool_graph",
            {"scenario": {"expected_tool_graph": {"search": ["pay"]}}},
            invocation(LISTING),
            None,
            0.0,
        ),
        ("eval_routing_accuracy", {}, invocation(*tool_calls("delegate_to_billing")), TURN, 1.0),
        ("eval_routing_accuracy", {}, invocation(*tool_calls("delegate_to_sales")), TURN, 0.0),
        (
            "run_all_evaluators",
            {},
            invocation(*tool_calls("search book"), final_response="Booked."),
            TURN,
            AttributeError,
        ),
        (
            "run_all_evaluators",
            {"scenario": {"success_criteria": {}}},
            invocation(*tool_calls("search delegate_to_billing book")),
            TURN,
            1.0,
        ),
        (
            "run_all_evaluators",
            {"scenario": {"success_criteria": {}}},
            invocation(*tool_calls("book delegate_to_billing")),
            TURN,
            0.0,
        ),
    ],
)
def test_a_published_check_judges_an_invocation(
    name: str,
    options: dict[str, Any],
    actual: Invocation,
    expected: ReferenceTurn | None,
    value: Any,
) -> None:
    scorer = from_function(CHECKS[name], **options)
    if isinstance(value, type):
        with pytest.raises(value):  # the check reads criteria in a list as if they were a mapping
            scorer.score(actual, expected)
    else:
        score = scorer.score(actual, expected)
        assert (score.reason if score.value is None else score.value) == value


def test_a_check_that_runs_the_agent_itself_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"^found the parameter 'agent' without a default, expected another name",
    ):
        from_function(CHECKS["eval_idempotency"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("essential_tools_present", {}),
        ("essential_tools_present", {"required_tools": ["search"]}),
        ("eval_escalation", {}),
        ("eval_level_1_2", {}),
        ("eval_response_contains", {}),
        ("eval_routing_accuracy", {}),
        ("eval_signal_task_complete", {}),
        ("eval_token_efficiency", {"max_tokens": 3}),
        ("eval_max_turns", {"scenario": {"success_criteria": {"max_turns": 3}}}),
    ],
)
def test_a_published_check_keeps_the_contract_of_scorers(
    name: str, options: dict[str, Any]
) -> None:
    check_scorer(from_function(CHECKS[name], **options))
