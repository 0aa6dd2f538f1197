"""The public names and where each one stands. `__init__.py` loads them on first use."""

from .collector.client import (
    ScenarioSpanProcessor as ScenarioSpanProcessor,
    scenario as scenario,
)
from .collector.config.plugins.sinks import (
    SinkContext as SinkContext,
    SinkType as SinkType,
)
from .collector.core.documents import (
    ConfigError as ConfigError,
    Document as Document,
    Problems as Problems,
)
from .collector.core.evaluations.conversations import (
    ConversationResult as ConversationResult,
)
from .collector.core.evaluations.evaluator import (
    Evaluation as Evaluation,
    EvaluationKey as EvaluationKey,
)
from .collector.core.invocations.dialects.dialect import (
    Dialect as Dialect,
    Fields as Fields,
    Kind as Kind,
)
from .collector.core.invocations.dialects.field_paths import (
    Derived as Derived,
    Flattened as Flattened,
    InEvent as InEvent,
    JsonMember as JsonMember,
)
from .collector.core.otlp.spans import (
    LogRecord as LogRecord,
    Span as Span,
)
from .collector.core.pipeline_events import (
    Judged as Judged,
)
from .collector.core.references.format import (
    Format as Format,
    LoadedReferences as LoadedReferences,
)
from .collector.core.sink import (
    QueuedSink as QueuedSink,
    Sink as Sink,
)
from .collector.testing.assertions import (
    assert_passes as assert_passes,
)
from .collector.testing.file_exporter import (
    FileSpanExporter as FileSpanExporter,
)
from .collector.testing.read import (
    read_references as read_references,
    read_traces as read_traces,
)
from .collector.testing.received_traces import (
    ReceivedTraces as ReceivedTraces,
)
from .collector.testing.span_builders import (
    log as log,
    span as span,
)
from .scorers.adapters.functions import (
    from_function as from_function,
)
from .scorers.authoring.builders import (
    expected_call as expected_call,
    expected_calls as expected_calls,
    invocation as invocation,
    reference_turn as reference_turn,
    tool_call as tool_call,
    tool_calls as tool_calls,
)
from .scorers.authoring.contract import (
    check_scorer as check_scorer,
)
from .scorers.authoring.extras import (
    Extras as Extras,
    SpanRecord as SpanRecord,
)
from .scorers.authoring.judge_contract import (
    check_judge as check_judge,
)
from .scorers.composite.composite import (
    Composite as Composite,
    CostOfPassed as CostOfPassed,
    Member as Member,
)
from .scorers.cost.budgets import (
    MaxModelCalls as MaxModelCalls,
    MaxToolCalls as MaxToolCalls,
    MaxTurns as MaxTurns,
    TokenEfficiency as TokenEfficiency,
)
from .scorers.cost.context_overflow import (
    ContextOverflow as ContextOverflow,
)
from .scorers.cost.cost import (
    Cost as Cost,
)
from .scorers.cost.durations import (
    FrameworkTime as FrameworkTime,
    ModelTime as ModelTime,
    ToolTime as ToolTime,
)
from .scorers.cost.latency_and_failure import (
    Failure as Failure,
    Latency as Latency,
)
from .scorers.cost.prices import (
    TokenPrice as TokenPrice,
)
from .scorers.cost.usage import (
    InputTokens as InputTokens,
    ModelCalls as ModelCalls,
    OutputTokens as OutputTokens,
    ToolCalls as ToolCalls,
    TotalTokens as TotalTokens,
)
from .scorers.judge_protocol import (
    Ask as Ask,
    Judge as Judge,
    JudgeError as JudgeError,
    Question as Question,
)
from .scorers.judges.adherence import (
    PlanAdherence as PlanAdherence,
    TaskAdherence as TaskAdherence,
)
from .scorers.judges.custom_prompts import (
    LlmJudge as LlmJudge,
    Pointwise as Pointwise,
)
from .scorers.judges.failure_category import (
    FailureCategory as FailureCategory,
)
from .scorers.judges.hallucinations import (
    Hallucinations as Hallucinations,
)
from .scorers.judges.intent_resolution import (
    IntentResolution as IntentResolution,
)
from .scorers.judges.pairwise import (
    Pairwise as Pairwise,
)
from .scorers.judges.refusal import (
    Refusal as Refusal,
)
from .scorers.judges.responses import (
    FinalResponseMatch as FinalResponseMatch,
    ResponseEvaluationScore as ResponseEvaluationScore,
    Safety as Safety,
)
from .scorers.judges.rubrics import (
    RubricBasedFinalResponseQuality as RubricBasedFinalResponseQuality,
    RubricBasedToolUseQuality as RubricBasedToolUseQuality,
)
from .scorers.judges.sessions import (
    MultiTurnTaskSuccess as MultiTurnTaskSuccess,
    MultiTurnToolUseQuality as MultiTurnToolUseQuality,
    MultiTurnTrajectoryQuality as MultiTurnTrajectoryQuality,
    RubricBasedMultiTurnTrajectoryQuality as RubricBasedMultiTurnTrajectoryQuality,
)
from .scorers.judges.tool_output import (
    ToolOutputUtilization as ToolOutputUtilization,
)
from .scorers.judges.trajectories import (
    TrajectoryAccuracy as TrajectoryAccuracy,
    TrajectoryAccuracyWithReference as TrajectoryAccuracyWithReference,
)
from .scorers.matching.alignment import (
    Alignment as Alignment,
    TooLongError as TooLongError,
)
from .scorers.matching.comparison import (
    MatchMode as MatchMode,
    align as align,
)
from .scorers.responses.bleu import (
    Bleu as Bleu,
)
from .scorers.responses.grounded_values import (
    GroundedValues as GroundedValues,
)
from .scorers.responses.phrases import (
    ResponseContains as ResponseContains,
    ResponseExcludes as ResponseExcludes,
)
from .scorers.responses.response_length import (
    ResponseLength as ResponseLength,
)
from .scorers.responses.response_pattern import (
    ResponsePattern as ResponsePattern,
)
from .scorers.responses.response_schema import (
    ResponseSchema as ResponseSchema,
)
from .scorers.responses.rouge import (
    Rouge1 as Rouge1,
    Rouge2 as Rouge2,
    RougeL as RougeL,
    RougeLSum as RougeLSum,
)
from .scorers.responses.text_match import (
    ResponseExactMatch as ResponseExactMatch,
    ResponseMatchScore as ResponseMatchScore,
)
from .scorers.session_protocol import (
    SessionTurn as SessionTurn,
)
from .scorers.sessions.mean_of_turns import (
    MeanOfTurns as MeanOfTurns,
    ScoredCriterion as ScoredCriterion,
)
from .scorers.sessions.repeated_questions import (
    RepeatedQuestions as RepeatedQuestions,
)
from .scorers.sessions.resolution import (
    SessionResolved as SessionResolved,
)
from .scorers.sessions.spending import (
    SessionCost as SessionCost,
    SessionTokens as SessionTokens,
)
from .scorers.sessions.tool_trajectory import (
    SessionToolTrajectory as SessionToolTrajectory,
)
from .scorers.sessions.turn_count import (
    SessionTurns as SessionTurns,
)
from .scorers.tool_use.allowed_tools import (
    AllowedTools as AllowedTools,
)
from .scorers.tool_use.argument_validity import (
    ArgumentValidity as ArgumentValidity,
)
from .scorers.tool_use.confirmation import (
    InterruptRejection as InterruptRejection,
    PendingConfirmationFlow as PendingConfirmationFlow,
)
from .scorers.tool_use.delegation_cycles import (
    DelegationCycles as DelegationCycles,
)
from .scorers.tool_use.error_suggestions import (
    ErrorSuggestions as ErrorSuggestions,
)
from .scorers.tool_use.errors import (
    ErrorRecovery as ErrorRecovery,
    ToolErrorRate as ToolErrorRate,
)
from .scorers.tool_use.idempotency import (
    Idempotency as Idempotency,
)
from .scorers.tool_use.loops import (
    RedundantCalls as RedundantCalls,
    ToolLoops as ToolLoops,
)
from .scorers.tool_use.matching_span import (
    HasMatchingSpan as HasMatchingSpan,
)
from .scorers.tool_use.policy import (
    ToolPolicy as ToolPolicy,
)
from .scorers.tool_use.routing import (
    RoutingAccuracy as RoutingAccuracy,
)
from .scorers.tool_use.signals import (
    Escalation as Escalation,
    EscalationRate as EscalationRate,
    SignalTaskComplete as SignalTaskComplete,
)
from .scorers.tool_use.skill_invoked import (
    SkillInvoked as SkillInvoked,
)
from .scorers.tool_use.span_query import (
    SpanQuery as SpanQuery,
)
from .scorers.tool_use.stagnation import (
    Stagnation as Stagnation,
)
from .scorers.tool_use.temporal_rules import (
    Rule as Rule,
)
from .scorers.tool_use.tool_graph import (
    ToolGraph as ToolGraph,
)
from .scorers.tool_use.tools import (
    EssentialToolsPresent as EssentialToolsPresent,
    ForbiddenTools as ForbiddenTools,
    RequiredTools as RequiredTools,
)
from .scorers.trajectories.adk import (
    MatchType as MatchType,
    ToolTrajectoryAvgScore as ToolTrajectoryAvgScore,
    ToolTrajectoryF1 as ToolTrajectoryF1,
)
from .scorers.trajectories.arguments import (
    ArgumentAccuracy as ArgumentAccuracy,
)
from .scorers.trajectories.langchain import (
    TrajectoryMatch as TrajectoryMatch,
)
from .scorers.trajectories.steps import (
    FirstDivergence as FirstDivergence,
    StepEfficiency as StepEfficiency,
    TrajectorySimilarity as TrajectorySimilarity,
)
from .scorers.trajectories.tool_selection import (
    PerToolF1 as PerToolF1,
    ToolPrecision as ToolPrecision,
    ToolRecall as ToolRecall,
    ToolSelectionAccuracy as ToolSelectionAccuracy,
)
from .scorers.trajectories.vertex import (
    TrajectoryAnyOrderMatch as TrajectoryAnyOrderMatch,
    TrajectoryExactMatch as TrajectoryExactMatch,
    TrajectoryInOrderMatch as TrajectoryInOrderMatch,
    TrajectoryPrecision as TrajectoryPrecision,
    TrajectoryRecall as TrajectoryRecall,
    TrajectorySingleToolUse as TrajectorySingleToolUse,
)
from .scorers.types import (
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
    TurnRubric as TurnRubric,
)

__all__: list[str]
