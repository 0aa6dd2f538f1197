"""Whether a broker can be reached: decided by a question that nobody answers, not by an error.

librdkafka reports that all brokers are down whenever its last connection ends, also if the next
attempt succeeds: a broker closes idle connections, and the first of two addresses of a name may
refuse one. Such an error only makes the question come at once.
"""

from __future__ import annotations

import time
from collections import deque

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from pathgauge.collector.receivers.kafka import client

_log = structlog.get_logger(__name__)

_INTERVAL_S = 3.0
_TIMEOUT_S = 1.0
_LATE_ANSWERS = 3
"""After so many questions in a row without an answer in time, no broker can be reached. One is late
when the machine is busy.
"""
_KEPT_ERRORS = 10


class Contact:
    """What is known of the way to the brokers. For the thread that polls the client; `reason` is
    for any.
    """

    def __init__(self, topic: str) -> None:
        """`topic` is the one whose metadata is asked for."""
        self.reason = "no answer from a broker yet"
        """Why none can be reached; empty if one can."""
        self._topic = topic
        self._errors: deque[KafkaError] = deque(maxlen=_KEPT_ERRORS)
        self._ask_at = 0.0
        self._late = 0
        self._unanswered: KafkaException | None = None
        """What a question raised, until the next poll: only then the client hands over the errors
        that say why.
        """
        self._is_reported = False

    def failed(self, error: KafkaError) -> None:
        """Take an error that belongs to no single request."""
        self._errors.append(error)
        if client.is_unreachable(error) and not self.reason:
            self._ask_at = 0.0

    def made(self) -> None:
        """A broker has answered a request."""
        if self.reason:
            _log.info("a Kafka broker has been reached")
        self.reason = ""
        self._errors.clear()
        self._late, self._unanswered, self._is_reported = 0, None, False
        self._ask_at = time.monotonic() + _INTERVAL_S

    def check(self, asked: Producer | Consumer) -> None:
        """Ask for metadata if no broker has answered for a while: without requests nothing else
        shows that one is back. Blocks for a second at most. Call it after each poll.
        """
        if self._unanswered is not None:
            self._report(self._unanswered)
        if time.monotonic() < self._ask_at:
            return
        try:
            asked.list_topics(self._topic, timeout=_TIMEOUT_S)
        except KafkaException as error:
            self._take(error)
        else:
            self.made()

    def _take(self, error: KafkaException) -> None:
        if error.args[0].code() == KafkaError._TIMED_OUT:
            self._late += 1
            if self._late < _LATE_ANSWERS:
                return  # asked again at once
        self._unanswered = error
        self._ask_at = time.monotonic() + _INTERVAL_S

    def _report(self, error: KafkaException) -> None:
        self.reason = client.why(self._errors, error)
        self._unanswered = None
        if not self._is_reported:
            _log.error("no Kafka broker can be reached", reason=self.reason)
        self._is_reported = True
