"""Settings that the client cannot have are mistakes of the configuration, with their position."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.receivers.kafka.checking import check_client
from support.running import PATHGAUGE

SECRET = "s3cret-word"
SECTION = """postgres: {conninfo: 'host=db.example'}
kafka:
  client_files: {ssl.key.password: password}
  client:
    bootstrap.servers: 127.0.0.1:1
"""


def written(folder: Path, *lines: str) -> Path:
    file = folder / "pathgauge.yaml"
    file.write_text(SECTION + "".join(f"    {line}\n" for line in lines))
    (folder / "password").write_text(SECRET)
    return file


def check(folder: Path, *lines: str) -> list[str]:
    """The problems, without the name of the file."""
    file = written(folder, *lines)
    try:
        check_client(config.load(file, {}))
    except ConfigError as error:
        return [str(one).removeprefix(f"{file}:") for one in error.problems]
    return []


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((), []),
        (("ssl.ca.location: probe",), []),
        (
            ("sasl.pasword: s3cret-word", "security.protocol: ssll", "socket.timeout.ms: 1"),
            [
                "6:19: kafka.client.sasl.pasword: found an unknown setting, expected one of"
                " librdkafka",
                "7:24: kafka.client.security.protocol: found another value, expected plaintext,"
                " ssl, sasl_plaintext or sasl_ssl",
                "8:24: kafka.client.socket.timeout.ms: found a number that is too small or too"
                " large, expected 10..300000",
            ],
        ),
        (
            ("enable.ssl.certificate.verification: s3cret-word",),
            [
                "6:42: kafka.client.enable.ssl.certificate.verification: found another value,"
                " expected true or false"
            ],
        ),
        (
            ("ssl.ca.location: /none/ca.crt", "ssl.key.location: /none/key"),
            [
                "6:22: kafka.client.ssl.ca.location: found '/none/ca.crt', expected a readable file"
                " (No such file or directory)",
                "7:23: kafka.client.ssl.key.location: found '/none/key', expected a readable file"
                " (No such file or directory)",
            ],
        ),
        (
            ("security.protocol: sasl_ssl", "sasl.mechanism: PLAIN"),
            [
                "5:5: kafka.client: found settings that librdkafka refuses, expected others:"
                " sasl.username and sasl.password must be set"
            ],
        ),
        (
            (
                "security.protocol: sasl_plaintext",
                "sasl.mechanism: OAUTHBEARER",
                "sasl.oauthbearer.method: oidc",
                "sasl.oauthbearer.client.id: one",
                "sasl.oauthbearer.client.secret: s3cret-word",
                "sasl.oauthbearer.token.endpoint.url: https://idp.example/token",
            ),
            [],
        ),
    ],
)
def test_every_setting_is_checked_without_a_broker(
    lines: tuple[str, ...], expected: list[str], tmp_path: Path
) -> None:
    found = check(tmp_path, *lines)
    assert found == expected
    assert SECRET not in str(found)


def test_nothing_is_connected_to(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(1.0)
        file = written(tmp_path)
        file.write_text(file.read_text().replace(":1\n", f":{listener.getsockname()[1]}\n"))
        check_client(config.load(file, {}))
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.slow
@pytest.mark.parametrize("command", [("validate",), ("serve", "--role", "gateway"), ("migrate",)])
def test_commands_tell_it_at_once(command: tuple[str, ...], tmp_path: Path) -> None:
    file, began = written(tmp_path, "sasl.pasword: s3cret-word"), time.monotonic()
    ended = subprocess.run(
        [PATHGAUGE, *command, "--config", file],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (
        2,
        f"pathgauge: {file}:6:19: kafka.client.sasl.pasword: found an unknown setting, expected one"
        " of librdkafka\n",
    )
    assert time.monotonic() - began < 25
