"""Evaluations as standard events: an evaluation or a finished conversation comes in, an `Event` for
each score goes out.

The event is `gen_ai.evaluation.result` of the OpenTelemetry semantic conventions for GenAI;
attributes that these do not know begin with `pathgauge.`. Nothing that agents or users said is in
it, unless `content` lets the explanations of scorers out, which may quote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result
from pathgauge.collector.sinks.prometheus.evaluation_metrics import OUTCOMES

Value = str | float | int

LONGEST_TEXT = 256
"""Longer names of senders are cut."""
LONGEST_EXPLANATION = 4096


class Event(NamedTuple):
    """One score."""

    at: float
    """In Unix seconds."""
    trace_id: int
    """0 for the score of a conversation, which belongs to no single trace."""
    span_id: int
    attributes: Mapping[str, Value]


def events_of(evaluation: Evaluation, now: float, *, content: bool = False) -> list[Event]:
    """The scores of one invocation, each at its anchor span."""
    invocation, reference = evaluation.invocation, evaluation.match.reference
    trace_id, span_id = int(invocation.trace_id, 16), int(invocation.span_id, 16)
    common = _said(
        {
            "gen_ai.agent.name": invocation.agent,
            "gen_ai.agent.version": invocation.agent_version,
            "gen_ai.conversation.id": invocation.conversation_id,
            "pathgauge.scenario.id": invocation.scenario_id
            if reference is None
            else reference.scenario_id,
            "pathgauge.reference.version": None if reference is None else reference.version,
            "pathgauge.tenant": invocation.tenant or None,
            "pathgauge.evaluation.revision": evaluation.revision,
        }
    )
    return [
        Event(now, trace_id, span_id, {**common, **_result(result, content)})
        for result in evaluation.results
    ]


def events_of_case(case: ConversationResult, now: float) -> list[Event]:
    """The scores of a finished conversation."""
    common = _said(
        {
            "gen_ai.agent.name": case.agent,
            "gen_ai.agent.version": case.agent_version,
            "gen_ai.conversation.id": case.conversation_id,
            "pathgauge.scenario.id": case.reference.scenario_id,
            "pathgauge.reference.version": case.reference.version,
            "pathgauge.tenant": case.tenant or None,
            "pathgauge.evaluation.level": "conversation",
        }
    )
    return [
        Event(now, 0, 0, {**common, **_said({
            "gen_ai.evaluation.name": score.criterion.name,
            "gen_ai.evaluation.score.value": score.value,
            "gen_ai.evaluation.score.label": OUTCOMES[score.criterion.verdict(score.value)],
            "pathgauge.evaluation.threshold": score.criterion.threshold,
            **_judge(score.criterion),
        })})
        for score in case.scores
    ]  # fmt: skip


def _result(result: Result, content: bool) -> dict[str, Value]:
    scorer, score = result.criterion.scorer, result.score
    return _said(
        {
            "gen_ai.evaluation.name": result.criterion.name,
            "gen_ai.evaluation.score.value": None if score.value is None else float(score.value),
            "gen_ai.evaluation.score.label": OUTCOMES[result.verdict],
            "gen_ai.evaluation.explanation": text(score.explanation, LONGEST_EXPLANATION) or None
            if content
            else None,
            "error.type": _error_type(score.explanation) if result.verdict == "error" else None,
            "pathgauge.evaluation.reason": score.reason,
            "pathgauge.evaluation.threshold": result.criterion.threshold,
            "pathgauge.scorer": f"{scorer.name} {scorer.version}",
            **_judge(result.criterion),
        }
    )


def _judge(criterion: Criterion) -> dict[str, str | None]:
    """Who judged, which the conventions have no words for: `gen_ai.request.model` is a model of the
    agent.
    """
    model, _, template = criterion.judge.rpartition("@")
    return {"pathgauge.judge.model": model or None, "pathgauge.judge.template": template or None}


def _error_type(explanation: str) -> str:
    """The class of the exception, without its text; the conventions call everything else `_OTHER`."""
    name = explanation.partition(":")[0]
    return name if name.isidentifier() else "_OTHER"


def _said(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    """What is known. Text is cut, and has no half of a surrogate pair, which OTLP cannot hold."""
    return dict(_known(attributes.items()))


def _known(attributes: Iterable[tuple[str, Value | None]]) -> Iterator[tuple[str, Value]]:
    for key, value in attributes:
        if isinstance(value, str) and not key.endswith("explanation"):
            yield key, text(value, LONGEST_TEXT)
        elif value is not None:
            yield key, value


def text(value: str, longest: int) -> str:
    """Cut to length, as UTF-8 can hold it."""
    return value[:longest].encode("utf-8", "replace").decode()
