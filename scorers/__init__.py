"""How well an agent did: scorers compare an `Invocation` with the `ReferenceTurn` of its scenario and return a `Score`.

    from scorers import ExpectedCall, Invocation, ReferenceTurn, ToolCall, ToolTrajectoryF1

    actual = Invocation("4bf92f35", "00f067aa", "pytest", tool_calls=(ToolCall("search_web"), ToolCall("summarize")))
    expected = ReferenceTurn(tool_calls=(ExpectedCall("search_web"), ExpectedCall("summarize"), ExpectedCall("send_email")))
    ToolTrajectoryF1().score(actual, expected)  # 0.8: "2 of 3 expected calls matched; missing send_email"

`scorers.testing` helps to test agents and scorers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scorers.alignment import Alignment, TooLongError
from scorers.comparison import MatchMode, align
from scorers.efficiency import Failure, Latency
from scorers.trajectory import MatchType, ToolTrajectoryAvgScore, ToolTrajectoryF1
from scorers.types import (
    AgentRun,
    ExpectedCall,
    Flag,
    Invocation,
    Json,
    ModelCall,
    Reason,
    Reference,
    ReferenceTurn,
    Score,
    Scorer,
    ToolCall,
)
from scorers.vertex import (
    TrajectoryAnyOrderMatch,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
    TrajectoryPrecision,
    TrajectoryRecall,
    TrajectorySingleToolUse,
)

if TYPE_CHECKING:
    from scorers.response import ResponseMatchScore

__all__ = [
    "AgentRun",
    "Alignment",
    "ExpectedCall",
    "Failure",
    "Flag",
    "Invocation",
    "Json",
    "Latency",
    "MatchMode",
    "MatchType",
    "ModelCall",
    "Reason",
    "Reference",
    "ReferenceTurn",
    "ResponseMatchScore",
    "Score",
    "Scorer",
    "TooLongError",
    "ToolCall",
    "ToolTrajectoryAvgScore",
    "ToolTrajectoryF1",
    "TrajectoryAnyOrderMatch",
    "TrajectoryExactMatch",
    "TrajectoryInOrderMatch",
    "TrajectoryPrecision",
    "TrajectoryRecall",
    "TrajectorySingleToolUse",
    "align",
]


def __getattr__(name: str) -> Any:
    """Load `ResponseMatchScore` when asked for: rouge-score takes a second to import."""
    if name == "ResponseMatchScore":
        return import_module("scorers.response").ResponseMatchScore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
