"""The answers of the API. Programs rely on them: fields are added, never renamed or removed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pathgauge.collector.api.attribute_docstrings import describe_properties
from pathgauge.collector.api.stored_values import StoredCategory, StoredVerdict
from pathgauge.collector.core.evidence.comparison import Mark
from pathgauge.collector.store.queries.traces import Source
from pathgauge.scorers.types import Json

State = Literal["ok", "breached", "few_samples", "no_threshold"]
"""Of a mean: `breached` misses its threshold, `few_samples` has too few scores to say so."""


class Model(BaseModel):
    """An answer, or a part of one."""

    model_config = ConfigDict(frozen=True, json_schema_extra=describe_properties)


class Criterion(Model):
    """What one criterion said about an invocation."""

    name: str
    scorer: str
    """Name and version."""
    verdict: StoredVerdict
    value: float | None
    threshold: float | None
    reason: str | None
    """Why there is no value."""
    judge: str = ""
    """The model that judged."""
    explanation: str = ""
    """Why this value, in one line. Only with evidence."""


class SessionTurn(Model):
    """A turn of a session. It has a result of its own, under the same ids."""

    trace_id: str
    span_id: str


class Session(Model):
    """What the result of a session says beside its criteria."""

    conversation_id: str
    ended_by: str
    """What ended it: `idle`, `signal`, `turns`, `bytes`, `age` or `memory`."""
    turns: list[SessionTurn]


class Result(Model):
    """The evaluation of one invocation, or of one session. A session has an id of its own in place
    of a trace id.
    """

    trace_id: str
    span_id: str
    tenant: str
    time: datetime
    agent: str | None
    agent_version: str | None
    scenario_id: str | None
    verdict: StoredVerdict
    category: StoredCategory | None
    """What kind of failure it is; `null` if it did not fail."""
    signature: str | None
    """What failed, in one line; the same for every failure of this kind."""
    reference_version: str | None
    unmatched: str | None
    """Why there is no reference."""
    flags: list[str]
    """Defects of the telemetry."""
    duration_s: float | None
    revision: int
    criteria: list[Criterion]
    session: Session | None = None
    """Set if it is the result of a session, and not of an invocation."""


class Results(Model):
    """Results, the newest first."""

    results: list[Result]
    next: str | None
    """The cursor for more. A page can be empty although there are more: a search ends after a
    while, and continues with the next page.
    """
    searched_to: datetime | None = None
    """Every result that was stored later was looked at. `null`: there are no more."""


class ComparedCall(Model):
    """One line of a comparison of expected and actual tool calls."""

    mark: Mark
    """`=` matched, `~` other arguments, `?` arguments not recorded, `-` missing, `+` unexpected."""
    expected: str
    actual: str


class Comparison(Model):
    """Expected and actual trajectory side by side, as these criteria have aligned them."""

    criteria: list[str]
    calls: list[ComparedCall]


class People(Model):
    """How many people call an invocation good, and how many bad. Answers about single criteria do
    not count.
    """

    good: int = 0
    bad: int = 0


class Explained(Model):
    """A result with everything that explains it."""

    result: Result
    evidence: dict[str, Json] | None
    """The invocation, the turn of the reference, and the details of the scores, as they were at
    the time; `null` if they are not kept.
    """
    comparisons: list[Comparison]
    people: People = People()


class ExplainedTrace(Model):
    """All results of a trace."""

    results: list[Explained]


class Cluster(Model):
    """Failures of the same kind: the same agent, scenario and signature."""

    tenant: str
    agent: str | None
    scenario_id: str | None
    category: StoredCategory
    signature: str
    failures: int
    first: datetime
    last: datetime
    trace_id: str
    """The newest of them."""
    span_id: str


class Clusters(Model):
    """The largest clusters, the largest first."""

    clusters: list[Cluster]
    failures: int
    """How many failures were grouped, also in clusters that are not listed."""
    complete: bool
    """Whether all failures were grouped; else only the newest."""


class UnmatchedScenario(Model):
    """A scenario id in the traffic without a reference."""

    tenant: str
    scenario_id: str
    invocations: int
    """Since the start of the collector, or the last reload."""
    closest: list[str]
    """Known ids, the most similar first."""


class Unmatched(Model):
    """Scenario ids without a reference."""

    scenarios: list[UnmatchedScenario]
    further_invocations: int
    """Invocations with further ids, which are not listed."""


class Score(Model):
    """The recent scores of one criterion in one scenario: what the gauges on /metrics show."""

    criterion: str
    mean: float
    samples: int
    threshold: float | None
    higher_is_better: bool
    state: State
    judge: str = ""
    recent: list[float]
    """Means of the recent scores in the order of time, at most 40."""


class VersionScore(Model):
    """The recent scores of one version of an agent."""

    version: str
    criterion: str
    mean: float
    samples: int
    last: datetime
    """When the newest of its evaluations was recorded."""


class Series(Model):
    """The scores of one agent in one scenario."""

    tenant: str
    agent: str | None
    scenario_id: str | None
    last: datetime
    """When its newest evaluation was recorded."""
    scores: list[Score]
    versions: list[VersionScore]


class Telemetry(Model):
    """How the telemetry is. With a store on disk, all counts but `spans_refused` continue after a
    restart.
    """

    spans_received: int
    spans_refused: int
    """Since the start of the process."""
    spans_dropped: int
    invocations_read: int
    invocations_scored: int
    invocations_skipped: int
    open_traces: int
    unread_scopes: dict[str, int] = Field(default_factory=dict)
    """Spans that speak of agents, models or tools and that no dialect understands, by
    instrumentation scope.
    """
    unready: list[str] = Field(default_factory=list)
    """Why the collector accepts no spans; empty if it does."""


class Summary(Model):
    """Agents and scenarios with recent scores, the worst first."""

    series: list[Series]
    further_series: int
    """How many are not listed."""
    unmatched: Unmatched
    telemetry: Telemetry | None
    """`null` for a tenant: the counts are of all tenants."""


class ReferenceState(Model):
    """A reference, and whether it is used."""

    scenario_id: str
    version: str
    source: str
    """Its `file` or `file:line`."""
    turns: int
    required: bool
    last_run: datetime | None
    """When an invocation was evaluated against it; `null`: never, as far as the store goes back."""


class References(Model):
    """The active references, those that were never used first."""

    references: list[ReferenceState]
    matched: int
    """How many of the last `of` invocations had a reference."""
    of: int
    complete: bool = True
    """Whether the last use of all of them was looked for."""


class CriterionRuns(Model):
    """The values of one criterion for one version of an agent."""

    criterion: str
    mean: float | None
    """`null` without any value."""
    samples: int
    failed: int
    threshold: float | None
    """That of the newest result."""


class VersionRuns(Model):
    """The results of one version of an agent."""

    version: str | None
    """`null`: the telemetry has no version."""
    invocations: int
    verdicts: dict[StoredVerdict, int]
    """How many invocations have each verdict; those that none has are left out."""
    first: datetime
    last: datetime
    criteria: list[CriterionRuns]


class Versions(Model):
    """The versions of an agent, the newest first."""

    versions: list[VersionRuns]
    complete: bool
    """Whether all results were compared; else only the newest, or those of the newest versions."""


class ReferenceDocument(Model):
    """The reference of a scenario."""

    scenario_id: str
    version: str
    source: str
    """Its `file` or `file:line`."""
    active: bool
    """`false`: no reference of this scenario is active, and a stored invocation was evaluated
    against this turn.
    """
    turn_index: int | None
    """The turn of the conversation that `document` holds; `null`: it holds all turns."""
    document: dict[str, Json]
    """The reference in the native format."""


class Trace(Model):
    """A trace as OTLP/JSON, which `pathgauge score` and `pathgauge record` read."""

    source: Source
    """`journal`: the spans as they were sent, after redaction. `evidence`: the spans are gone, so
    they were rebuilt from what explains the results.
    """
    complete: bool
    """Whether nothing was left out because it is too much."""
    resourceSpans: list[dict[str, Json]]  # noqa: N815 - the names of OTLP
    resourceLogs: list[dict[str, Json]]  # noqa: N815


class Problem(Model):
    """An error, as RFC 9457 describes it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str


def time_of(seconds: float) -> datetime:
    """The UTC time of Unix seconds."""
    return datetime.fromtimestamp(seconds, UTC)
