"""The section `postgres`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.cli.checking import check_cluster
from pathgauge.collector.config import Config
from pathgauge.collector.core.documents import ConfigError

SECRET = "s3cret-word"


def load(text: str, folder: Path) -> Config:
    file = folder / "pathgauge.yaml"
    kafka = "kafka: {client: {bootstrap.servers: 'localhost:1'}}"
    file.write_text(f"postgres: {text}\n{kafka}\n", encoding="utf-8")
    return config.load(file, {"PASSWORD": SECRET})


def test_it_is_off_unless_it_is_written(tmp_path: Path) -> None:
    assert config.load().postgres is None
    file = tmp_path / "pathgauge.yaml"
    file.write_text("postgres: false\n", encoding="utf-8")
    assert config.load(file).postgres is None


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://pathgauge:${env:PASSWORD}@db.example:5433/results?sslmode=verify-full",
        "postgres://db.example,other.example/results?target_session_attrs=read-write",
        "host=/var/run/postgresql dbname=results password=${env:PASSWORD}",
    ],
)
def test_the_address_is_libpqs_own_and_may_hold_a_password(address: str, tmp_path: Path) -> None:
    loaded = load(f"{{conninfo: '{address}'}}", tmp_path)
    assert loaded.postgres is not None
    assert loaded.postgres.conninfo == address.replace("${env:PASSWORD}", SECRET)
    assert SECRET not in repr(loaded)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{conninfo: 5}",
        "{conninfo: 's3cret-word'}",
        "{conninfo: 'mysql://pathgauge:s3cret-word@db.example/results'}",
        "{conninfo: 'postgresql://pathgauge:s3cret-word@db.example/results?ssl_mode=require'}",
        "{conninfo: 'host=db.example password s3cret-word'}",
        "{conninfo: 'host=db.example', password: s3cret-word}",
    ],
)
def test_a_mistake_stops_the_start_without_quoting_a_password(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, tmp_path)
    assert "postgres" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        (
            "sslmode=verify_full",
            "found sslmode=verify_full, expected one of prefer, disable, allow, require, verify-ca,"
            " verify-full; did you mean 'verify-full'?",
        ),
        (
            "channel_binding=on",
            "found channel_binding=on, expected one of prefer, disable, require",
        ),
    ],
)
def test_values_that_libpq_checks_when_it_connects_are_checked_at_once(
    setting: str, found: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"{{conninfo: 'host=db.example {setting}'}}", tmp_path)
    assert str(caught.value) == f"{tmp_path}/pathgauge.yaml:1:22: postgres.conninfo: {found}"


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("sslrootcert=/none/ca.pem", ["sslrootcert=/none/ca.pem"]),
        (
            "sslmode=verify-full sslrootcert=system sslcert=/none/own.pem sslkey=/none/own.key",
            ["sslcert=/none/own.pem", "sslkey=/none/own.key"],
        ),
        ("sslkey=pkcs11:object=key", []),
        ("sslmode=disable sslrootcert=/none/ca.pem", []),
    ],
)
def test_a_file_that_is_missing_stops_the_start_as_libpq_may_connect_without_it(
    settings: str, found: list[str], tmp_path: Path
) -> None:
    loaded = load(f"{{conninfo: 'host=db.example password={SECRET} {settings}'}}", tmp_path)
    problems: list[str] = []
    try:
        check_cluster(loaded)
    except ConfigError as error:
        problems = str(error).splitlines()
    place, expected = f"{tmp_path}/pathgauge.yaml:1:22: postgres.conninfo", "a readable file"
    reason = "No such file or directory"
    assert problems == [f"{place}: found {one}, expected {expected} ({reason})" for one in found]
