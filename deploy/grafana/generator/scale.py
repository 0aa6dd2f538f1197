"""The dashboard about several processes: scorers, partitions, commits, the gauge, and costs.

Rows that do not apply stay empty: one process alone has no partitions, a cluster no scorer
processes of one parent.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard

from generator.panels import (
    BAD,
    FAIR,
    GOOD,
    ONE_IS_GOOD,
    PLAIN,
    ZERO_IS_GOOD,
    Panels,
    Steps,
    board,
    graph,
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

COMMIT = "pathgauge_store_commit_duration_seconds"
RESULTS = f'{OF_JOB}, kind="results"'
LAG_IS_BAD: Steps = ((None, GOOD), (1_000, FAIR), (100_000, BAD))


def build() -> Dashboard:
    """The dashboard."""
    dashboard = board(
        "pathgauge-scale",
        "pathgauge / Scale",
        "Several processes: scorers, partitions, commits, the gauge, and what they cost.",
    )
    for variable in (datasource(), JOB, INSTANCE, results_url()):
        dashboard = dashboard.with_variable(variable)
    rows = {
        "At a glance": _single_values(),
        "Partitions": _partitions(),
        "Commits and the gauge": _commits(),
        "Gateways": _gateways(),
        "Scorer processes of one machine": _processes(),
        "Unit costs": _costs(),
    }
    return with_rows(dashboard, rows)


def _single_values() -> Panels:
    fenced = f"sum(increase(pathgauge_partitions_fenced_total{{{OF_JOB}}}[$__range])) or vector(0)"
    return [
        single_value(
            "Gauge",
            "The number of processes that are the gauge. There must be one.",
            f"sum(pathgauge_gauge_active{{{OF_JOB}}})",
            "none",
            ((None, BAD), (1, GOOD), (2, BAD)),
        ),
        single_value(
            "Scorers with partitions",
            "Processes that have at least one partition.",
            f"count(count by (job, instance) (pathgauge_partition_lag_records{{{OF_JOB}}}))",
            "none",
            PLAIN,
        ),
        single_value(
            "Partitions with a scorer",
            "It must be as many as the topics have.",
            f"count(count by (job, partition) (pathgauge_partition_lag_records{{{OF_JOB}}}))",
            "none",
            PLAIN,
        ),
        single_value(
            "Largest lag",
            "Records of one partition that were not read.",
            f"max(pathgauge_partition_lag_records{{{OF_JOB}}})",
            "short",
            LAG_IS_BAD,
        ),
        single_value(
            "Gateways reach Kafka",
            "Whether every gateway reaches a broker.",
            f"min(pathgauge_kafka_up{{{OF_JOB}}})",
            "none",
            ONE_IS_GOOD,
            states={0: ("no", BAD), 1: ("yes", GOOD)},
        ),
        single_value(
            "Fenced partitions",
            "How often a scorer lost a partition in the time range before it had committed it.",
            fenced,
            "short",
            ZERO_IS_GOOD,
        ),
    ]


def _partitions() -> Panels:
    return [
        graph(
            "Lag of partitions",
            "Records in Kafka that were not read, by partition.",
            "short",
            Query(
                f"max by (partition) (pathgauge_partition_lag_records{{{OF_JOB}}})", "{{partition}}"
            ),
        ),
        graph(
            "Age of the backlog of partitions",
            "How long the oldest request that was read has waited to be processed, by partition.",
            "s",
            Query(
                f"max by (partition) (pathgauge_partition_backlog_age_seconds{{{OF_JOB}}})",
                "{{partition}}",
            ),
        ),
        graph(
            "Rebalances",
            "Partitions that each scorer was given between two points.",
            "short",
            Query(
                increase("pathgauge_partitions_assigned_total", OF_JOB, "instance"), "{{instance}}"
            ),
            width=8,
            stacked=True,
        ),
        graph(
            "Fenced partitions of scorers",
            "Partitions between two points that a scorer lost before it had committed them.",
            "short",
            Query(
                increase("pathgauge_partitions_fenced_total", OF_JOB, "instance"), "{{instance}}"
            ),
            width=8,
            stacked=True,
        ),
        graph(
            "Records skipped",
            "Records of Kafka per second that were not read, by reason.",
            "cps",
            Query(rate("pathgauge_kafka_records_skipped_total", OF_JOB, "reason"), "{{reason}}"),
            width=8,
        ),
    ]


def _commits() -> Panels:
    return [
        graph(
            "Commits",
            "Transactions of results per second, by process.",
            "ops",
            Query(rate(f"{COMMIT}_count", RESULTS, "instance"), "{{instance}}"),
        ),
        graph(
            "Duration of commits",
            "99th percentile of the duration of these transactions, by process.",
            "s",
            Query(quantile(0.99, COMMIT, RESULTS, "instance"), "{{instance}}"),
        ),
        graph(
            "Publications that no gauge has read",
            "What scorers have committed and the gauge does not show yet. It grows while no process"
            " is the gauge.",
            "short",
            Query(f"max(pathgauge_publications_unread{{{OF_JOB}}})", "unread"),
            width=8,
        ),
        graph(
            "Which process is the gauge",
            "1 for the process that publishes, 0 for those that wait to take over.",
            "none",
            Query(f"max by (instance) (pathgauge_gauge_active{{{OF_JOB}}})", "{{instance}}"),
            width=8,
            max_value=1,
        ),
        graph(
            "Takeovers",
            "How often a process became the gauge between two points.",
            "short",
            Query(increase("pathgauge_gauge_takeovers_total", OF_JOB, "instance"), "{{instance}}"),
            width=8,
            stacked=True,
        ),
    ]


def _gateways() -> Panels:
    return [
        graph(
            "Waiting for Kafka",
            "Size of the requests that wait to become durable, by gateway.",
            "bytes",
            Query(
                f"sum by (instance) (pathgauge_kafka_in_flight_bytes{{{OF_JOB}}})", "{{instance}}"
            ),
        ),
        graph(
            "Answers of gateways",
            "Export requests per second, by process and answer.",
            "reqps",
            Query(
                rate("pathgauge_receiver_requests_total", OF_JOB, "instance, code"),
                "{{instance}} {{code}}",
            ),
        ),
    ]


def _processes() -> Panels:
    return [
        graph(
            "Scorer processes that run",
            "1 while the process runs, with `workers`.",
            "none",
            Query(
                f"max by (instance, scorer) (pathgauge_scorer_up{{{OF_JOB}}})",
                "{{instance}} {{scorer}}",
            ),
            width=8,
            max_value=1,
        ),
        graph(
            "Restarts of scorer processes",
            "Scorer processes that ended and were started again between two points.",
            "short",
            Query(
                increase("pathgauge_scorer_restarts_total", OF_JOB, "instance, scorer"),
                "{{instance}} {{scorer}}",
            ),
            width=8,
            stacked=True,
        ),
        graph(
            "Age of the backlog of scorer processes",
            "How long the oldest request of each scorer has waited.",
            "s",
            Query(
                f"max by (instance, scorer) (pathgauge_scorer_backlog_age_seconds{{{OF_JOB}}})",
                "{{instance}} {{scorer}}",
            ),
            width=8,
        ),
    ]


def _costs() -> Panels:
    cpu = rate("process_cpu_seconds_total", OF_JOB, "job")
    spans = rate("pathgauge_receiver_accepted_spans_total", OF_JOB, "job")
    invocations = rate("pathgauge_invocations_read_total", OF_JOB, "job")
    commits = rate(f"{COMMIT}_count", RESULTS, "job")
    return [
        graph(
            "CPU per span",
            "CPU time of all scraped processes, divided by acknowledged spans. Scorer processes of"
            " `workers` are not scraped, so they are missing.",
            "s",
            Query(f"{cpu} / ({spans} > 0)", "{{job}}"),
            width=8,
        ),
        graph(
            "CPU per invocation",
            "CPU time of all scraped processes, divided by invocations.",
            "s",
            Query(f"{cpu} / ({invocations} > 0)", "{{job}}"),
            width=8,
        ),
        graph(
            "Invocations per commit",
            "Many share a commit when there is much traffic, which makes each of them cheaper.",
            "short",
            Query(f"{invocations} / ({commits} > 0)", "{{job}}"),
            width=8,
        ),
    ]
