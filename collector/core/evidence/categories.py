"""The categories of failures, and the category of a criterion that failed, by its scorer.

The tool calls tell more than the kind of a scorer, so this is only used for what is not a
comparison with reference calls. Names are those of scorers, never those that users give to their
criteria.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Literal, get_args

from pathgauge.scorers.types import Scorer

Category = Literal[
    "missing_call",
    "wrong_tool",
    "extra_call",
    "wrong_argument",
    "order",
    "loop",
    "tool_error",
    "ended_early",
    "wrong_answer",
    "ungrounded_value",
    "slow",
    "error",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)

_BY_NAME: Mapping[str, Category] = {category: category for category in CATEGORIES}

OF_INVOCATIONS: tuple[Category, ...] = ("error", "tool_error")
"""Causes that the invocation itself shows, whatever criterion it failed."""
OF_TRAJECTORIES: tuple[Category, ...] = (
    "loop",
    "ended_early",
    "wrong_tool",
    "missing_call",
    "wrong_argument",
    "order",
    "extra_call",
)
"""Deviations of its tool calls."""
PRECEDENCE: tuple[Category, ...] = (
    *OF_INVOCATIONS,
    *OF_TRAJECTORIES,
    "ungrounded_value",
    "wrong_answer",
    "slow",
)
"""Causes before their effects: a tool that fails makes an agent leave out the calls that follow,
and wrong calls lead to a wrong answer.
"""


def category_of(scorer: Scorer, verdict: str = "") -> Category:
    """The category if a criterion with this scorer failed, or the one that is its verdict. A scorer
    of a plug-in is judged by what its class declares: an amount without upper limit that should be
    low is a cost.
    """
    if scorer.name == "failure_category" and verdict in _BY_NAME:
        return _BY_NAME[verdict]
    known = _BY_SCORER.get(scorer.name)
    if known is not None:
        return known
    is_amount = math.isinf(scorer.high) and not scorer.higher_is_better
    return "slow" if is_amount else "wrong_answer"


_SCORERS: Mapping[Category, tuple[str, ...]] = {
    "error": ("failure",),
    "tool_error": ("error_recovery", "error_suggestions", "tool_error_rate"),
    "loop": ("delegation_cycles", "idempotency", "redundant_calls", "stagnation", "tool_loops"),
    "ended_early": ("signal_task_complete",),
    "wrong_tool": (
        "escalation",
        "escalation_rate",
        "first_divergence",
        "per_tool_f1",
        "routing_accuracy",
        "rubric_based_tool_use_quality_v1",
        "tool_precision",
        "tool_selection_accuracy",
        "tool_trajectory_avg_score",
        "tool_trajectory_f1",
        "trajectory_accuracy",
        "trajectory_accuracy_with_reference",
        "trajectory_any_order_match",
        "trajectory_exact_match",
        "trajectory_in_order_match",
        "trajectory_match",
        "trajectory_precision",
        "trajectory_similarity",
    ),
    "missing_call": (
        "essential_tools_present",
        "has_matching_span",
        "required_tools",
        "skill_invoked",
        "tool_recall",
        "trajectory_recall",
        "trajectory_single_tool_use",
    ),
    "wrong_argument": ("argument_accuracy", "argument_validity"),
    "order": (
        "interrupt_rejection",
        "pending_confirmation_flow",
        "plan_adherence",
        "tool_graph",
        "tool_policy",
    ),
    "extra_call": (
        "allowed_tools",
        "forbidden_tools",
        "max_tool_calls",
        "step_efficiency",
        "tool_calls",
    ),
    "ungrounded_value": ("grounded_values", "hallucinations_v1", "tool_output_utilization"),
    "slow": (
        "context_overflow",
        "cost_of_passed",
        "max_model_calls",
        "max_turns",
        "token_efficiency",
    ),
}
"""Scorers without an entry are about the answer, or amounts of time, tokens or money."""

_BY_SCORER: Mapping[str, Category] = dict(
    chain.from_iterable(
        ((name, category) for name in names) for category, names in _SCORERS.items()
    )
)
