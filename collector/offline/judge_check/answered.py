"""Runs that people have answered, as labelled examples.

Only runs whose evidence is kept in full can be shown to a judge again: those that failed, and some
that passed. Answers about sessions are left out: the evidence of a session has no turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from pathgauge.collector.config import Config
from pathgauge.collector.config.feedback import Feedback
from pathgauge.collector.core.documents import ConfigError, Document, Problem
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.pairs import Pairing, people_say
from pathgauge.collector.offline.judge_check.examples import Example
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.evidence import table as evidence_rows
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import answered_runs
from pathgauge.collector.store.queries.reading import Reading, reading as reading_store
from pathgauge.collector.store.queries.stored_result import StoredResult
from pathgauge.collector.store.sql import Connection

MAX_SECONDS = 60.0
"""How long the store is read: no other reader waits for this process."""


def answered(config: Config, criteria: Sequence[str], others: Sequence[str]) -> tuple[Example, ...]:
    """One example for each answered run and each of the criteria that people say something about.
    What they say of `others` by name is about no other criterion. Raises `ConfigError` if there is
    no store that can be read, or no such run.
    """
    feedback = config.feedback or Feedback()
    pairing = Pairing(feedback.rules())
    now = time.time()
    since = now - feedback.window

    def said(run: StoredResult, given: Sequence[Answer]) -> dict[str, bool | None]:
        known = {*criteria, *others, *(one.name for one in run.criteria)}
        return {name: people_say(pairing.rules, given, name, known) for name in criteria}

    try:
        with _opening(config)() as connection:
            examples = tuple(
                example
                for run, given in answered_runs(connection, pairing, Clock(now), since)
                if run.session is None
                for example in _examples(connection, run, said(run, given))
            )
    except StoreError as error:
        raise ConfigError([Problem("", None, ("--feedback",), str(error))]) from error
    if not examples:
        text = (
            "found no invocation with an answer of people and with evidence in full, expected some:"
            " see docs/feedback.md"
        )
        raise ConfigError([Problem("", None, ("--feedback",), text)])
    return examples


def _opening(config: Config) -> Reading:
    if config.postgres is not None:
        # Its client is an optional package.
        from pathgauge.collector.store.postgres.reading import (  # noqa: PLC0415
            PostgresReading,
        )

        return PostgresReading(config.postgres.conninfo, MAX_SECONDS, keep_idle=False)
    if config.store is None:
        raise StoreError("found store: memory, expected a store on disk: feedback is kept there")
    folder = config.folder / config.store.path
    return lambda: reading_store(folder, MAX_SECONDS)


def _examples(
    connection: Connection, run: StoredResult, labels: Mapping[str, bool | None]
) -> Iterator[Example]:
    """One for each criterion with a label."""
    evidence = evidence_rows.find(connection, run.key)
    if evidence is None or evidence.cut:
        return
    document = Document("feedback", None)
    for name, label in labels.items():
        if label is not None:
            yield Example(
                f"{run.trace_id}/{run.span_id}",
                evidence.invocation,
                evidence.turn,
                label,
                name,
                document,
                (),
            )
