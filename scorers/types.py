"""The data model of scoring: invocations, references, scores and the `Scorer` protocol.

All values are immutable. `None` always means *not known*; it is never replaced by `""`, `0` or
`{}`. Times are Unix nanoseconds, durations are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from pathgauge.scorers.authoring.extras import SpanRecord, seconds

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

CallKind = Literal["function", "handoff", "agent", "final_answer"]
"""The kind of a tool call: a plain function, a transfer of control, a sub-agent used as a tool, or
the final answer.
"""

Flag = Literal[
    "content_missing",
    "truncated",
    "redacted",
    "orphan_spans",
    "missing_root",
    "dropped_attributes",
    "dropped_spans",
    "lost_parents",
    "lost_model_calls",
    "lost_tool_calls",
    "llm_detail_unreliable",
    "no_tool_spans",
    "scenario_conflict",
    "clock_skew",
    "unknown_dialect",
]
"""Defects of an invocation's telemetry. The set is closed, so it can label a counter."""

LOSSES: tuple[Flag, ...] = (
    "missing_root",
    "dropped_spans",
    "lost_parents",
    "lost_tool_calls",
    "lost_model_calls",
)
"""The flags that say that spans of an invocation were lost on their way, or dropped."""

Reason = Literal[
    "no_reference",
    "args_not_recorded",
    "tools_not_recorded",
    "results_not_recorded",
    "response_not_recorded",
    "duration_not_recorded",
    "tokens_not_recorded",
    "schema_not_recorded",
    "texts_not_recorded",
    "spans_not_recorded",
    "no_price",
    "not_applicable",
    "undefined",
    "too_long",
    "incomplete",
    "lost_telemetry",
    "not_sampled",
    "budget",
    "judge_unconfigured",
    "judge_not_asked",
    "judge_overloaded",
    "judge_timeout",
    "judge_unavailable",
    "judge_rejected",
    "judge_refused",
    "judge_malformed",
    "judge_undecided",
]
"""Why a score has no value. The set is closed, so it can label a counter."""


class _InOrder:
    """Tells pydantic, which is not imported here, to write a set in the order of its items."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415

        in_order = core_schema.plain_serializer_function_ser_schema(sorted)
        return {**handler(source), "serialization": in_order}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an agent. Calls are in the order in which the model requested them.

    `None` is not known. Times (`start_ns`, `end_ns`) are Unix nanoseconds.
    """

    name: str
    arguments: Mapping[str, Json] | str | None = None
    """`None`: not recorded. `{}`: called without arguments. A string: recorded, but not a JSON
    object.
    """
    id: str | None = None
    result: Json = None
    error: str | None = None
    """The error message, else the error type; `None` if no failure was recorded."""
    agent: str | None = None
    run: str | None = None
    """The span id of the agent run, or of the workflow, that made the call."""
    kind: CallKind = "function"
    group: int | None = None
    """Calls that one model message requested share a group. Their order has no meaning."""
    start_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a language model, even if several spans describe it.

    `None` is not known. Times (`start_ns`, `end_ns`) are Unix nanoseconds.
    """

    span_id: str
    agent: str | None = None
    run: str | None = None
    """The span id of the agent run, or of the workflow, that made the call."""
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    error: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    cached_tokens: int | None = None
    """The input tokens that were read from the provider's cache; `input_tokens` includes them."""
    cache_write_tokens: int | None = None
    """The input tokens that were written to the provider's cache; `input_tokens` includes them."""
    text: str | None = None
    """What the model said, also beside tool calls; kept only for scorers that need it (`Extras`).
    `None`: not recorded, or not kept.
    """


def total_tokens(calls: Sequence[ModelCall]) -> tuple[int | None, int | None]:
    """Input and output tokens of all calls; `None` if a call that did not fail has no counts."""
    if any(
        call.input_tokens is None and call.output_tokens is None and call.error is None
        for call in calls
    ):
        return None, None
    return _sum(call.input_tokens for call in calls), _sum(call.output_tokens for call in calls)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The run of a sub-agent inside an invocation, started as a tool (`agent`) or by a handoff.

    `None` is not known. Times (`start_ns`, `end_ns`) are Unix nanoseconds.
    """

    span_id: str
    agent: str | None = None
    parent: str | None = None
    """The name of the agent that started it."""
    parent_run: str | None = None
    """The span id of that agent's run."""
    via: Literal["agent", "handoff"] = "agent"
    user_input: str | None = None
    final_response: str | None = None
    error: str | None = None
    error_type: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """One user turn, handled under one entry agent: the top-most agent or workflow span. It is the
    unit of scoring.

    `None` is not known, which differs from `""`, 0 and `{}`; `flags` says what the telemetry lacks.
    Times (`start_ns`, `end_ns`) are Unix nanoseconds, `duration_s` is seconds.
    """

    trace_id: str
    span_id: str
    dialect: str
    tenant: str = ""
    agent: str | None = None
    agent_version: str | None = None
    scenario_id: str | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    run_id: str | None = None
    """The run of a test suite that the invocation belongs to. Scores are averaged within runs
    first.
    """
    turn: int | None = None
    """Zero-based position in the conversation, if the telemetry has it."""
    user_input: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls of the whole invocation, sub-agents included. With the flag `no_tool_spans` they are
    not known, with `telemetry_lost` not all of them.
    """
    sub_agents: tuple[AgentRun, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    final_response: str | None = None
    error: bool = False
    error_type: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    tool_schemas: Mapping[str, Json] = field(default_factory=dict)
    """By tool, the JSON schema of its arguments, if the telemetry has the tool definitions."""
    start_ns: int | None = None
    end_ns: int | None = None
    flags: Annotated[frozenset[Flag], _InOrder()] = frozenset()
    spans: tuple[SpanRecord, ...] = ()
    """All spans by start, kept only for scorers that need them (`Extras`)."""
    session_end: str | None = None
    """How the session ended with this turn, such as `resolved`, if the telemetry signals it."""

    @property
    def duration_s(self) -> float | None:
        """Seconds from the start to the end of the entry agent; `None` if not known, or if the end
        is before the start.
        """
        return seconds(self.start_ns, self.end_ns)

    @property
    def telemetry_lost(self) -> tuple[Flag, ...]:
        """The signs that spans were lost; empty if there is none."""
        return tuple(flag for flag in LOSSES if flag in self.flags)


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One tool call of a reference trajectory."""

    name: str
    arguments: Mapping[str, Json] | None = None
    """`None`: any arguments are accepted. `{}`: no arguments (in `name_and_required_args`: no
    required ones).

    Values, also inside objects and lists, may be matchers of
    `pathgauge.scorers.matching.matchers`.
    """
    optional: bool = False
    """The call may be left out: neither its presence nor its absence lowers the score."""
    group: int | None = None
    """Neighbouring calls that share a group may come in any order."""


@dataclass(frozen=True, slots=True)
class TurnRubric:
    """A statement that should hold in one turn; a judge by rubrics decides whether it does."""

    text: str
    id: str = ""
    """Its identifier in other tools."""
    description: str = ""
    """How to interpret it."""
    of: Literal["response", "tool_use"] = "response"
    """What the statement is about."""


@dataclass(frozen=True, slots=True)
class ReferenceTurn:
    """The expected behaviour in one user turn of a scenario."""

    user_input: str | None = None
    tool_calls: tuple[ExpectedCall, ...] | None = None
    """`None`: no expectation about tools. `()`: no tool may be called."""
    response: str | None = None
    alternatives: tuple[tuple[ExpectedCall, ...], ...] = ()
    """Trajectories as good as `tool_calls`. The one that agrees best with the agent counts."""
    forbidden: tuple[ExpectedCall, ...] = ()
    """Calls that must not be made."""
    response_contains: tuple[str, ...] = ()
    """Phrases that the response must contain."""
    expected_agent: str | None = None
    """The sub-agent that should handle the turn."""
    escalate: bool | None = None
    """Whether the turn must be handed to a human, or must not; `None`: no expectation."""
    agents: Mapping[str, ReferenceTurn] = field(default_factory=dict)
    """The expected behaviour of sub-agents, by name."""
    rubrics: tuple[TurnRubric, ...] = ()
    """Statements for judges by rubrics, in addition to those of their criteria."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference of one scenario: one turn, or the turns of a conversation."""

    scenario_id: str
    turns: tuple[ReferenceTurn, ...]
    version: str = ""
    """Changes whenever the content changes. It is part of the identity of every result."""
    source: str = ""
    """Its `file` or `file:line`, for messages."""
    criteria: Mapping[str, Json] = field(default_factory=dict)
    """Criteria of this scenario, by name. They override the global ones, and are not yet validated
    against the scorers.
    """
    expected_interval: float | None = None
    """The maximum seconds between two evaluations of the scenario; `None`: no expectation."""
    required: bool = False
    """Whether a gate fails when the scenario was not run."""


@dataclass(frozen=True, slots=True)
class Score:
    """The result of one scorer: a finite value in its range, or `None` with a reason."""

    value: float | None
    reason: Reason | None = None
    """Set if and only if `value` is `None`."""
    explanation: str = ""
    """Why this value, in one line for people."""
    details: Mapping[str, Json] = field(default_factory=dict)
    """The evidence as JSON: for trajectories, the matched, missing and unexpected calls."""

    @classmethod
    def not_evaluated(cls, reason: Reason, explanation: str = "", **details: Json) -> Score:
        """A score without value. This is neither 0 nor NaN."""
        return cls(None, reason, explanation or reason.replace("_", " "), details)


@runtime_checkable
class Scorer(Protocol):
    """A scorer: a frozen dataclass whose fields are its options.

    `score` is a pure function: it is repeatable, changes nothing and does no I/O. It returns a
    value inside [`low`, `high`], or no value with a reason.
    """

    name: ClassVar[str]
    """The name in configurations."""
    version: ClassVar[str]
    """To be changed whenever a new behaviour makes earlier scores incomparable."""
    low: ClassVar[float]
    high: ClassVar[float]
    """The range of values. `high` may be infinite (seconds, counts)."""
    higher_is_better: ClassVar[bool]
    needs_reference: ClassVar[bool]

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score `actual` against `expected`, which is `None` if no reference matched."""
        ...
