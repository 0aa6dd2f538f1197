"""The expected results: acknowledged spans are scored by the core, all at once and in memory."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, resolve
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Withdrawn
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.store.schema import checksum
from support.dialects import INSTALLED

from .traffic import CRITERIA, REFERENCES

Key: TypeAlias = tuple[str, str]
"""Trace id and span id of the entry agent."""

_UNBOUNDED = Bounds(
    max_trace_spans=sys.maxsize,
    max_trace_bytes=sys.maxsize,
    max_open_bytes=sys.maxsize,
    max_retained_bytes=sys.maxsize,
)


@dataclass(frozen=True, slots=True)
class Said:
    """The result of one invocation."""

    agent: str
    scenario: str
    scores: tuple[tuple[str, float | None, str | None, str], ...]
    """Criterion, value, reason and verdict of each."""
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """The expected results for all acknowledged spans."""

    said: dict[Key, Said]
    spans: int
    """Different ones."""
    traces: int


def setup(folder: Path) -> ActiveConfig:
    """The criteria and references of `traffic`; writes the files that a collector needs of them."""
    (folder / "references.yaml").write_text(json.dumps(REFERENCES))
    return resolve(Config(references=(str(folder / "references.yaml"),), criteria=CRITERIA))


def truth(spans: Iterable[Span], setup: ActiveConfig) -> Truth:
    """The results of a collector that receives all of `spans` at once."""
    different = {(span.trace_id, span.span_id): span for span in spans}
    pipeline = Pipeline(
        INSTALLED, setup.evaluator, setup.references, InternalTelemetry(), _UNBOUNDED
    )
    said: dict[Key, Said] = {}
    for outcome in [*pipeline.feed(different.values(), (), 0.0), *pipeline.drain(0.0)]:
        if isinstance(outcome, Evaluation):
            said[outcome.key[1:]] = _of_evaluation(outcome)
        elif isinstance(outcome, Withdrawn):
            del said[outcome.key[1:]]
    return Truth(said, len(different), len({trace_id for trace_id, _ in different}))


def _of_evaluation(evaluation: Evaluation) -> Said:
    invocation, reference = evaluation.invocation, evaluation.match.reference
    scores = tuple(
        (one.criterion.name, one.score.value, one.score.reason, one.verdict)
        for one in evaluation.results
    )
    scenario = invocation.scenario_id if reference is None else reference.scenario_id
    return Said(invocation.agent or "", scenario or "", scores, tuple(sorted(invocation.flags)))


@dataclass(slots=True)
class Seen:
    """The results that a stopped collector has on disk."""

    said: dict[Key, Said] = field(default_factory=dict)
    """The newest revision of each invocation that was not withdrawn."""
    firsts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """Number of first verdicts by agent, scenario, criterion and outcome."""
    invocations: int = 0
    """All invocations that were ever evaluated."""
    revisions: int = 0
    withdrawn: int = 0
    quarantined: int = 0
    requests: int = 0
    """The number of all requests that were ever in the journal."""
    damaged: int = 0
    """Results with a wrong checksum."""

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add the rows of `SELECT_RESULTS`."""
        for *values, crc, withdrawn in rows:
            _, trace_id, span_id, revision, _, agent, scenario, body = values
            if crc != checksum(*values):
                self.damaged += 1
                continue
            said = _of_row(agent, scenario, json.loads(body))
            if revision == 0:
                self.invocations += 1
                self.withdrawn += withdrawn
                for name, _, _, verdict in said.scores:
                    self.firsts[agent, known(scenario), name, _OUTCOMES.get(verdict, verdict)] += 1
            else:
                self.revisions += revision  # of those before it, none is kept
            if not withdrawn:
                self.said[trace_id, span_id] = said


_KNOWN = {reference["scenario"] for reference in REFERENCES}
_OUTCOMES = {"passed": "pass", "failed": "fail"}


def seen_rows(rows: Iterable[Sequence[Any]]) -> Seen:
    """Read the results of another database."""
    found = Seen()
    found.add(rows)
    return found


SELECT_RESULTS = (
    "SELECT tenant, trace_id, span_id, revision, at, agent, scenario, body, crc, withdrawn"
    " FROM results ORDER BY revision"
)


def seen(folder: Path) -> Seen:
    """Read the results of the store in `folder`, which no process has open."""
    found = Seen()
    connection = sqlite3.connect(f"file:{folder / 'pathgauge.db'}?mode=ro", uri=True)
    try:
        found.add(connection.execute(SELECT_RESULTS))
        [found.quarantined] = connection.execute("SELECT count(*) FROM quarantine").fetchone()
        meta = dict(connection.execute("SELECT name, value FROM meta"))
        [last] = connection.execute("SELECT max(id) FROM journal").fetchone()
        found.requests = max(int(meta.get("row", 0)), last or 0)
    finally:
        connection.close()
    return found


def known(scenario: str) -> str:
    """The scenario if it has a reference; all others share one label value."""
    return scenario if scenario in _KNOWN else ""


def _of_row(agent: str, scenario: str, body: dict[str, Any]) -> Said:
    scores = tuple(
        (one["name"], one["value"], one["reason"], one["verdict"]) for one in body["criteria"]
    )
    return Said(agent, scenario, scores, tuple(body["flags"]))
