"""Compares the records of the sender with the results and metrics of the collector. Each broken
guarantee becomes a sentence.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from support.running import until

from .restarted import RestartedCollector, Series
from .sender import Record
from .traffic import Request
from .truth import Seen, Truth, known, seen, truth

PATIENCE_S = 20.0
SETTLED_S = 1.0
"""Longer than the collector collects events before it publishes them."""
_SHOWN = 3


def decreases(before: Series, after: Series) -> list[str]:
    """Counts that decreased or vanished over a restart."""
    return [
        f"{name} {dict(labels)} went from {value:g} to {after.get((name, labels))}"
        for (name, labels), value in before.items()
        if after.get((name, labels), -1) < value
    ]


def judge(
    collector: RestartedCollector,
    record: Record,
    patience: float = PATIENCE_S,
    *,
    retired: bool = False,
) -> list[str]:
    """Wait until the running collector has read everything, stop it, and compare its results with
    the expected ones. `retired`: by the wall clock, agents were silent for so long that their
    series started again.
    """
    right = truth(
        (span for request in _taken(record) for span in request.spans()),
        collector.setup,
    )
    until(lambda: collector.has_read(record.acked_spans, right.traces), patience)
    counted = _settled(collector)
    status = collector.stop()
    found = seen(collector.store)
    breaches = [f"stopped with status {status}"] if status else []
    breaches += record.wrong[:_SHOWN]
    breaches += compare_results(right, found)
    breaches += _compare_ledger(right, found, record, counted)
    if not retired:
        breaches += _compare_series(found, counted)
    return breaches


def _settled(collector: RestartedCollector) -> Series:
    """The counts after they have stopped changing."""
    counted = collector.counts()
    while True:
        time.sleep(SETTLED_S)
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


def _compare_ledger(right: Truth, found: Seen, record: Record, counted: Series) -> Iterator[str]:
    totals: Counter[str] = Counter()
    for (name, _), value in counted.items():
        totals[name.removeprefix("pathgauge_")] += int(value)
    accepted = totals["receiver_accepted_spans_total"]
    if not record.acked_spans <= accepted <= record.acked_spans + record.unanswered_spans:
        yield (
            f"{accepted} spans counted as accepted, {record.acked_spans} were acknowledged,"
            f" {record.unanswered_spans} unanswered"
        )
    firsts = {
        name: int(value)
        for name, value in (
            ("spans_assembled_total", right.spans),
            ("spans_dropped_total", accepted - right.spans),
            ("traces_opened_total", right.traces),
            ("traces_completed_total", right.traces),
            ("invocations_read_total", found.invocations),
            ("evaluation_revisions_total", found.revisions),
            ("evaluations_withdrawn_total", found.withdrawn),
        )
    }
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
