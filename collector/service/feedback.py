"""Connects feedback with the running engine: what is posted is redacted and stored, and what is
stored is compared with criteria from time to time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogRecordProto

from pathgauge.collector.api.feedback import FeedbackIntake
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.config import Config
from pathgauge.collector.config.feedback import Feedback
from pathgauge.collector.core.feedback.answer import DEFAULT_NAME, Answer, derived_id
from pathgauge.collector.core.feedback.pairs import Pairs
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Resource, Scope, encode_attributes
from pathgauge.collector.core.redaction import Redactor
from pathgauge.collector.service.components import build_redactor
from pathgauge.collector.service.engine import Engine
from pathgauge.collector.sinks.prometheus.agreement_gauges import AgreementGauges
from pathgauge.collector.sinks.prometheus.labels import TenantLabel
from pathgauge.collector.store import FeedbackOutcome, StoreError
from pathgauge.collector.store.essential import essential_task
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import pairs

_log = structlog.get_logger(__name__)

REFRESH_S = 15.0
_KEYS = {
    "name": "gen_ai.evaluation.name",
    "label": "gen_ai.evaluation.score.label",
    "comment": "gen_ai.evaluation.explanation",
    "id": "user.id",  # findings in it are hashed, as ids must stay different
}
"""The attributes under which redaction sees the texts of an answer, as if it had come by OTLP."""
_CONVERSATION_KEYS = ("gen_ai.conversation.id", "session.id")
"""Those of a conversation. A rule may be about one of them only."""


def build_intake(
    config: Config, engine: Engine, telemetry: InternalTelemetry
) -> FeedbackIntake | None:
    """Takes answers of people; `None` if they are switched off, or if no results are kept."""
    if config.feedback is None or config.store is None:
        return None
    redactor = build_redactor(config)

    def record(answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        clean = answers if redactor is None else [redacted(redactor, one) for one in answers]
        return engine.record_feedback(clean)

    return FeedbackIntake(record, tenants_of(config), telemetry.feedback_requests.add)


def conversation_ids(config: Config) -> Callable[[str, str | None], Collection[str]]:
    """Finds the ids under which a conversation may be stored: people ask by the id that they know,
    programs also by the one that an answer has.
    """
    redactor = build_redactor(config)
    tenants = tenants_of(config)

    def find(name: str, tenant: str | None) -> Collection[str]:
        found = {name: None}
        if redactor is not None:
            for one in sorted(tenants) if tenant is None else [tenant]:
                with suppress(ProblemError):
                    asked = redacted(redactor, Answer(one, "", conversation_id=name))
                    found[asked.conversation_id] = None
        return found

    return find


def tenants_of(config: Config) -> frozenset[str]:
    """The configured tenants; one without a name if there are none."""
    return frozenset(config.auth.tenants if config.auth is not None else {""})


def redacted(redactor: Redactor, answer: Answer) -> Answer:
    """The answer without what the rules of its tenant remove. Its rater is not stored anyway.
    Raises `ProblemError` if that is the conversation which it is about.
    """
    texts = {key: getattr(answer, field) for field, key in _KEYS.items()}
    texts |= dict.fromkeys(_CONVERSATION_KEYS, answer.conversation_id)
    proto = LogRecordProto(
        trace_id=b"\x01" * 16,
        attributes=encode_attributes({key: text for key, text in texts.items() if text}),
    )
    record = LogRecord(proto.SerializeToString(), Resource(), Scope(), answer.tenant)
    found = redactor.logs([record]).records[0].attributes
    return replace(
        answer,
        conversation_id=_conversation(found, answer.conversation_id),
        name=found.get(_KEYS["name"]) or DEFAULT_NAME,
        label=found.get(_KEYS["label"]),
        comment=found.get(_KEYS["comment"]),
        # Different ids must stay different, even if each is removed.
        id=found.get(_KEYS["id"]) or (answer.id and derived_id(answer.id)),
    )


def _conversation(found: Mapping[str, Any], given: str) -> str:
    """The id under which telemetry has this conversation. Raises `ProblemError` if it has none."""
    ids = [str(found[key]) for key in _CONVERSATION_KEYS if found.get(key)]
    if given and not ids:
        raise ProblemError(409, "conversation_id: redaction removes it, so nothing is about it")
    return next((one for one in ids if one != given), given)


class AgreementRefresh:
    """Sets the gauges about the agreement every few seconds, from `start` to `stop`."""

    def __init__(
        self, config: Config, engine: Engine, sources: Sources, thread: QueryThread
    ) -> None:
        section = config.feedback or Feedback()
        self._engine = engine
        self._sources = sources
        self._thread = thread
        self._tenants = tenants_of(config)
        self._gauges = AgreementGauges(
            TenantLabel(len(self._tenants) > 1), section.min_kappa, section.min_pairs
        )
        engine.registry.register(self._gauges)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the event loop."""
        self._task = essential_task(self._run(), "agreement")

    async def stop(self) -> None:
        """End. Safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            try:
                await self._refresh()
            except (ProblemError, StoreError) as error:  # the next time may succeed
                _log.warning("the agreement with people cannot be measured", reason=str(error))
            except Exception:
                _log.exception("the agreement with people cannot be measured")
            await asyncio.sleep(REFRESH_S)

    async def _refresh(self) -> None:
        if self._engine.inactive():
            self._gauges.set(None)
        else:
            self._gauges.set(await self._thread.run(self._measure))

    def _measure(self) -> Pairs:
        reading = self._sources.reading
        assert reading is not None
        now = time.time()
        clock = Clock(now, self._sources.session_bounds)
        since = now - self._sources.feedback_window
        with reading() as connection:
            found = pairs(connection, self._sources.verdict_rules, clock, since)
        found.tables = {
            key: table for key, table in found.tables.items() if key.tenant in self._tenants
        }
        return found
