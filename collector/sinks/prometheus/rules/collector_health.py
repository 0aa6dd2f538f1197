"""Rules about the collector itself: whether it runs, takes what is sent, and keeps it."""

from __future__ import annotations

from collections.abc import Iterator

from pathgauge.collector.sinks.prometheus.rules.expressions import added
from pathgauge.collector.sinks.prometheus.rules.options import Choices
from pathgauge.collector.sinks.prometheus.rules.rule import Alert, Group

_INSTANCE = "{{ $labels.instance }}"
_PERCENT = "{{ $value | humanizePercentage }}"
_REFUSED = "unauthenticated|undecodable|too_large|unsupported|too_slow|partial_success"


def groups(choices: Choices) -> Iterator[Group]:
    """One group of alerts."""
    yield Group(
        "pathgauge.operation.alerts",
        (*_running(choices), *_receiving(), *_keeping(), _canary(), _overflow(), _watchdog()),
    )


def _running(choices: Choices) -> Iterator[Alert]:
    yield Alert(
        "PathgaugeCollectorDown",
        f'absent(up{{job="{choices.job}"}} == 1)',
        "critical",
        "5m",
        "No collector is up, so that nothing is scored and no other alert of pathgauge can fire.",
        f"Prometheus can scrape no target of the job {choices.job}.",
        {"job": choices.job},
    )
    yield Alert(
        "PathgaugeInstanceDown",
        f'up{{job="{choices.job}"}} == 0',
        "warning",
        "5m",
        "A collector is down.",
        f"Prometheus cannot scrape {_INSTANCE} of the job {{{{ $labels.job }}}}.",
    )
    yield Alert(
        "PathgaugeConfigReloadFailed",
        "max by (job, instance) (pathgauge_config_last_reload_successful) == 0",
        "warning",
        "5m",
        "A changed configuration or reference file was refused.",
        f"{_INSTANCE} goes on with the configuration that was in force before.",
    )


def _receiving() -> Iterator[Alert]:
    yield _answers(
        "PathgaugeReceiverRefusing",
        (_REFUSED, 0.01, "15m"),
        "Senders are refused for good, so that their spans are lost.",
        "are answered {{ $labels.code }}.",
    )
    yield _answers(
        "PathgaugeReceiverBusy",
        ("busy|failed", 0.05, "10m"),
        "Senders are told to try again; they drop spans when that lasts.",
        "are answered {{ $labels.code }}.",
    )
    dropped = added(
        "job, reason", 'pathgauge_spans_dropped_total{reason!~"duplicate|purged"}', "30m"
    )
    accepted = added("job", "pathgauge_receiver_accepted_spans_total", "30m")
    yield Alert(
        "PathgaugeSpansDropped",
        f"{dropped} / on (job) group_left () {accepted} > 0.01",
        "warning",
        "15m",
        "Acknowledged spans became part of no trace.",
        f"{_PERCENT} of the spans were dropped ({{{{ $labels.reason }}}}).",
    )


def _answers(name: str, answers: tuple[str, float, str], summary: str, ending: str) -> Alert:
    codes, share, wait = answers
    requests = "pathgauge_receiver_requests_total"
    counted = added("job, transport, code", f'{requests}{{code=~"{codes}"}}', "10m")
    expr = (
        f"{counted} / on (job, transport) group_left () {added('job, transport', requests, '10m')}"
        f" > {share:g}"
    )
    return Alert(
        name,
        expr,
        "warning",
        wait,
        summary,
        f"{_PERCENT} of the requests over {{{{ $labels.transport }}}} {ending}",
    )


def _keeping() -> Iterator[Alert]:
    yield Alert(
        "PathgaugeStoreNotOk",
        'max by (job, instance, state) (pathgauge_store_state{state!="ok"}) == 1',
        "critical",
        "2m",
        "The store cannot be written, so that senders are told to try again.",
        f"The store of {_INSTANCE} is {{{{ $labels.state }}}}.",
    )
    yield Alert(
        "PathgaugeStoreDamaged",
        f"{added('job, instance', 'pathgauge_store_quarantined_rows_total', '1h')} > 0",
        "warning",
        "0s",
        "Damaged rows of the store were set aside.",
        f'{{{{ printf "%.0f" $value }}}} rows in the store of {_INSTANCE} were damaged within an'
        " hour.",
    )
    yield Alert(
        "PathgaugeBacklogOld",
        "max by (job, instance) (pathgauge_backlog_age_seconds) > 15",
        "warning",
        "10m",
        "Scores come late, as the pipeline is slower than the senders.",
        f"The oldest request that {_INSTANCE} has acknowledged and not read is {{{{ $value |"
        " humanizeDuration }} old.",
    )


def _canary() -> Alert:
    failing = added("job, instance", 'pathgauge_canary_traces_total{outcome!="ok"}', "10m")
    return Alert(
        "PathgaugeCanaryFailing",
        f"{failing} / {added('job, instance', 'pathgauge_canary_traces_total', '10m')} > 0.5",
        "critical",
        "5m",
        "The collector does not score the traces that it sends to itself.",
        f"{_PERCENT} of the canaries of {_INSTANCE} were refused or got no score.",
    )


def _overflow() -> Alert:
    return Alert(
        "PathgaugeSeriesOverflow",
        f"{added('job, limit', 'pathgauge_series_overflow_total', '1h')} > 0",
        "info",
        "15m",
        "Names became `__other__`, as there are more than the limits allow.",
        "The limit {{ $labels.limit }} was reached.",
    )


def _watchdog() -> Alert:
    return Alert(
        "PathgaugeWatchdog",
        "vector(1)",
        "none",
        "0s",
        "This alert always fires; when it ceases to arrive, alerts do not reach anybody.",
        "Prometheus evaluates the rules of pathgauge, and Alertmanager sends what they say.",
    )
