"""pathgauge itself: what it receives, refuses, keeps, drops and owes, and how its store and its
process are.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from generator import judges
from generator.panels import (
    BAD,
    FAIR,
    GOOD,
    ONE_IS_GOOD,
    ZERO_IS_GOOD,
    Panels,
    Steps,
    board,
    figure,
    graph,
    lines,
    listing,
)
from generator.queries import INSTANCE, JOB, OF_JOB, Query, datasource, increase, quantile, rate

LATE_IS_BAD: Steps = ((None, GOOD), (30, FAIR), (120, BAD))
COMMIT, LAG, DELAY = (
    "pathgauge_store_commit_duration_seconds",
    "pathgauge_evaluation_lag_seconds",
    "pathgauge_canary_delay_seconds",
)


def build() -> Dashboard:
    """The dashboard."""
    page = board(
        "pathgauge-operations",
        "pathgauge / Operations",
        "The collector itself: receivers, traces, pipeline, store and process.",
    )
    for variable in (datasource(), JOB, INSTANCE):
        page = page.with_variable(variable)
    rows = {
        "At a glance": _figures(),
        "Receivers": _receivers(),
        "From spans to invocations": _traces(),
        "From invocations to scores": _scores(),
        "Judges": judges.panels(),
        "Store": _store(),
        "Canary": _canary(),
        "Process": _process(),
    }
    return lines(page, rows)


def _figures() -> Panels:
    up = f"min(up{{{OF_JOB}}})"
    store = f'min(pathgauge_store_state{{{OF_JOB}, state="ok"}})'
    reload = f"min(pathgauge_config_last_reload_successful{{{OF_JOB}}})"
    canary = f"time() - min(pathgauge_canary_last_success_timestamp_seconds{{{OF_JOB}}})"
    refused = (
        f"sum(increase(pathgauge_receiver_requests_total{{{OF_JOB},"
        ' code!~"ok|disconnected"}[$__range])) or vector(0)'
    )
    return [
        figure(
            "Up",
            "1 when every collector chosen above can be scraped.",
            up,
            "none",
            ONE_IS_GOOD,
            states={0: ("down", BAD), 1: ("up", GOOD)},
        ),
        figure(
            "Stores",
            "Whether every store takes requests.",
            store,
            "none",
            ONE_IS_GOOD,
            states={0: ("refuses", BAD), 1: ("ok", GOOD)},
        ),
        figure(
            "Last reload",
            "Whether the last reload of configuration and references was put in force, everywhere.",
            reload,
            "none",
            ONE_IS_GOOD,
            states={0: ("refused", BAD), 1: ("ok", GOOD)},
        ),
        figure(
            "Last canary",
            "Since the longest-silent canary got its score; none without `canary:`.",
            canary,
            "s",
            LATE_IS_BAD,
        ),
        figure(
            "Oldest in backlog",
            "How long the oldest durable request has waited for the pipeline.",
            f"max(pathgauge_backlog_age_seconds{{{OF_JOB}}})",
            "s",
            LATE_IS_BAD,
        ),
        figure(
            "Requests not taken",
            "Export requests of the time range that were answered with anything but ok.",
            refused,
            "short",
            ZERO_IS_GOOD,
        ),
    ]


def _receivers() -> Panels:
    spans = rate("pathgauge_receiver_accepted_spans_total", OF_JOB, "transport, format")
    logs = rate("pathgauge_receiver_accepted_log_records_total", OF_JOB, "transport, format")
    return [
        graph(
            "Spans and log records acknowledged",
            "A second, by transport and format.",
            "cps",
            Query(spans, "spans {{transport}} {{format}}"),
            Query(logs, "logs {{transport}} {{format}}"),
        ),
        graph(
            "Answers to export requests",
            "Requests a second by answer. busy and failed come again; too_large, undecodable,"
            " unauthenticated and unsupported do not.",
            "reqps",
            Query(
                rate("pathgauge_receiver_requests_total", OF_JOB, "transport, code"),
                "{{transport}} {{code}}",
            ),
        ),
        graph(
            "Refused for good",
            "Spans and log records a second that were rejected, by reason.",
            "cps",
            Query(
                rate("pathgauge_receiver_refused_spans_total", OF_JOB, "reason"),
                "spans: {{reason}}",
            ),
            Query(
                rate("pathgauge_receiver_refused_log_records_total", OF_JOB, "reason"),
                "logs: {{reason}}",
            ),
        ),
        graph(
            "Redacted values",
            "Values a second that were redacted before anything was kept, by the rule that found"
            " them.",
            "cps",
            Query(
                rate("pathgauge_redacted_values_total", OF_JOB, "rule, action"),
                "{{rule}}: {{action}}",
            ),
        ),
    ]


def _traces() -> Panels:
    waiting = (
        ("open", "pathgauge_traces_open"),
        ("spilled", "pathgauge_traces_open_spilled"),
        ("retained", "pathgauge_traces_retained"),
    )
    return [
        graph(
            "Traces kept",
            "Open ones wait for spans, of spilled ones only the journal holds the spans, retained"
            " ones were read and wait for late spans.",
            "short",
            *(Query(f"sum({name}{{{OF_JOB}}})", legend) for legend, name in waiting),
        ),
        graph(
            "Traces completed",
            "A second, by what completed them. Anything but root_ended was read incomplete.",
            "cps",
            Query(rate("pathgauge_traces_completed_total", OF_JOB, "reason"), "{{reason}}"),
        ),
        graph(
            "Spans dropped",
            "Acknowledged spans and log records that became part of no trace, a second.",
            "cps",
            Query(rate("pathgauge_spans_dropped_total", OF_JOB, "reason"), "spans: {{reason}}"),
            Query(
                rate("pathgauge_log_records_dropped_total", OF_JOB, "reason"), "logs: {{reason}}"
            ),
        ),
        graph(
            "What telemetry lacks",
            "Invocations a second whose telemetry lacks something, such as messages that are not"
            " captured, by dialect.",
            "cps",
            Query(
                rate("pathgauge_invocation_flags_total", OF_JOB, "dialect, flag"),
                "{{dialect}}: {{flag}}",
            ),
        ),
    ]


def _scores() -> Panels:
    fill = (
        f"max by (queue) (pathgauge_queue_size{{{OF_JOB}}} / (pathgauge_queue_capacity{{{OF_JOB}}}"
        " > 0))"
    )
    return [
        graph(
            "Invocations read, scored and skipped",
            "A second. What is read is scored or skipped for a reason.",
            "cps",
            Query(rate("pathgauge_invocations_read_total", OF_JOB), "read"),
            Query(rate("pathgauge_invocations_scored_total", OF_JOB), "scored"),
            Query(
                rate("pathgauge_invocations_skipped_total", OF_JOB, "reason"), "skipped: {{reason}}"
            ),
        ),
        graph(
            "Invocations without reference",
            "A second, by reason.",
            "cps",
            Query(rate("pathgauge_invocations_unmatched_total", OF_JOB, "reason"), "{{reason}}"),
        ),
        graph(
            "Lag of evaluations",
            "From the end of an invocation until its scores are visible. Most of it is the wait for"
            " late spans, `assembly.settle`.",
            "s",
            Query(quantile(0.5, LAG, OF_JOB), "p50", exemplar=True),
            Query(quantile(0.99, LAG, OF_JOB), "p99", exemplar=True),
        ),
        graph(
            "Queues",
            "How full each queue is; at 100 % senders wait or are told to retry.",
            "percentunit",
            Query(fill, "{{queue}}"),
            most=1,
        ),
        graph(
            "Backlog of requests",
            "Durable requests that the pipeline has not taken in.",
            "short",
            Query(f"sum(pathgauge_backlog_requests{{{OF_JOB}}})", "requests"),
            width=6,
        ),
        graph(
            "Age of the backlog",
            "How long the oldest of them has been waiting.",
            "s",
            Query(f"max(pathgauge_backlog_age_seconds{{{OF_JOB}}})", "age"),
            width=6,
        ),
        graph(
            "Revisions and withdrawals",
            "Evaluations a second that late telemetry changed or took back.",
            "cps",
            Query(rate("pathgauge_evaluation_revisions_total", OF_JOB), "revised"),
            Query(rate("pathgauge_evaluations_withdrawn_total", OF_JOB), "withdrawn"),
            width=6,
        ),
        graph(
            "Evaluation events",
            "Events a second that the backend of `exporters.otlp` took, and those that were"
            " dropped, by reason.",
            "cps",
            Query(rate("pathgauge_events_exported_total", OF_JOB), "taken"),
            Query(rate("pathgauge_events_dropped_total", OF_JOB, "reason"), "dropped: {{reason}}"),
            width=6,
        ),
    ]


def _store() -> Panels:
    return [
        graph(
            "Duration of transactions",
            "99th percentile until a transaction was durable, by what it stored. Senders wait for"
            " those of requests.",
            "s",
            Query(quantile(0.99, COMMIT, OF_JOB, "kind"), "{{kind}}"),
        ),
        graph(
            "Journal",
            "Requests in the journal.",
            "short",
            Query(f"sum by (instance) (pathgauge_store_journal_rows{{{OF_JOB}}})", "{{instance}}"),
        ),
        graph(
            "Write-ahead log",
            "Size of the log of the database, which is brought into it all the time.",
            "bytes",
            Query(
                f"sum by (instance) (pathgauge_store_write_ahead_bytes{{{OF_JOB}}})", "{{instance}}"
            ),
        ),
        graph(
            "Damaged rows",
            "Rows that were set aside from one point to the next, because the disk damaged them.",
            "short",
            Query(
                increase("pathgauge_store_quarantined_rows_total", OF_JOB, "instance"),
                "{{instance}}",
            ),
        ),
    ]


def _canary() -> Panels:
    return [
        graph(
            "Canaries",
            "Small traces that the collector sends to itself, from one point to the next. lost:"
            " acknowledged, and no score in time.",
            "short",
            Query(increase("pathgauge_canary_traces_total", OF_JOB, "outcome"), "{{outcome}}"),
            stacked=True,
        ),
        graph(
            "Delay of canaries",
            "From sending a canary until its score is visible.",
            "s",
            Query(quantile(0.5, DELAY, OF_JOB), "p50"),
            Query(quantile(0.99, DELAY, OF_JOB), "p99"),
        ),
    ]


def _process() -> Panels:
    return [
        graph(
            "CPU",
            "Cores in use.",
            "none",
            Query(
                "sum by (instance)"
                f" (rate(process_cpu_seconds_total{{{OF_JOB}}}[$__rate_interval]))",
                "{{instance}}",
            ),
            width=8,
        ),
        graph(
            "Memory",
            "Resident memory.",
            "bytes",
            Query(f"sum by (instance) (process_resident_memory_bytes{{{OF_JOB}}})", "{{instance}}"),
            width=8,
        ),
        graph(
            "Series scraped",
            "Samples of a scrape, and how often a label became __other__ from one point to the"
            " next, by the limit that was reached.",
            "short",
            Query(f"sum by (instance) (scrape_samples_scraped{{{OF_JOB}}})", "{{instance}}"),
            Query(
                increase("pathgauge_series_overflow_total", OF_JOB, "limit"), "overflow: {{limit}}"
            ),
            width=8,
        ),
        listing(
            "Collectors",
            "What runs where.",
            {
                "value": (
                    (
                        "max by (job, instance, version, pythonversion)"
                        f" (pathgauge_build_info{{{OF_JOB}}})"
                    ),
                    "none",
                )
            },
            hidden=("Value",),
        ),
    ]
