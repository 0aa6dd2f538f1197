"""Commands with `--url` that ask a process which does not know the answer say which one does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from typer.testing import Result

from pathgauge.collector.api.app import routes_elsewhere
from pathgauge.collector.service.web.app import create_app
from support.api_client import client, sources
from support.serving import serving

Run = Callable[..., Result]

COMMANDS = (
    ("results",),
    ("results", "--unmatched"),
    ("results", "show", "a" * 32),
    ("explain", "support"),
    ("verdict", "--agent", "support", "--version", "2", "--against", "1", "--wait", "1m"),
)
GAUGE = "ask the process of the role gauge whose /activez answers 200."


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    apps = {
        "scorer": create_app(CollectorRegistry(), with_own_authorization=routes_elsewhere()),
        "standby": client(sources(None, is_standby=True)).app,
        "other": Starlette(),
    }
    with (
        serving(apps["scorer"]) as scorer,
        serving(apps["standby"]) as standby,
        serving(apps["other"]) as other,
    ):
        ports = {"scorer": scorer, "standby": standby, "other": other}
        yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_gateway_or_scorer_says_that_it_is_no_gauge(
    run: Run, urls: dict[str, str], command: tuple[str, ...]
) -> None:
    found = run(*command, "--url", urls["scorer"])
    text = f"{urls['scorer']}: This process is not a gauge, and only a gauge has the API: {GAUGE}"
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", f"pathgauge: {text}\n")


@pytest.mark.parametrize("command", [("explain", "support"), ("results", "--unmatched")])
def test_a_standby_says_that_only_the_gauge_knows(
    run: Run, urls: dict[str, str], command: tuple[str, ...]
) -> None:
    found = run(*command, "--url", urls["standby"])
    text = f"{urls['standby']}: This process is a standby, and only the gauge knows this: {GAUGE}"
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", f"pathgauge: {text}\n")


def test_another_server_may_be_another_process_of_a_cluster(run: Run, urls: dict[str, str]) -> None:
    found = run("results", "--url", urls["other"])
    assert found.exit_code == 2
    assert found.stderr == (
        f"pathgauge: {urls['other']} answered /results with status 404 and no known content: is it"
        " a collector of this version, and in a cluster the process of the role gauge?\n"
    )
