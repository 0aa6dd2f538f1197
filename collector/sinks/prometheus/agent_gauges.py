"""Gauges about the telemetry of agents: who makes it, and what it has ever held."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pathgauge.collector.core.agent_records import VersionKey
from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.core.invocations.reading import RECORDS, Record
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.labels import OTHER, AgentVersion, Labels, TenantLabel

Shown = Mapping[VersionKey, Collection[Record]]


def agent_records(shown: Shown, live: Iterable[Labels], tenant: TenantLabel) -> GaugeFamily:
    """What was ever seen of each live version of an agent."""
    family = GaugeFamily(
        "pathgauge_agent_records",
        "1 if the telemetry of an agent version has ever held this (tools: spans of tool calls),"
        " else 0.",
        labels=tenant.names("agent", "agent_version", "what"),
    )
    by_labels: dict[AgentVersion, set[Record]] = {}
    for key, records in shown.items():
        agent, version = (label_value(name, MAX_NAME_BYTES) for name in key[1:])
        labels = AgentVersion(agent, version, tenant.of(key.tenant))
        by_labels.setdefault(labels, set()).update(records)
    for one in _versions(live):
        known = by_labels.get(one, ())
        for record in RECORDS:
            values = tenant.values(one.tenant, one.agent, one.version, record)
            family.add_metric(values, float(record in known))
    return family


def agent_info(
    dialects: Mapping[tuple[str, ...], str], settings: Mapping[str, str], tenant: TenantLabel
) -> GaugeFamily:
    """The dialect of the latest invocation of each agent, and the setting with which it records
    content. `dialects`: by the values of the labels `tenant` and `agent`.
    """
    family = GaugeFamily(
        "pathgauge_agent_info",
        "Dialect of the latest invocation of an agent, and the setting that makes it record"
        " content; the value is always 1.",
        labels=tenant.names("agent", "dialect", "content_setting"),
    )
    for agent, dialect in dialects.items():
        family.add_metric((*agent, dialect, settings.get(dialect, "")), 1)
    return family


def _versions(live: Iterable[Labels]) -> dict[AgentVersion, None]:
    versions = (AgentVersion(one.agent, one.agent_version, one.tenant) for one in live)
    return {one: None for one in versions if one.agent and OTHER not in one}
