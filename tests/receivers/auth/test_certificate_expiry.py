"""The dates of certificates: read as OpenSSL reads them, and a warning before it is too late."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from pathgauge.collector import config
from pathgauge.collector.config import Config
from pathgauge.collector.config.outgoing_certificates import outgoing_files
from pathgauge.collector.receivers.auth.access import load_access
from pathgauge.collector.receivers.auth.certificate_dates import validities
from pathgauge.collector.receivers.auth.certificate_expiry import (
    CertificateExpiry,
    expiry_warnings,
)
from support.certificates import Authority

BEGINS = datetime(2026, 1, 1, tzinfo=UTC)
ENDS = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
Load = Callable[[object], Config]
PLACE = "receivers.otlp.protocols.http.tls.cert_file: server.pem"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a configuration beside the certificates; JSON is valid YAML."""

    def load(settings: object) -> Config:
        (tmp_path / "pathgauge.yaml").write_text(json.dumps(settings))
        return config.load(tmp_path / "pathgauge.yaml")

    return load


@pytest.mark.parametrize(
    "ends",
    [datetime(year, 2, 28, 23, 59, 59, tzinfo=UTC) for year in (1999, 2026, 2049, 2050, 9999)],
)
def test_dates_are_read_like_by_another_library(tmp_path: Path, ends: datetime) -> None:
    Authority().write_server(tmp_path, begins=datetime(1971, 1, 1, tzinfo=UTC), ends=ends)
    pem = (tmp_path / "server.pem").read_bytes()
    read = x509.load_pem_x509_certificates(pem)
    assert validities(pem) == [
        (int(one.not_valid_before_utc.timestamp()), int(one.not_valid_after_utc.timestamp()))
        for one in read
    ]


@pytest.mark.parametrize("cut", [0, 1, 2, 40, 90])
def test_what_is_no_certificate_is_an_error_or_has_no_dates(tmp_path: Path, cut: int) -> None:
    Authority().write_server(tmp_path)
    lines = (tmp_path / "server.pem").read_bytes().splitlines(keepends=True)
    broken = lines[0] + lines[1][:cut] + b"\n" + lines[-1]
    with pytest.raises(ValueError, match=r"."):
        validities(broken)
    assert validities(b"no certificate") == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (BEGINS - timedelta(1), "is not valid before 2026-01-01 00:00 UTC; is the clock right?"),
        (BEGINS, None),
        (ENDS - timedelta(14, 1), None),
        (ENDS - timedelta(14), "expires at 2026-03-01 12:30 UTC, in 14 days"),
        (ENDS - timedelta(1.5), "expires at 2026-03-01 12:30 UTC, in 1 day"),
        (ENDS, "has expired at 2026-03-01 12:30 UTC"),
    ],
)
def test_a_certificate_is_doubted_near_its_ends(
    tmp_path: Path, load: Load, now: datetime, expected: str | None
) -> None:
    tls = Authority().write_server(tmp_path, begins=BEGINS, ends=ENDS)
    settings = load({"receivers": {"otlp": {"protocols": {"http": {"tls": tls}}}}})
    access = load_access(settings)
    found = list(expiry_warnings(settings, access.tls, now.timestamp()))
    assert found == ([] if expected is None else [f"{PLACE} {expected}"])
    [family] = CertificateExpiry(access.tls, ()).collect()
    assert [(one.labels, one.value) for one in family.samples] == [
        ({"server": "http", "file": "cert_file"}, ENDS.timestamp())
    ]


def test_one_valid_authority_of_several_is_enough(tmp_path: Path, load: Load) -> None:
    tls = Authority().write_server(tmp_path)
    Authority().write_server(tmp_path, "old", begins=BEGINS, ends=ENDS)
    old, new = (tmp_path / "old.pem").read_bytes(), Authority().certificate
    (tmp_path / "clients-ca.pem").write_bytes(old + new)
    section = {"tls": {**tls, "client_ca_file": "clients-ca.pem"}}
    settings = load({"receivers": {"otlp": {"protocols": {"http": section}}}})
    assert load_access(settings).warnings == ()
    (tmp_path / "clients-ca.pem").write_bytes(old)
    assert load_access(settings).warnings == (
        "receivers.otlp.protocols.http.tls.client_ca_file: clients-ca.pem has expired at"
        " 2026-03-01 12:30 UTC",
    )


def outgoing(folder: Path) -> dict[str, object]:
    """A configuration that uses `server.pem` for every connection to others."""
    pem, key = folder / "server.pem", folder / "server.key"
    provider = {"base_url": "https://models.example/v1", "api_key": "k", "ca_file": "server.pem"}
    files = {"ca_file": "server.pem", "cert_file": "server.pem", "key_file": "server.key"}
    return {
        "judge": {"model": "m", "providers": {"openai": provider}},
        "exporters": {"otlp": {"endpoint": "backend:1", "tls": files}},
        "kafka": {
            "client": {
                "bootstrap.servers": "kafka:1",
                "ssl.ca.location": str(pem),
                "ssl.certificate.location": str(pem),
                "ssl.key.location": str(key),
            }
        },
        "postgres": {"conninfo": f"host=db password=s3cret sslrootcert={pem} sslcert={pem}"},
    }


def test_an_expired_certificate_for_connections_to_others_is_a_warning(
    tmp_path: Path, load: Load
) -> None:
    Authority().write_server(tmp_path, begins=BEGINS, ends=ENDS)
    pem = tmp_path / "server.pem"
    assert load_access(load(outgoing(tmp_path))).warnings == tuple(
        f"{place} has expired at 2026-03-01 12:30 UTC"
        for place in (
            "judge.providers.openai.ca_file: server.pem",
            "exporters.otlp.tls.ca_file: server.pem",
            "exporters.otlp.tls.cert_file: server.pem",
            f"kafka.client.ssl.ca.location: {pem}",
            f"kafka.client.ssl.certificate.location: {pem}",
            f"postgres.conninfo: sslrootcert={pem}",
            f"postgres.conninfo: sslcert={pem}",
        )
    )


def test_the_gauge_has_the_certificate_that_a_connection_to_others_uses(
    tmp_path: Path, load: Load
) -> None:
    def ends() -> dict[tuple[str, str], float]:
        [family] = gauge.collect()
        return {(one.labels["server"], one.labels["file"]): one.value for one in family.samples}

    Authority().write_server(tmp_path, begins=BEGINS, ends=ENDS)
    gauge = CertificateExpiry({}, outgoing_files(load(outgoing(tmp_path))))
    kept = {
        ("judge.providers.openai", "ca_file"): ENDS.timestamp(),
        ("kafka", "ssl.ca.location"): ENDS.timestamp(),
        ("kafka", "ssl.certificate.location"): ENDS.timestamp(),
    }
    reread = {
        ("exporters.otlp", "tls.ca_file"): ENDS.timestamp(),
        ("exporters.otlp", "tls.cert_file"): ENDS.timestamp(),
        ("postgres", "sslrootcert"): ENDS.timestamp(),
        ("postgres", "sslcert"): ENDS.timestamp(),
    }
    assert ends() == kept | reread
    renewed = ENDS + timedelta(60)
    Authority().write_server(tmp_path, begins=BEGINS, ends=renewed)
    assert ends() == kept | dict.fromkeys(reread, renewed.timestamp())
    (tmp_path / "server.pem").unlink()
    assert ends() == kept


def test_without_certificates_there_is_no_gauge(load: Load) -> None:
    assert list(CertificateExpiry({}, outgoing_files(load({}))).collect()) == []
