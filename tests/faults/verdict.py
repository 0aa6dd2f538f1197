"""Compares the records of the sender with the results and metrics of the collector. Each broken
guarantee becomes a sentence.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from pathgauge.collector.config.active import ActiveConfig
from support.running import PATIENCE_S, until

from .restarted import Series
from .sender import Record
from .traffic import Request
from .truth import Seen, Truth, known, truth

_SHOWN = 3


def decreases(before: Series, after: Series) -> list[str]:
    """Counts that decreased or vanished over a restart. Series are shown at 0 before they are
    stored, so one at 0 may vanish.
    """
    return [
        f"{name} {dict(labels)} went from {value:g} to {after.get((name, labels))}"
        for (name, labels), value in before.items()
        if after.get((name, labels), 0) < value
    ]


class Collected(Protocol):
    """What was collected by one process or by several."""

    setup: ActiveConfig
    settled_s: float
    """Longer than it collects events before it publishes them."""

    def has_read(self, spans: int, traces: int) -> bool:
        """Whether so many spans were accepted, so many traces read, and none is open."""
        ...

    def counts(self) -> Series:
        """All counts that must survive a restart."""
        ...

    def stop(self) -> int:
        """Stop all processes; returns the worst exit status."""
        ...

    def seen(self) -> Seen:
        """The results on disk, when all processes have stopped."""
        ...


def judge(
    collector: Collected,
    record: Record,
    patience: float = PATIENCE_S,
    *,
    retired: bool = False,
    several_scorers: bool = False,
) -> list[str]:
    """Wait until the running collector has read everything, stop it, and compare its results with
    the expected ones. `retired`: by the wall clock, agents were silent for so long that their
    series started again. `several_scorers`: there were some at times, so that a part of a refused
    request may be stored, and numbers of revisions may be left out.
    """
    right = truth(
        (span for request in _taken(record) for span in request.spans()),
        collector.setup,
    )
    until(lambda: collector.has_read(record.acked_spans, right.traces), patience)
    counted = _settled(collector)
    status = collector.stop()
    found = collector.seen()
    breaches = [f"stopped with status {status}"] if status else []
    breaches += record.wrong[:_SHOWN]
    breaches += compare_results(right, found)
    breaches += _compare_ledger(right, found, record, counted, several_scorers=several_scorers)
    if not retired:
        breaches += _compare_series(found, counted)
    return breaches


def _settled(collector: Collected) -> Series:
    """The counts after they have stopped changing."""
    counted = collector.counts()
    while True:
        time.sleep(collector.settled_s)
        before, counted = counted, collector.counts()
        if before == counted:
            return counted


def compare_results(right: Truth, found: Seen) -> list[str]:
    """Invocations whose newest result is missing, wrong or unexpected."""
    breaches = []
    missing, unasked = right.said.keys() - found.said.keys(), found.said.keys() - right.said.keys()
    wrong = [
        key for key in right.said.keys() & found.said.keys() if right.said[key] != found.said[key]
    ]
    for what, keys in (
        ("have no result", missing),
        ("have a wrong result", wrong),
        ("have a result and should not", unasked),
    ):
        if keys:
            some = [
                (key, right.said.get(key), found.said.get(key)) for key in sorted(keys)[:_SHOWN]
            ]
            breaches.append(f"{len(keys)} of {len(right.said)} invocations {what}: {some}")
    if found.damaged or found.quarantined:
        breaches.append(f"{found.damaged} damaged results, {found.quarantined} rows in quarantine")
    return breaches


def _taken(record: Record) -> list[Request]:
    """The requests in the journal. The sender retries, so requests without an answer were
    acknowledged later, or dropped.
    """
    return list(record.acked.values())


def _compare_ledger(
    right: Truth, found: Seen, record: Record, counted: Series, *, several_scorers: bool
) -> Iterator[str]:
    totals: Counter[str] = Counter()
    for (name, _), value in counted.items():
        totals[name.removeprefix("pathgauge_")] += int(value)
    accepted = totals["receiver_accepted_spans_total"]
    unknown = record.unanswered_spans + (record.refused_spans if several_scorers else 0)
    if not record.acked_spans <= accepted <= record.acked_spans + unknown:
        yield (
            f"{accepted} spans counted as accepted, {record.acked_spans} were acknowledged,"
            f" {unknown} unanswered"
        )
    firsts = {
        name: int(value)
        for name, value in (
            ("spans_assembled_total", right.spans),
            ("spans_dropped_total", accepted - right.spans),
            ("traces_opened_total", right.traces),
            ("traces_completed_total", right.traces),
            ("invocations_read_total", found.invocations),
            ("evaluations_withdrawn_total", found.withdrawn),
        )
    }
    if not several_scorers:
        firsts["evaluation_revisions_total"] = found.revisions
    for name, value in firsts.items():
        if totals[name] != value:
            yield f"{name} is {totals[name]}, expected {value}"
    scored = totals["invocations_scored_total"] + totals["invocations_skipped_total"]
    if scored != found.invocations:
        yield (
            f"{scored} invocations counted as scored or skipped, {found.invocations} were evaluated"
        )


def _compare_series(found: Seen, counted: Series) -> Iterator[str]:
    invocations = sum(
        value for (name, _), value in counted.items() if name == "pathgauge_invocations_total"
    )
    if invocations != found.invocations:
        yield f"pathgauge_invocations_total is {invocations:g}, expected {found.invocations}"
    verdicts = _verdicts(counted)
    if verdicts != found.firsts:
        yield (
            f"verdicts counted that were not given first: {verdicts - found.firsts}; given and not"
            f" counted: {found.firsts - verdicts}"
        )


def _verdicts(counted: Series) -> Counter[tuple[str, str, str, str]]:
    verdicts: Counter[tuple[str, str, str, str]] = Counter()
    for (name, pairs), value in counted.items():
        if name == "pathgauge_evaluations_total" and value:
            labels = dict(pairs)
            verdicts[
                labels["agent"], known(labels["scenario"]), labels["metric"], labels["outcome"]
            ] += int(value)
    return verdicts
