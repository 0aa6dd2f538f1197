"""The values that scoring works on: what an agent did, what it should have done, and how well the
two agree.

Everything here is immutable and free of I/O. `None` always means *not known*; it is never `""`, `0`
or `{}`. Times are Unix nanoseconds, durations are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

CallKind = Literal["function", "handoff", "agent", "final_answer"]
"""What a tool call stands for: a plain function, a transfer of control, a sub-agent used as a tool,
or the answer itself.
"""

Flag = Literal[
    "content_missing",
    "truncated",
    "redacted",
    "orphan_spans",
    "missing_root",
    "dropped_attributes",
    "dropped_spans",
    "llm_detail_unreliable",
    "no_tool_spans",
    "scenario_conflict",
    "clock_skew",
]
"""What the telemetry of an invocation lacks; a closed set, so that it can label a counter."""

Reason = Literal[
    "no_reference",
    "args_not_recorded",
    "tools_not_recorded",
    "results_not_recorded",
    "response_not_recorded",
    "duration_not_recorded",
    "tokens_not_recorded",
    "schema_not_recorded",
    "not_applicable",
    "undefined",
    "too_long",
    "incomplete",
    "not_sampled",
    "budget",
    "judge_unconfigured",
    "judge_overloaded",
    "judge_timeout",
    "judge_unavailable",
    "judge_rejected",
    "judge_refused",
    "judge_malformed",
    "judge_undecided",
]
"""Why a score has no value; a closed set, so that it can label a counter."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an agent, in the order in which the model asked for it."""

    name: str
    arguments: Mapping[str, Json] | str | None = None
    """`None`: not recorded. `{}`: called without arguments. A string: recorded, but not a JSON
    object.
    """
    id: str | None = None
    result: Json = None
    error: str | None = None
    """What failed (message, else type); `None` when the call succeeded or nothing is known of a
    failure.
    """
    agent: str | None = None
    run: str | None = None
    """The span id of the agent run, or of the workflow, that made the call."""
    kind: CallKind = "function"
    group: int | None = None
    """Calls that one model message asked for share a group: their order means nothing."""
    start_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a language model, counted once however many spans describe it."""

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


def total_tokens(calls: Sequence[ModelCall]) -> tuple[int | None, int | None]:
    """Input and output tokens of all calls; `None` unless every call that did not fail says how
    many it took.
    """
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
    """The run of a sub-agent inside an invocation; `via` says how control came to it."""

    span_id: str
    agent: str | None = None
    parent: str | None = None
    """The name of the agent from which control came."""
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
    """One user turn handled under one top-most agent or workflow span, its *anchor*: the unit of
    scoring.
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
    """The run of a test suite that the invocation belongs to; scores are averaged within runs
    first.
    """
    turn: int | None = None
    """Zero-based position in the conversation, where the telemetry says so."""
    user_input: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls of the whole invocation, sub-agents included; the flag `no_tool_spans` says that they
    cannot be known.
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
    """Per tool, the JSON schema of its arguments, where the telemetry shows what the model was
    offered.
    """
    start_ns: int | None = None
    end_ns: int | None = None
    flags: frozenset[Flag] = frozenset()

    @property
    def duration_s(self) -> float | None:
        """Seconds from the start to the end of the anchor; `None` when not known, or when clocks
        ran backwards.
        """
        if self.start_ns is None or self.end_ns is None or self.end_ns < self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One tool call of a reference trajectory."""

    name: str
    arguments: Mapping[str, Json] | None = None
    """`None`: any arguments will do. `{}`: no arguments (in `name_and_required_args`: no required
    ones).

    A value, also inside of objects and lists, may be a matcher of
    `pathgauge.scorers.matching.matchers`.
    """
    optional: bool = False
    """The call may be left out: neither its presence nor its absence counts against the agent."""
    group: int | None = None
    """Neighbouring calls that share a group may come in any order."""


@dataclass(frozen=True, slots=True)
class ReferenceTurn:
    """What one user turn of a scenario should look like."""

    user_input: str | None = None
    tool_calls: tuple[ExpectedCall, ...] | None = None
    """`None`: the reference says nothing about tools. `()`: no tool may be called."""
    response: str | None = None
    alternatives: tuple[tuple[ExpectedCall, ...], ...] = ()
    """Other trajectories that are as good as `tool_calls`; the one that agrees best with the agent
    counts.
    """
    forbidden: tuple[ExpectedCall, ...] = ()
    """Calls that must not be made."""
    response_contains: tuple[str, ...] = ()
    """Phrases that the response must contain."""
    expected_agent: str | None = None
    """The sub-agent that should handle the turn."""
    escalate: bool | None = None
    """Whether the turn must, or must not, be handed to a human; `None` says nothing about it."""
    agents: Mapping[str, ReferenceTurn] = field(default_factory=dict)
    """What each sub-agent should do, by its name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference trajectory of one scenario: one turn, or several that form a conversation."""

    scenario_id: str
    turns: tuple[ReferenceTurn, ...]
    version: str = ""
    """Changes whenever the content changes; part of the identity of every result."""
    source: str = ""
    """Where it came from, as `file` or `file:line`, for messages."""
    criteria: Mapping[str, Json] = field(default_factory=dict)
    """Criteria of this scenario, by name, laid over the global ones; not yet validated against the
    scorers.
    """
    expected_interval: float | None = None
    """How often the scenario should be evaluated at least, in seconds; `None` says nothing about
    it.
    """


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of one scorer: a finite value in its range, or `None` with the reason."""

    value: float | None
    reason: Reason | None = None
    """Set exactly when `value` is `None`."""
    explanation: str = ""
    """One line for a person: why this value."""
    details: Mapping[str, Json] = field(default_factory=dict)
    """The evidence, as JSON: for trajectories the matched, missing and unexpected calls."""

    @classmethod
    def not_evaluated(cls, reason: Reason, explanation: str = "", **details: Json) -> Score:
        """A score without value, which is neither 0 nor NaN."""
        return cls(None, reason, explanation or reason.replace("_", " "), details)


@runtime_checkable
class Scorer(Protocol):
    """A scorer: a frozen dataclass whose fields are its options.

    `score` is pure and repeatable, mutates nothing, and returns a value inside [`low`, `high`] or
    `None` with a reason.
    """

    name: ClassVar[str]
    """The name users write in their configuration."""
    version: ClassVar[str]
    """Bumped whenever a change of behaviour makes earlier scores incomparable."""
    low: ClassVar[float]
    high: ClassVar[float]
    """The range of values; `high` may be infinite (seconds, counts)."""
    higher_is_better: ClassVar[bool]
    needs_reference: ClassVar[bool]

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score `actual` against `expected`; `expected` is `None` when no reference matched."""
        ...
