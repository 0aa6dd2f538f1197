"""An agent whose tool calls were learned, and changed or not."""

from __future__ import annotations

from pathgauge.collector.core.traffic.drift import TrafficDrift

WALL = 1_795_400_000.0
HOUR = 3600.0


def watched(*agents: str, changed: int = 20, tenant: str = "") -> TrafficDrift:
    """Each calls `search` once an hour, 250 times, and then `fetch` before it, so many times."""
    drift = TrafficDrift()
    for agent in agents:
        for number in range(250 + changed):
            names = ["search"] if number < 250 else ["fetch", "search"]
            drift.observe(tenant, agent, None, names, WALL + HOUR * number)
    return drift
