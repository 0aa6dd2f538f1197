"""`/drift`: which scores became worse, and what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.sinks.prometheus.drift.recording import explained
from pathgauge.collector.sinks.prometheus.labels import AgentVersion
from support.api_client import NORTH, SOUTH, client, get, sources, with_tokens
from support.drifted import MEASURE, drifted
from support.watched_traffic import HOUR, WALL, watched

KEY = SeriesKey("support", "refund", "f1")
NOW = WALL + 270 * HOUR


VERSIONS = {
    AgentVersion("support", "2.4.0"): WALL - 7 * 3600,
    AgentVersion("support", "2.5.0"): WALL,
    AgentVersion("concierge", "3"): WALL + 50 * 60,
}


def answered(drifts: Drifts, path: str = "/drift") -> Any:
    return get(client(sources(None, drifts=lambda: explained(drifts, VERSIONS))), path)


def test_a_stream_says_since_when_and_what_changed() -> None:
    found = answered(drifted(KEY))
    [stream] = found["streams"]
    assert stream.pop("evidence_days") == stream.pop("adjusted_evidence_days") > 365
    assert stream == {
        "tenant": "",
        "agent": "support",
        "scenario_id": "refund",
        "metric": "f1",
        "judge": None,
        "against": "threshold",
        "version": None,
        "alarm": True,
        "baseline": 0.9,
        "mean": 0.0,
        "mean_before": 1.0,
        "samples": 40,
        "since": "2026-11-23T03:03:20Z",
        "after_version": "2.5.0",
        "last": "2026-11-23T03:42:20Z",
        "replaced": False,
        "changes": [
            {
                "kind": "missing",
                "tool": "search",
                "argument": "",
                "rate": 1.0,
                "rate_before": 0.0,
                "share": 1.0,
            }
        ],
    }
    assert found["further_streams"] == 0


def test_streams_are_selected_and_those_with_most_evidence_come_first() -> None:
    drifts = drifted(KEY, KEY._replace(metric="other"))
    for minute in range(5):
        drifts.observe(KEY._replace(agent="fine"), MEASURE, 1.0, 1_795_400_000.0 + minute * 60)
    assert [one["agent"] for one in answered(drifts)["streams"]] == ["support", "support", "fine"]
    [other] = answered(drifts, "/drift?agent=support&metric=other&scenario=refund")["streams"]
    assert other["metric"] == "other"
    assert answered(drifts, "/drift?scenario=else")["streams"] == []


def test_a_tenant_sees_its_own_streams_only(tmp_path: Path) -> None:
    drifts = drifted(KEY._replace(tenant="north"), KEY._replace(tenant="south"))
    api = client(sources(None, drifts=lambda: explained(drifts)), with_tokens(tmp_path))
    for token, tenant in ((NORTH, "north"), (SOUTH, "south")):
        for path in ("/drift", f"/drift?tenant={tenant}"):
            found = get(api, path, authorization=f"Bearer {token}")
            assert {one["tenant"] for one in found["streams"]} == {tenant}


def test_an_agent_says_which_tool_calls_changed() -> None:
    drift = watched("support")
    api = client(sources(None, traffic=lambda: drift.snapshot(NOW)))
    [found] = get(api, "/drift")["traffic"]
    assert found.pop("evidence_days") >= 365
    changes = found.pop("changes")
    assert found == {
        "tenant": "",
        "agent": "support",
        "version": None,
        "status": "diverging",
        "alarm": True,
        "invocations": 168,
        "missing_invocations": 0,
        "missing_hours": 0.0,
        "since": "2026-12-03T12:13:20Z",
        "last": "2026-12-04T07:13:20Z",
    }
    [new] = [one for one in changes if (one["kind"], one["direction"]) == ("tool", "new")]
    assert 0 < new.pop("share") < 1
    assert new == {
        "kind": "tool",
        "name": "fetch",
        "direction": "new",
        "rate": 1.0,
        "rate_before": 0.0,
    }


def test_agents_are_selected_and_those_with_an_alarm_come_first() -> None:
    drift = watched("calm", changed=0)
    usual, diverging = drift.snapshot(NOW), watched("support").snapshot(NOW)
    api = client(sources(None, traffic=lambda: [*usual, *diverging]))
    assert [one["agent"] for one in get(api, "/drift")["traffic"]] == ["support", "calm"]
    assert [one["agent"] for one in get(api, "/drift?agent=calm")["traffic"]] == ["calm"]
    for query in ("scenario=refund", "metric=f1"):
        assert get(api, f"/drift?{query}")["traffic"] == []


def test_a_tenant_sees_its_own_agents_only(tmp_path: Path) -> None:
    streams = [
        *watched("a", changed=0, tenant="north").snapshot(NOW),
        *watched("a", changed=0, tenant="south").snapshot(NOW),
    ]
    api = client(sources(None, traffic=lambda: streams), with_tokens(tmp_path))
    for token, tenant in ((NORTH, "north"), (SOUTH, "south")):
        for path in ("/drift", f"/drift?tenant={tenant}"):
            found = get(api, path, authorization=f"Bearer {token}")
            assert [one["tenant"] for one in found["traffic"]] == [tenant]
