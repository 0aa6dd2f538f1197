"""The section `ui`: addresses of other tools that the pages link to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.core.documents import ConfigError


def load(folder: Path, address: str) -> str | None:
    path = folder / "pathgauge.yaml"
    path.write_text(f"ui: {{trace_url: '{address}'}}\n")
    return config.load(path).ui.trace_url


@pytest.mark.parametrize(
    "address", ["https://tempo.example/trace/{trace_id}", "http://localhost:16686/?id={trace_id}"]
)
def test_the_address_of_a_trace_is_taken_as_it_is(tmp_path: Path, address: str) -> None:
    assert load(tmp_path, address) == address


@pytest.mark.parametrize(
    "address",
    [
        "https://tempo.example/trace",
        "javascript:alert({trace_id})",
        "/trace/{trace_id}",
        "https:///{trace_id}",
        "https://[::1/{trace_id}",
    ],
)
def test_other_addresses_are_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match=r"ui\.trace_url: .*expected an address such as https://"):
        load(tmp_path, address)


@pytest.mark.parametrize("address", ["https://grafana.example/d/x", "ftp://grafana/{agent}"])
def test_a_dashboard_needs_a_place_for_the_agent(tmp_path: Path, address: str) -> None:
    path = tmp_path / "pathgauge.yaml"
    path.write_text(f"ui: {{dashboard_url: '{address}'}}\n")
    with pytest.raises(ConfigError, match=r"ui\.dashboard_url: .*var-agent="):
        config.load(path)
