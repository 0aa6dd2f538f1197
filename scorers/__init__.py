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

if TYPE_CHECKING:
    from scorers.composite import Composite as Composite, CostOfPassed as CostOfPassed, Member as Member
    from scorers.conduct.confirmation import InterruptRejection as InterruptRejection, PendingConfirmationFlow as PendingConfirmationFlow
    from scorers.conduct.errors import ErrorRecovery as ErrorRecovery, ToolErrorRate as ToolErrorRate
    from scorers.conduct.graph import ToolGraph as ToolGraph
    from scorers.conduct.idempotency import Idempotency as Idempotency
    from scorers.conduct.policy import ToolPolicy as ToolPolicy
    from scorers.conduct.repetition import RedundantCalls as RedundantCalls, ToolLoops as ToolLoops
    from scorers.conduct.routing import RoutingAccuracy as RoutingAccuracy
    from scorers.conduct.rules import Rule as Rule
    from scorers.conduct.signals import Escalation as Escalation, EscalationRate as EscalationRate, SignalTaskComplete as SignalTaskComplete
    from scorers.conduct.suggestions import ErrorSuggestions as ErrorSuggestions
    from scorers.conduct.tools import (
        EssentialToolsPresent as EssentialToolsPresent,
        ForbiddenTools as ForbiddenTools,
        RequiredTools as RequiredTools,
    )
    from scorers.conduct.validity import ArgumentValidity as ArgumentValidity
    from scorers.custom.adapters import from_function as from_function
    from scorers.judges.custom import LlmJudge as LlmJudge, Pointwise as Pointwise
    from scorers.judges.hallucinations import Hallucinations as Hallucinations
    from scorers.judges.responses import (
        FinalResponseMatch as FinalResponseMatch,
        ResponseEvaluationScore as ResponseEvaluationScore,
        Safety as Safety,
    )
    from scorers.judges.rubrics import (
        RubricBasedFinalResponseQuality as RubricBasedFinalResponseQuality,
        RubricBasedToolUseQuality as RubricBasedToolUseQuality,
    )
    from scorers.judges.trajectories import (
        TrajectoryAccuracy as TrajectoryAccuracy,
        TrajectoryAccuracyWithReference as TrajectoryAccuracyWithReference,
    )
    from scorers.matching.alignment import Alignment as Alignment, TooLongError as TooLongError
    from scorers.matching.comparison import MatchMode as MatchMode, align as align
    from scorers.responses.bleu import Bleu as Bleu
    from scorers.responses.phrases import ResponseContains as ResponseContains, ResponseExcludes as ResponseExcludes
    from scorers.responses.response import ResponseExactMatch as ResponseExactMatch, ResponseMatchScore as ResponseMatchScore
    from scorers.responses.rouge import Rouge1 as Rouge1, Rouge2 as Rouge2, RougeL as RougeL, RougeLSum as RougeLSum
    from scorers.runs.amounts import (
        InputTokens as InputTokens,
        ModelCalls as ModelCalls,
        OutputTokens as OutputTokens,
        ToolCalls as ToolCalls,
        TotalTokens as TotalTokens,
    )
    from scorers.runs.budgets import (
        MaxModelCalls as MaxModelCalls,
        MaxToolCalls as MaxToolCalls,
        MaxTurns as MaxTurns,
        TokenEfficiency as TokenEfficiency,
    )
    from scorers.runs.durations import FrameworkTime as FrameworkTime, ModelTime as ModelTime, ToolTime as ToolTime
    from scorers.runs.efficiency import Failure as Failure, Latency as Latency
    from scorers.runs.overflow import ContextOverflow as ContextOverflow
    from scorers.trajectories.arguments import ArgumentAccuracy as ArgumentAccuracy
    from scorers.trajectories.langchain import TrajectoryMatch as TrajectoryMatch
    from scorers.trajectories.selection import (
        PerToolF1 as PerToolF1,
        ToolPrecision as ToolPrecision,
        ToolRecall as ToolRecall,
        ToolSelectionAccuracy as ToolSelectionAccuracy,
    )
    from scorers.trajectories.steps import (
        FirstDivergence as FirstDivergence,
        StepEfficiency as StepEfficiency,
        TrajectorySimilarity as TrajectorySimilarity,
    )
    from scorers.trajectories.trajectory import (
        MatchType as MatchType,
        ToolTrajectoryAvgScore as ToolTrajectoryAvgScore,
        ToolTrajectoryF1 as ToolTrajectoryF1,
    )
    from scorers.trajectories.vertex import (
        TrajectoryAnyOrderMatch as TrajectoryAnyOrderMatch,
        TrajectoryExactMatch as TrajectoryExactMatch,
        TrajectoryInOrderMatch as TrajectoryInOrderMatch,
        TrajectoryPrecision as TrajectoryPrecision,
        TrajectoryRecall as TrajectoryRecall,
        TrajectorySingleToolUse as TrajectorySingleToolUse,
    )
    from scorers.types import (
        AgentRun as AgentRun,
        ExpectedCall as ExpectedCall,
        Flag as Flag,
        Invocation as Invocation,
        Json as Json,
        ModelCall as ModelCall,
        Reason as Reason,
        Reference as Reference,
        ReferenceTurn as ReferenceTurn,
        Score as Score,
        Scorer as Scorer,
        ToolCall as ToolCall,
    )

_MODULES = {
    "composite": "Composite CostOfPassed Member",
    "conduct.confirmation": "InterruptRejection PendingConfirmationFlow",
    "conduct.errors": "ErrorRecovery ToolErrorRate",
    "conduct.graph": "ToolGraph",
    "conduct.idempotency": "Idempotency",
    "conduct.policy": "ToolPolicy",
    "conduct.repetition": "RedundantCalls ToolLoops",
    "conduct.routing": "RoutingAccuracy",
    "conduct.rules": "Rule",
    "conduct.signals": "Escalation EscalationRate SignalTaskComplete",
    "conduct.suggestions": "ErrorSuggestions",
    "conduct.tools": "EssentialToolsPresent ForbiddenTools RequiredTools",
    "conduct.validity": "ArgumentValidity",
    "custom.adapters": "from_function",
    "judges.custom": "LlmJudge Pointwise",
    "judges.hallucinations": "Hallucinations",
    "judges.responses": "FinalResponseMatch ResponseEvaluationScore Safety",
    "judges.rubrics": "RubricBasedFinalResponseQuality RubricBasedToolUseQuality",
    "judges.trajectories": "TrajectoryAccuracy TrajectoryAccuracyWithReference",
    "matching.alignment": "Alignment TooLongError",
    "matching.comparison": "MatchMode align",
    "responses.bleu": "Bleu",
    "responses.phrases": "ResponseContains ResponseExcludes",
    "responses.response": "ResponseExactMatch ResponseMatchScore",
    "responses.rouge": "Rouge1 Rouge2 RougeL RougeLSum",
    "runs.amounts": "InputTokens ModelCalls OutputTokens ToolCalls TotalTokens",
    "runs.budgets": "MaxModelCalls MaxToolCalls MaxTurns TokenEfficiency",
    "runs.durations": "FrameworkTime ModelTime ToolTime",
    "runs.efficiency": "Failure Latency",
    "runs.overflow": "ContextOverflow",
    "trajectories.arguments": "ArgumentAccuracy",
    "trajectories.langchain": "TrajectoryMatch",
    "trajectories.selection": "PerToolF1 ToolPrecision ToolRecall ToolSelectionAccuracy",
    "trajectories.steps": "FirstDivergence StepEfficiency TrajectorySimilarity",
    "trajectories.trajectory": "MatchType ToolTrajectoryAvgScore ToolTrajectoryF1",
    "trajectories.vertex": (
        "TrajectoryAnyOrderMatch TrajectoryExactMatch TrajectoryInOrderMatch TrajectoryPrecision TrajectoryRecall TrajectorySingleToolUse"
    ),
    "types": "AgentRun ExpectedCall Flag Invocation Json ModelCall Reason Reference ReferenceTurn Score Scorer ToolCall",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = tuple(sorted(_HOMES))


def __getattr__(name: str) -> Any:
    """Load what is asked for: there are many scorers, and some of them need heavy libraries."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"scorers.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
