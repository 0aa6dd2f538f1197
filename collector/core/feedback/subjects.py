"""Which run of a trace an answer is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from pathgauge.collector.core.feedback.answer import Answer

_Subject: TypeAlias = "tuple[str, str, str, str, str, str | None]"


class About(NamedTuple):
    """The answers about the runs of one trace."""

    runs: dict[str, list[Answer]]
    """By the span id of the run."""
    none: list[Answer]
    """About no single run."""


def about_runs(answers: Iterable[Answer], span_ids: Collection[str]) -> About:
    """An answer about a span is about the run of this span. An answer about the whole trace, or
    about a span within a run, is about the only run of the trace.
    """
    only = next(iter(span_ids)) if len(span_ids) == 1 else None
    found = About({}, [])
    for answer in answers:
        span_id = answer.span_id if answer.span_id in span_ids else only
        if span_id is None:
            found.none.append(answer)
        else:
            found.runs.setdefault(span_id, []).append(answer)
    return found


def newest(answers: Iterable[Answer]) -> Iterator[Answer]:
    """The newest answer of each person, subject and name; of those of one time, the last one."""
    found: dict[_Subject, Answer] = {}
    for answer in answers:
        key = (
            *(answer.tenant, answer.trace_id, answer.span_id, answer.conversation_id),
            *(answer.name, answer.rater),
        )
        known = found.get(key)
        if known is None or (answer.given_at or 0.0) >= (known.given_at or 0.0):
            found[key] = answer
    yield from found.values()
