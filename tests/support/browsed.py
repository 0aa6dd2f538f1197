"""A running collector with traffic of the example agents, for pages in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pathgauge.collector.cli.demo.scripts import CONCIERGE, SUPPORT, Call, Script
from pathgauge.collector.cli.demo.session import CONFIG
from support.running import Collector, until
from support.turns import otlp, turn

TOKEN = "reader-token-0000"
HOSTILE = "<script>alert(1)</script>\u202e\x00\"'><img src=x onerror=alert(2)>"
RUNS = 6
"""Of each script of each release."""
_STRANGE = Script(
    "refund-order",
    HOSTILE,
    (
        (
            Call(
                "lookup_order", {"order_id": HOSTILE, "x" * 80: HOSTILE * 40}, {"r": HOSTILE * 90}
            ),
            Call(HOSTILE, {"a": [1, {"b": HOSTILE}]}, {}),
        ),
    ),
    HOSTILE * 60,
)
_UNKNOWN = Script(f"refnd-order {HOSTILE}", "Hello?", (), HOSTILE)


@contextmanager
def browsed(folder: Path, **configuration: Any) -> Iterator[Collector]:
    """The collector, when all traffic is scored."""
    settings = {
        "references": [str(CONFIG.parent / "references" / "*.yaml")],
        "store": {},
        "evidence": {"keep": "all"},
        "criteria": {
            "tool_trajectory_avg_score": 1.0,
            "tool_trajectory_f1": 0.9,
            "response_match_score": 0.7,
            "latency": None,
        },
        "windows": {"size": 20, "min_samples": 5},
        "ui": {"trace_url": "https://tempo.example/trace/{trace_id}"},
        **configuration,
    }
    with Collector(folder, **settings) as collector:
        sent = send(collector)
        assert until(lambda: scored(collector) == sent), collector.log()
        yield collector


def send(collector: Collector) -> int:
    """Send the traffic, and return the number of runs."""
    releases = [SUPPORT.release, SUPPORT.regressed, SUPPORT.repaired]
    turns = [
        turn(script, "support", release.version)
        for release in releases
        if release is not None
        for script in release.scripts * RUNS
    ]
    turns += [turn(script, "concierge", "3.1.0") for script in CONCIERGE.release.scripts * RUNS]
    turns.append(turn(_STRANGE, "W" * 80, "1"))
    turns += [turn(_STRANGE, "support", f"2.6 {HOSTILE}"), turn(_UNKNOWN, HOSTILE, "1")]
    for spans in turns:
        assert collector.post("/v1/traces", otlp(spans))[0] == 200
    return len(turns)


def scored(collector: Collector) -> int:
    """The number of runs that have a result."""
    page = collector.get("/results?limit=500", token=TOKEN)[1]
    return len(set(result_links(page)))


def result_links(page: str) -> list[str]:
    """The addresses of the results in a list."""
    return re.findall(r'href="(/results/[0-9a-f]+/[0-9a-f]+)"', page)
