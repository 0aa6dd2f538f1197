"""The answers of the tools. Fields whose value is not known are left out."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from pathgauge.collector.api.attribute_docstrings import describe_properties
from pathgauge.collector.api.mcp.untrusted import NOTICE
from pathgauge.collector.api.models import State, Telemetry
from pathgauge.collector.api.stored_values import StoredCategory, StoredVerdict
from pathgauge.collector.core.drift.drift import Against
from pathgauge.collector.core.evidence.comparison import Mark
from pathgauge.collector.core.evidence.miss import Kind


class Part(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True, json_schema_extra=describe_properties)


class Answer(Part):
    """What all answers have."""

    notice: str = NOTICE
    """How to read the answer."""
    left_out: list[str] = Field(default_factory=list)
    """What the answer leaves out to stay short."""


class Score(Part):
    """The recent scores of one criterion."""

    criterion: str
    mean: float
    samples: int
    threshold: float | None = None
    higher_is_better: bool
    state: State
    """`breached`: the mean misses its threshold."""


class Series(Part):
    """The scores of an agent in a scenario."""

    tenant: str | None = None
    agent: str | None = None
    scenario_id: str | None = None
    last: datetime
    scores: list[Score]


class UnmatchedScenario(Part):
    """A scenario id in the traffic without a reference."""

    tenant: str | None = None
    scenario_id: str
    invocations: int
    closest: list[str]
    """Known ids that are similar."""


class SummaryAnswer(Answer):
    """Agents and scenarios, the worst first."""

    series: list[Series]
    unmatched: list[UnmatchedScenario]
    telemetry: Telemetry | None = None
    """Missing for a tenant: the counts are of all tenants."""


class Cluster(Part):
    """Failures of the same kind."""

    tenant: str | None = None
    agent: str | None = None
    scenario_id: str | None = None
    category: StoredCategory
    signature: str
    """What failed; usable as a filter."""
    failures: int
    first: datetime
    last: datetime
    trace_id: str
    """The newest of them."""
    span_id: str


class Criterion(Part):
    """What one criterion said."""

    name: str
    verdict: StoredVerdict
    value: float | None = None
    threshold: float | None = None
    reason: str | None = None
    """Why there is no value."""
    explanation: str | None = None


class Result(Part):
    """The result of one invocation."""

    trace_id: str
    span_id: str
    tenant: str | None = None
    time: datetime
    agent: str | None = None
    agent_version: str | None = None
    scenario_id: str | None = None
    verdict: StoredVerdict
    category: StoredCategory | None = None
    signature: str | None = None
    reference_version: str | None = None
    unmatched: str | None = None
    """Why there is no reference."""
    flags: list[str]
    """Defects of the telemetry."""
    duration_s: float | None = None
    criteria: list[Criterion]


class FailuresAnswer(Answer):
    """Failures."""

    failures: int
    """How many were grouped into clusters."""
    complete: bool
    """Whether all failures were grouped; else only the newest."""
    clusters: list[Cluster]
    newest: list[Result]
    """Failed results, the newest first, with the criteria that failed."""
    next: str | None = None
    """The `cursor` for older ones."""


class ComparedCall(Part):
    """One line of expected and actual tool calls."""

    mark: Mark
    """`=` matched, `~` other arguments, `?` arguments not recorded, `-` missing, `+` unexpected."""
    expected: str | None = None
    actual: str | None = None


class Comparison(Part):
    """Expected and actual tool calls side by side."""

    criteria: list[str]
    calls: list[ComparedCall]


class ToolCall(Part):
    """A tool call of the agent."""

    name: str
    agent: str | None = None
    arguments: str | None = None
    result: str | None = None
    error: str | None = None


class Explained(Part):
    """A result, and what explains it."""

    result: Result
    user_input: str | None = None
    final_response: str | None = None
    expected_response: str | None = None
    error_type: str | None = None
    comparisons: list[Comparison]
    tool_calls: list[ToolCall]
    """In the order in which the agent made them."""
    evidence_kept: bool
    """Whether more than the result is known."""


class ExplainedAnswer(Answer):
    """Results of a trace, failed ones first."""

    results: list[Explained]


class CriterionRuns(Part):
    """The values of one criterion."""

    criterion: str
    mean: float | None = None
    samples: int
    failed: int
    threshold: float | None = None


class VersionRuns(Part):
    """The results of one version."""

    version: str | None = None
    invocations: int
    verdicts: dict[StoredVerdict, int]
    first: datetime
    last: datetime
    criteria: list[CriterionRuns]


class VersionsAnswer(Answer):
    """Versions of an agent, the newest first."""

    complete: bool
    """Whether all results were compared; else only the newest."""
    versions: list[VersionRuns]


class ReferenceAnswer(Answer):
    """The reference of a scenario."""

    scenario_id: str
    version: str
    source: str
    active: bool
    """`false`: no reference is active; a stored invocation was evaluated against this turn."""
    turn_index: int | None = None
    turns: list[str]
    """Each as JSON, in the native format of references."""
    criteria: str | None = None
    """Criteria of this scenario, as JSON."""


class ChangedMiss(Part):
    """A tool call that costs more of the score since the change than before."""

    kind: Kind
    tool: str | None = None
    argument: str | None = None
    share: float
    """Its share of the additional loss, from 0 to 1."""
    rate: float
    """How often in an invocation, since the change."""
    rate_before: float


class Drift(Part):
    """Scores that are compared with a baseline. Means are in the scale of the metric."""

    tenant: str | None = None
    agent: str
    scenario_id: str | None = None
    """Without one: all scenarios of the agent together, as scores from 0 to 1."""
    metric: str
    judge: str | None = None
    alarm: bool
    """Whether the scores became worse."""
    against: Against
    """What they are compared with."""
    version: str | None = None
    """The version that is compared with the one before it."""
    evidence_days: float
    """N means: by chance alone, this much evidence is reached once in N days."""
    adjusted_evidence_days: float
    """The same, adjusted for the number of series. Alerts use this."""
    since: datetime | None = None
    """When scores became worse."""
    after_version: str | None = None
    """The version of the agent that was first seen about then."""
    mean_before: float | None = None
    mean: float | None = None
    """Since the change."""
    samples: int
    """Scores since the change."""
    baseline: float | None = None
    """Without one, it is being learned."""
    changes: list[ChangedMiss]
    """What explains the loss, the most costly first."""


class DriftAnswer(Answer):
    """Scores that became worse."""

    streams: list[Drift]
    """Those with the most evidence first."""
