"""`pathgauge mcp` refuses what it cannot use, and says what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathgauge.collector.cli import app


def refusal(*arguments: str, token: str = "") -> str:
    run = CliRunner().invoke(app, ["mcp", *arguments], env={"PATHGAUGE_TOKEN": token})
    assert (run.exit_code, run.stdout) == (2, "")
    return run.stderr


def test_without_the_package_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert refusal() == (
        "pathgauge: found no package mcp, expected it to be installed: pip install"
        " 'pathgauge[mcp]'\n"
    )


@pytest.mark.parametrize("url", ["9464", "file:///etc/passwd", "http://", "http://a/?b=c"])
def test_an_address_that_is_no_url_is_refused(url: str) -> None:
    assert refusal("--url", url) == (
        f"pathgauge: --url: found {url!r}, expected a URL such as http://127.0.0.1:9464\n"
    )


@pytest.mark.parametrize("address", ["0.0.0.0:9465", "[::]:9465", "tower.example:9465"])
def test_an_address_that_other_machines_can_reach_needs_an_option(address: str) -> None:
    assert "or else --insecure-bind" in refusal("--http", address)


def test_an_address_without_a_port_is_refused() -> None:
    assert refusal("--http", "127.0.0.1").startswith(
        "pathgauge: --http: found '127.0.0.1', expected host:port"
    )


def test_a_token_of_its_own_is_refused_over_http(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token-0123456789")
    assert "where each request brings its own token" in refusal(
        "--http", "127.0.0.1:0", "--token-file", str(tmp_path / "token")
    )


@pytest.mark.parametrize(
    ("content", "found"),
    [("# only a comment\n", "found no token"), ("two words\n", "found characters")],
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, content: str, found: str) -> None:
    (tmp_path / "token").write_text(content)
    assert found in refusal("--token-file", str(tmp_path / "token"))


def test_a_variable_with_more_than_a_token_is_refused() -> None:
    refused = refusal(token="two words")
    assert refused.startswith("pathgauge: PATHGAUGE_TOKEN: found characters")
    assert "two words" not in refused
