"""Runs Prometheus, Alertmanager and a webhook for tests.

The configurations are those of `deploy/`, with other addresses and shorter times. Every program
keeps its data and its port when it is restarted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from support.ports import free_port
from support.repository import DEPLOY
from support.running import PATIENCE_S, until

ONLY_MAKE_E2E = pytest.mark.skipif(
    "PATHGAUGE_E2E" not in os.environ, reason="takes long; `make e2e` runs it"
)
REQUIRED = bool(os.environ.get("CI") or os.environ.get("PATHGAUGE_E2E"))
PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus"}
"""The Debian package of a program; all others are in `prometheus-alertmanager`."""


def installed(name: str) -> str:
    """The path of a program. If it is missing, the test fails in CI and `make e2e`, and is skipped
    elsewhere.
    """
    found = shutil.which(name)
    if found is None:
        text = (
            f"no `{name}` on PATH: sudo apt-get install"
            f" {PACKAGES.get(name, 'prometheus-alertmanager')}"
        )
        if REQUIRED:
            pytest.fail(f"{text}; CI or PATHGAUGE_E2E requires it")
        pytest.skip(text)
    return found


class Program:
    """A program that serves HTTP on its own port. It runs inside the `with` block."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = installed(self.name)
        self.address = f"127.0.0.1:{free_port()}"

    def __enter__(self) -> Self:
        with (self._folder / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, *self._arguments()], stdout=log, stderr=log
            )
        assert until(lambda: self.ask("/-/ready") is not None), (
            self._folder / f"{self.name}.log"
        ).read_text()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def restart(self) -> None:
        """Restart it with its data, as an upgrade does."""
        self.__exit__()
        self.__enter__()

    def ask(self, path: str, body: Any = None) -> str | None:
        """The body of the response, or `None` if the request fails."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.address}{path}", data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                text: str = answer.read().decode()
                return text
        except urllib.error.HTTPError as refused:
            refused.close()
        except OSError:
            pass
        return None

    def _arguments(self) -> Sequence[str]:
        raise NotImplementedError


class Prometheus(Program):
    """Prometheus with the shipped configuration. It scrapes one port several times a second."""

    name = "prometheus"

    def __init__(
        self, folder: Path, target: int, rules: Path | None = None, alertmanager: str | None = None
    ) -> None:
        super().__init__(folder)
        document = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        document["global"] = {
            "scrape_interval": "200ms",
            "scrape_timeout": "200ms",
            "evaluation_interval": "1s",
        }
        document["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{target}"]}]
        document["rule_files"] = [] if rules is None else [str(rules)]
        document["alerting"]["alertmanagers"] = (
            [] if alertmanager is None else [{"static_configs": [{"targets": [alertmanager]}]}]
        )
        (folder / "prometheus.yml").write_text(yaml.safe_dump(document))

    def get(self, page: str, **parameters: str) -> list[dict[str, Any]]:
        """The result of an API call; empty while Prometheus starts."""
        answer = self.ask(f"/api/v1/{page}?{urllib.parse.urlencode(parameters)}")
        if answer is None:
            return []
        data = json.loads(answer)["data"]
        found: list[dict[str, Any]] = data["result"] if isinstance(data, dict) else data
        return found

    def value(self, query: str) -> float | None:
        """The first value of a query, or `None`."""
        found = self.get("query", query=query)
        return float(found[0]["value"][1]) if found else None

    def _arguments(self) -> Sequence[str]:
        return (
            f"--config.file={self._folder}/prometheus.yml",
            f"--storage.tsdb.path={self._folder}/prometheus",
            f"--web.listen-address={self.address}",
            "--enable-feature=exemplar-storage",
            # The first alerts are lost if Alertmanager is not discovered yet: resend them soon.
            # What is sent counts four times as long, which must bridge a restart on a busy machine.
            "--rules.alert.resend-delay=5s",
        )


class Alertmanager(Program):
    """Alertmanager with the shipped routes and inhibitions, notifying a webhook within a second."""

    name = "prometheus-alertmanager"

    def __init__(self, folder: Path, webhook: str) -> None:
        super().__init__(folder)
        document = yaml.safe_load((DEPLOY / "alertmanager" / "alertmanager.yml").read_text())
        for route in (document["route"], *document["route"]["routes"]):
            route |= {"group_wait": "500ms", "group_interval": "1s"}
        for receiver in document["receivers"]:
            for config in receiver.get("webhook_configs", []):
                config["url"] = f"{webhook}/{receiver['name']}"
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(document))

    def alerts(self) -> dict[str, dict[str, Any]]:
        """The current alerts by name."""
        return {
            alert["labels"]["alertname"]: alert
            for alert in json.loads(self.ask("/api/v2/alerts") or "[]")
        }

    def _arguments(self) -> Sequence[str]:
        return (
            f"--config.file={self._folder}/alertmanager.yml",
            f"--storage.path={self._folder}/alertmanager",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
        )


class Webhook:
    """Stores the notifications of Alertmanager with their receivers, in the order of arrival."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                received.extend((self.path.strip("/"), alert) for alert in message["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing; `received` has the notifications."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def of(self, alert: str) -> list[tuple[str, dict[str, Any]]]:
        """The receiver and the alert of each notification with this alert name."""
        return [
            (receiver, sent)
            for receiver, sent in self.received
            if sent["labels"]["alertname"] == alert
        ]
