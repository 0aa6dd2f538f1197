"""The dashboard about pathgauge itself: receivers, traces, pipeline, store and process."""

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
    graph,
    present_table,
    single_value,
    with_rows,
)
from generator.queries import (
    INSTANCE,
    JOB,
    OF_JOB,
    Query,
    datasource,
    increase,
    quantile,
    rate,
    results_url,
)

LATE_IS_BAD: Steps = ((None, GOOD), (30, FAIR), (120, BAD))
COMMIT, LAG, DELAY = (
    "pathgauge_store_commit_duration_seconds",
    "pathgauge_evaluation_lag_seconds",
    "pathgauge_canary_delay_seconds",
)


def build() -> Dashboard:
    """The dashboard."""
    dashboard = board(
        "pathgauge-operations",
        "pathgauge / Operations",
        "The collector itself: receivers, traces, pipeline, store and process.",
    )
    for variable in (datasource(), JOB, INSTANCE, results_url()):
        dashboard = dashboard.with_variable(variable)
    rows = {
        "At a glance": _single_values(),
        "Receivers": _receivers(),
        "From spans to invocations": _traces(),
        "From invocations to scores": _scores(),
        "Judges": judges.panels(),
        "Store": _store(),
        "Canary": _canary(),
        "Process": _process(),
    }
    return with_rows(dashboard, rows)


def _single_values() -> Panels:
    up = f"min(up{{{OF_JOB}}})"
    store = f'min(pathgauge_store_state{{{OF_JOB}, state="ok"}})'
    reload = f"min(pathgauge_config_last_reload_successful{{{OF_JOB}}})"
    canary = f"time() - min(pathgauge_canary_last_success_timestamp_seconds{{{OF_JOB}}})"
    refused = (
        f"sum(increase(pathgauge_receiver_requests_total{{{OF_JOB},"
        ' code!~"ok|disconnected"}[$__range])) or vector(0)'
    )
    return [
        single_value(
            "Up",
            "1 if every selected collector can be scraped.",
            up,
            "none",
            ONE_IS_GOOD,
            states={0: ("down", BAD), 1: ("up", GOOD)},
        ),
        single_value(
            "Stores",
            "Whether every store can be written.",
            store,
            "none",
            ONE_IS_GOOD,
            states={0: ("not ok", BAD), 1: ("ok", GOOD)},
        ),
        single_value(
            "Last reload",
            "Whether the last reload of configuration and references succeeded on every collector.",
            reload,
            "none",
            ONE_IS_GOOD,
            states={0: ("rejected", BAD), 1: ("ok", GOOD)},
        ),
        single_value(
            "Last canary",
            "Time since the last scored canary, of the collector where it is longest ago. Empty"
            " without `canary:`.",
            canary,
            "s",
            LATE_IS_BAD,
        ),
        single_value(
            "Oldest in backlog",
            "How long the oldest stored request has waited for the pipeline.",
            f"max(pathgauge_backlog_age_seconds{{{OF_JOB}}})",
            "s",
            LATE_IS_BAD,
        ),
        single_value(
            "Requests not accepted",
            "Export requests in the time range with an answer other than ok.",
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
            "Per second, by transport and format.",
            "cps",
            Query(spans, "spans {{transport}} {{format}}"),
            Query(logs, "logs {{transport}} {{format}}"),
        ),
        graph(
            "Answers to export requests",
            "Requests per second by answer. Senders retry after busy and failed, but not after"
            " too_large, undecodable, unauthenticated and unsupported.",
            "reqps",
            Query(
                rate("pathgauge_receiver_requests_total", OF_JOB, "transport, code"),
                "{{transport}} {{code}}",
            ),
        ),
        graph(
            "Rejected permanently",
            "Rejected spans and log records per second, by reason.",
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
            "Values per second that were redacted before anything was stored, by rule.",
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
            "Traces in memory and journal",
            "Open traces wait for spans. The spans of spilled traces are only in the journal."
            " Retained traces were scored and wait for late spans.",
            "short",
            *(Query(f"sum({name}{{{OF_JOB}}})", legend) for legend, name in waiting),
        ),
        graph(
            "Traces completed",
            "Per second, by reason. Traces completed for any reason but root_ended are incomplete.",
            "cps",
            Query(rate("pathgauge_traces_completed_total", OF_JOB, "reason"), "{{reason}}"),
        ),
        graph(
            "Spans dropped",
            "Acknowledged spans and log records per second that became part of no trace.",
            "cps",
            Query(rate("pathgauge_spans_dropped_total", OF_JOB, "reason"), "spans: {{reason}}"),
            Query(
                rate("pathgauge_log_records_dropped_total", OF_JOB, "reason"), "logs: {{reason}}"
            ),
        ),
        graph(
            "Incomplete telemetry",
            "Invocations per second whose telemetry lacks something, such as messages that were not"
            " captured, by dialect.",
            "cps",
            Query(
                rate("pathgauge_invocation_flags_total", OF_JOB, "dialect, flag"),
                "{{dialect}}: {{flag}}",
            ),
        ),
        graph(
            "Telemetry that no dialect understands",
            "Spans per second that speak of agents, models or tools, by instrumentation scope."
            " Agents of this framework are not evaluated, or only in part.",
            "cps",
            Query(rate("pathgauge_unread_scopes_total", OF_JOB, "scope"), "{{scope}}"),
        ),
        graph(
            "Lost telemetry",
            "Invocations per second that show that spans of them were lost, by agent and by the"
            " first sign. Scores that depend on the lost spans have no value.",
            "cps",
            Query(
                rate("pathgauge_lost_telemetry_total", OF_JOB, "tenant, agent, reason"),
                "{{agent}} {{tenant}}: {{reason}}",
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
            "Per second. Every invocation that is read is either scored or skipped.",
            "cps",
            Query(rate("pathgauge_invocations_read_total", OF_JOB), "read"),
            Query(rate("pathgauge_invocations_scored_total", OF_JOB), "scored"),
            Query(
                rate("pathgauge_invocations_skipped_total", OF_JOB, "reason"), "skipped: {{reason}}"
            ),
        ),
        graph(
            "Invocations without reference",
            "Per second, by reason.",
            "cps",
            Query(rate("pathgauge_invocations_unmatched_total", OF_JOB, "reason"), "{{reason}}"),
        ),
        graph(
            "Lag of evaluations",
            "From the end of an invocation until its scores are visible. Most of it is the quiet"
            " period, `assembly.settle`.",
            "s",
            Query(quantile(0.5, LAG, OF_JOB), "p50", exemplar=True),
            Query(quantile(0.99, LAG, OF_JOB), "p99", exemplar=True),
            width=8,
        ),
        graph(
            "Time of scorers",
            "Seconds per second that the scorer of each criterion uses, or waits in; together at"
            " most one for each process that scores. Judges hold up nobody, and do not count.",
            "none",
            Query(rate("pathgauge_scoring_seconds_total", OF_JOB, "metric"), "{{metric}}"),
            stacked=True,
            width=8,
        ),
        graph(
            "Queues",
            "Fill level of each queue. At 100 % senders wait or are told to retry.",
            "percentunit",
            Query(fill, "{{queue}}"),
            width=8,
            max_value=1,
        ),
        graph(
            "Backlog of requests",
            "Stored requests that the pipeline has not processed.",
            "short",
            Query(f"sum(pathgauge_backlog_requests{{{OF_JOB}}})", "requests"),
            width=6,
        ),
        graph(
            "Age of the backlog",
            "How long the oldest of these requests has waited.",
            "s",
            Query(f"max(pathgauge_backlog_age_seconds{{{OF_JOB}}})", "age"),
            width=6,
        ),
        graph(
            "Revisions and withdrawals",
            "Evaluations per second that late telemetry changed or withdrew.",
            "cps",
            Query(rate("pathgauge_evaluation_revisions_total", OF_JOB), "revised"),
            Query(rate("pathgauge_evaluations_withdrawn_total", OF_JOB), "withdrawn"),
            width=6,
        ),
        graph(
            "Evaluation events",
            "Events per second that the backend of `exporters.otlp` accepted, and those that were"
            " dropped, by reason.",
            "cps",
            Query(rate("pathgauge_events_exported_total", OF_JOB), "accepted"),
            Query(rate("pathgauge_events_dropped_total", OF_JOB, "reason"), "dropped: {{reason}}"),
            width=6,
        ),
    ]


def _store() -> Panels:
    return [
        graph(
            "Duration of transactions",
            "99th percentile of the commit duration, by what was stored. Senders wait for the"
            " commits of requests.",
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
            "Size of the write-ahead log of the database.",
            "bytes",
            Query(
                f"sum by (instance) (pathgauge_store_write_ahead_bytes{{{OF_JOB}}})", "{{instance}}"
            ),
        ),
        graph(
            "Damaged rows",
            "Rows between two points that were quarantined because they were damaged on the disk.",
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
            "Canary traces between two points, which the collector sends to itself. lost:"
            " acknowledged, but no score in time. In a cluster, gateways count those that are"
            " acknowledged.",
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
            "Samples per scrape, and how often a label was replaced by __other__ between two"
            " points, by limit.",
            "short",
            Query(f"sum by (instance) (scrape_samples_scraped{{{OF_JOB}}})", "{{instance}}"),
            Query(
                increase("pathgauge_series_overflow_total", OF_JOB, "limit"), "overflow: {{limit}}"
            ),
            width=8,
        ),
        present_table(
            "Collectors",
            "Running collectors and their versions.",
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
