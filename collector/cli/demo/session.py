"""Runs the demo: the collector on loopback, the example agents and the live table, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.live import Live

from pathgauge.collector import config
from pathgauge.collector.cli.demo.table import render
from pathgauge.collector.cli.demo.traffic import run_agents
from pathgauge.collector.config import Config
from pathgauge.collector.service.run import run
from pathgauge.collector.service.service import Service

CONFIG = Path(__file__).with_name("pathgauge.yaml")
HOST = "127.0.0.1"
REFRESH_S = 1.0
PATIENCE_S = 60.0
"""For an answer with metrics. Anything that ends the demo is worse than a table that waits."""


async def show(
    port_offset: int, regress_after_s: float, repair_after_s: float, console: Console
) -> None:
    """Run the demo. Raises OSError when an endpoint cannot be opened."""
    # All traffic is on loopback: ignore a proxy that is set in the environment.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = HOST
    with TemporaryDirectory(prefix="pathgauge-demo-", ignore_cleanup_errors=True) as folder:
        settings = config.load(CONFIG, {**_ports(port_offset), "DEMO_FOLDER": folder})
        await _run(settings, regress_after_s, repair_after_s, console)


async def _run(
    settings: Config, regress_after_s: float, repair_after_s: float, console: Console
) -> None:
    async def watch_agents(service: Service) -> None:
        ports = service.ports
        console.print(_introduction(ports, regress_after_s, repair_after_s))
        stop = threading.Event()
        endpoints = f"{HOST}:{ports['grpc']}", f"http://{HOST}:{ports['http']}"
        agents = asyncio.create_task(
            asyncio.to_thread(
                run_agents,
                *endpoints,
                stop,
                regress_after_s=regress_after_s,
                repair_after_s=repair_after_s,
            )
        )
        try:
            await _watch(f"http://{HOST}:{ports['metrics']}/metrics", console)
        finally:
            stop.set()
            await agents

    await run(Service(settings, CONFIG), watch_agents)


def _ports(offset: int) -> dict[str, str]:
    return {
        "GRPC_PORT": str(4317 + offset),
        "HTTP_PORT": str(4318 + offset),
        "METRICS_PORT": str(9464 + offset),
    }


def _introduction(ports: dict[str, int], regress_after_s: float, repair_after_s: float) -> str:
    return (
        f"pages      http://{HOST}:{ports['metrics']}/\n"
        f"OTLP/gRPC  {HOST}:{ports['grpc']}\n"
        f"OTLP/HTTP  http://{HOST}:{ports['http']}\n"
        f"metrics    http://{HOST}:{ports['metrics']}/metrics\n\n"
        f"Two example agents are running; open the pages in a browser to see which\n"
        f"invocations fail, and why. After {regress_after_s:g} s a new version of `support`\n"
        f"skips a tool, gets arguments wrong and answers worse; {repair_after_s:g} s later it is\n"
        f"repaired.\n"
        f"Press Ctrl-C to stop.\n"
    )


async def _watch(url: str, console: Console) -> None:
    """Refresh the table every second. Without a terminal, print it every ten seconds."""
    if not console.is_terminal:
        while True:
            await asyncio.sleep(10 * REFRESH_S)
            console.print(render(await asyncio.to_thread(_fetch, url), time.time()))
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(render(await asyncio.to_thread(_fetch, url), time.time()), refresh=True)
            await asyncio.sleep(REFRESH_S)


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as response:
        text: str = response.read().decode()
    return text
