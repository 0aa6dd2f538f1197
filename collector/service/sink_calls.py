"""Calls sinks, so that the failure of one does not affect the others."""

from __future__ import annotations

import structlog

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.pipeline_events import Judged, PublishedEvent, Withdrawn
from pathgauge.collector.core.sink import Sink

_log = structlog.get_logger(__name__)


def publish(sink: Sink, event: PublishedEvent, now: float) -> None:
    """Pass an event to a sink; `now` is in Unix seconds. Sinks get no feedback of people,
    and nothing of shadows.
    """
    try:
        if isinstance(event, Evaluation):
            sink.publish(event, now)
        elif isinstance(event, Judged):
            sink.publish_judged(event, now)
        elif isinstance(event, ConversationResult):
            sink.publish_conversation(event, now)
        elif isinstance(event, Withdrawn):
            sink.withdraw(event.key)
    except KeyboardInterrupt:
        raise
    except BaseException:
        _log.exception("sink failed", sink=_name(sink))


def close(sink: Sink) -> None:
    """Close a sink."""
    try:
        sink.close()
    except KeyboardInterrupt:
        raise
    except BaseException:
        _log.exception("sink could not be closed", sink=_name(sink))


def _name(sink: Sink) -> str:
    return getattr(sink, "name", type(sink).__name__)
