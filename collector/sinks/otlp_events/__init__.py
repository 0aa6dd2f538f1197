"""Exports evaluations as `gen_ai.evaluation.result` events to an OTLP backend: `exporters.otlp`.

OpenTelemetry's exporters take half a second to import, so they are imported when the sink is built.
"""

from __future__ import annotations

from collections.abc import Mapping

from pathgauge.collector.config.plugins.sinks import SinkContext, SinkType
from pathgauge.collector.core.documents import KeyPath
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.sinks.otlp_events.options import OtlpEventsOptions


def _build(options: OtlpEventsOptions, context: SinkContext) -> Sink:
    from pathgauge.collector.sinks.otlp_events.exporter import (  # noqa: PLC0415
        EXPORT_ERRORS,
        build_exporter,
    )
    from pathgauge.collector.sinks.otlp_events.sink import OtlpEvents  # noqa: PLC0415

    return OtlpEvents(
        build_exporter(options, context),
        context.telemetry,
        queue_size=options.queue_size,
        content=options.content,
        results_url=options.results_url,
        reason=lambda: EXPORT_ERRORS.last,
    )


def _check(options: OtlpEventsOptions, context: SinkContext) -> None:
    from pathgauge.collector.sinks.otlp_events.exporter import build_exporter  # noqa: PLC0415

    build_exporter(options, context)


def _certificates(options: OtlpEventsOptions) -> Mapping[KeyPath, str]:
    named = {"ca_file": options.tls.ca_file, "cert_file": options.tls.cert_file}
    return {("tls", key): file for key, file in named.items() if file is not None}


OTLP_EVENTS = SinkType(OtlpEventsOptions, _build, _check, _certificates)
