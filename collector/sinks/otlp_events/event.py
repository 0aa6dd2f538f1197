"""Evaluations as `gen_ai.evaluation.result` events of the OpenTelemetry semantic conventions for
GenAI. Attributes outside the conventions start with `pathgauge.`.

Events contain nothing that agents or users said, except for the explanations of scorers, which may
quote it and are included only with `content`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pathgauge.collector.core.evaluations.conversations import (
    ConversationResult,
    ConversationScore,
)
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result
from pathgauge.collector.sinks.outcomes import OUTCOMES

Value = str | float | int

MAX_TEXT = 256
"""Longer names of senders are cut. In characters."""
MAX_EXPLANATION = 4096
"""Longer explanations are cut. In characters."""


class Event(NamedTuple):
    """One score."""

    at: float
    """Unix time."""
    trace_id: int
    """0 for the score of a conversation or a session, which has several traces."""
    span_id: int
    attributes: Mapping[str, Value]


def events_of(
    evaluation: Evaluation, now: float, *, content: bool = False, results_url: str | None = None
) -> list[Event]:
    """The scores of one invocation, each with the ids of its entry span, and with a link to its
    page below `results_url`.
    """
    invocation, reference = evaluation.invocation, evaluation.match.reference
    common: dict[str, Value | None] = {
        "gen_ai.agent.name": invocation.agent,
        "gen_ai.agent.version": invocation.agent_version,
        "gen_ai.conversation.id": invocation.conversation_id,
        "pathgauge.scenario.id": evaluation.scenario_id,
        "pathgauge.tenant": invocation.tenant or None,
        "pathgauge.evaluation.revision": evaluation.revision,
    }
    if results_url is not None:
        page = f"{results_url}/results/{invocation.trace_id}/{invocation.span_id}"
        common["pathgauge.result.url"] = page
    if reference is not None:
        common["pathgauge.reference.version"] = reference.version
    trace_id, span_id = int(invocation.trace_id, 16), int(invocation.span_id, 16)
    if evaluation.session is not None:
        trace_id = span_id = 0
        common["pathgauge.evaluation.level"] = "session"
    return [
        Event(now, trace_id, span_id, _known({**common, **_result(result, content)}))
        for result in evaluation.results
    ]


def events_of_conversation(result: ConversationResult, now: float) -> list[Event]:
    """The scores of a finished conversation."""
    common = {
        "gen_ai.agent.name": result.agent,
        "gen_ai.agent.version": result.agent_version,
        "gen_ai.conversation.id": result.conversation_id,
        "pathgauge.scenario.id": result.reference.scenario_id,
        "pathgauge.reference.version": result.reference.version,
        "pathgauge.tenant": result.tenant or None,
        "pathgauge.evaluation.level": "conversation",
    }
    return [
        Event(now, 0, 0, _known({**common, **_conversation_score(score)}))
        for score in result.scores
    ]


def _conversation_score(score: ConversationScore) -> dict[str, Value | None]:
    return {
        "gen_ai.evaluation.name": score.criterion.name,
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": OUTCOMES[score.criterion.verdict(score.value)],
        "pathgauge.evaluation.reason": "undefined" if score.value is None else None,
        "pathgauge.evaluation.threshold": _threshold(score.criterion),
        **_judge(score.criterion),
    }


def _result(result: Result, content: bool) -> dict[str, Value | None]:
    scorer, score = result.criterion.scorer, result.score
    attributes: dict[str, Value | None] = {
        "gen_ai.evaluation.name": result.criterion.name,
        "gen_ai.evaluation.score.label": OUTCOMES[result.verdict],
        "pathgauge.evaluation.reason": score.reason,
        "pathgauge.evaluation.threshold": _threshold(result.criterion),
        "pathgauge.scorer": f"{scorer.name} {scorer.version}",
        **_judge(result.criterion),
    }
    if score.value is not None:
        attributes["gen_ai.evaluation.score.value"] = float(score.value)
    if content and score.explanation:
        explanation = text(score.explanation, MAX_EXPLANATION)
        attributes["gen_ai.evaluation.explanation"] = explanation
    if result.verdict == "error":
        attributes["error.type"] = _error_type(score.explanation)
    return attributes


def _threshold(criterion: Criterion) -> float | None:
    """Always a double, also if the configuration has a whole number: backends fix the type."""
    return None if criterion.threshold is None else float(criterion.threshold)


def _judge(criterion: Criterion) -> dict[str, Value | None]:
    """Model and template of the judge. The conventions have no attribute for them:
    `gen_ai.request.model` is a model of the agent.
    """
    model, _, template = criterion.judge.rpartition("@")
    return {"pathgauge.judge.model": model or None, "pathgauge.judge.template": template or None}


def _error_type(explanation: str) -> str:
    """The class of the exception without its text. The conventions call unknown ones `_OTHER`."""
    name = explanation.partition(":")[0]
    return name if name.isidentifier() else "_OTHER"


def _known(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    """The attributes that have a value, with text that OTLP can encode."""
    known: dict[str, Value] = {}
    for key, value in attributes.items():
        if isinstance(value, str) and key != "gen_ai.evaluation.explanation":
            known[key] = text(value, MAX_TEXT)
        elif value is not None:
            known[key] = value
    return known


def text(value: str, max_length: int) -> str:
    """Cut to length. Lone surrogates are replaced, because UTF-8 cannot encode them."""
    return value[:max_length].encode("utf-8", "replace").decode()
