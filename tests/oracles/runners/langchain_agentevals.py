"""LangChain's agentevals: the match of tool calls in messages, in its four modes and the four modes
of comparing arguments.
"""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import Any

from agentevals.trajectory.match import create_trajectory_match_evaluator

from .lines import Case, Results, answer

MODES = ("strict", "unordered", "subset", "superset")
ARGUMENT_MODES = ("exact", "ignore", "subset", "superset")
OVERRIDES = {"a": ["k", "l.p"], "b": "ignore"}


def evaluators(mode: str) -> dict[str, Any]:
    """Those of a mode, by every way to compare arguments."""
    found = {
        f"{mode} {arguments}": create_trajectory_match_evaluator(
            trajectory_match_mode=mode, tool_args_match_mode=arguments
        )
        for arguments in ARGUMENT_MODES
    }
    found[f"{mode} overrides"] = create_trajectory_match_evaluator(
        trajectory_match_mode=mode, tool_args_match_overrides=OVERRIDES
    )
    return found


EVALUATORS = {name: one for mode in MODES for name, one in evaluators(mode).items()}


def results(case: Case) -> Results:
    """The score of every evaluator."""
    actual, expected = (
        messages(case["actual"], case["messages"]),
        messages(case["expected"], case["groups"]),
    )
    return {
        name: float(one(outputs=actual, reference_outputs=expected)["score"])
        for name, one in EVALUATORS.items()
    }


def messages(calls: list[Any], numbers: list[int]) -> list[dict[str, Any]]:
    """Messages with the calls of the same number, in OpenAI's form."""
    together = groupby(zip(numbers, calls, strict=True), key=itemgetter(0))
    return [
        {"role": "assistant", "content": "", "tool_calls": [tool_call(*call) for _, call in same]}
        for _, same in together
    ]


def tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call in OpenAI's form."""
    return {
        "id": "1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


if __name__ == "__main__":
    answer(("agentevals", "openevals"), results)
