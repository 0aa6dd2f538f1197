"""The section `exporters.otlp`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.core.documents.quantities import Endpoint
from pathgauge.collector.sinks.otlp_events.options import OtlpEventsOptions, Target


def load(text: str, folder: Path) -> OtlpEventsOptions:
    file = folder / "pathgauge.yaml"
    file.write_text(f"exporters:\n  otlp: {text}\n", encoding="utf-8")
    section = config.load(file).exporters.sinks["otlp"]
    assert isinstance(section, OtlpEventsOptions)
    return section


def test_events_are_off_without_an_endpoint() -> None:
    assert config.load().exporters.sinks == {}


def test_all_options_but_the_endpoint_have_defaults(tmp_path: Path) -> None:
    assert load("{endpoint: 'tempo:4317'}", tmp_path).model_dump() == {
        "endpoint": (None, ("tempo", 4317), ""),
        "protocol": "grpc",
        "headers": {},
        "tls": {"insecure": False, "ca_file": None, "cert_file": None, "key_file": None},
        "timeout": 10.0,
        "queue_size": 10_000,
        "content": False,
        "results_url": None,
    }


@pytest.mark.parametrize(
    ("written", "expected", "plain_text"),
    [
        ("tempo:4317", Target(None, Endpoint("tempo", 4317)), False),
        ("http://tempo:4317", Target("http", Endpoint("tempo", 4317)), True),
        ("https://otlp.example.org:443", Target("https", Endpoint("otlp.example.org", 443)), False),
        ("http://[::2]:4318/", Target("http", Endpoint("::2", 4318)), True),
    ],
)
def test_endpoints_may_be_hosts_or_urls(
    written: str, expected: Target, plain_text: bool, tmp_path: Path
) -> None:
    section = load(f"{{endpoint: '{written}'}}", tmp_path)
    assert (section.endpoint, section.plain_text) == (expected, plain_text)


def test_a_path_precedes_the_path_of_the_signal(tmp_path: Path) -> None:
    section = load("{endpoint: 'https://example.org:443/otlp/', protocol: http/protobuf}", tmp_path)
    assert section.endpoint == Target("https", Endpoint("example.org", 443), "/otlp")


EXPECTED = (
    "expected host:port or a URL with a port, such as collector:4317 or http://collector:4318"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{endpoint: tempo}", f"2:20: exporters.otlp.endpoint: found 'tempo', {EXPECTED}"),
        (
            "{endpoint: 'http://tempo'}",
            f"2:20: exporters.otlp.endpoint: found 'http://tempo', {EXPECTED}",
        ),
        ("{endpoint: 'tempo:0'}", f"2:20: exporters.otlp.endpoint: found 'tempo:0', {EXPECTED}"),
        (
            "{endpoint: 'http://user:secret@tempo:4318'}",
            "2:20: exporters.otlp.endpoint: found an address with credentials, expected it without",
        ),
        (
            "{endpoint: 'a:1', tls: {cert_file: x}}",
            "2:32: exporters.otlp.tls: found one of cert_file and key_file, expected both or none",
        ),
        (
            "{endpoint: 'a:1', tls: {insecure: true, ca_file: x}}",
            "2:32: exporters.otlp.tls: found insecure and files for TLS, expected one or the other",
        ),
        (
            "{endpoint: 'https://a:1', tls: {insecure: true}}",
            "2:9: exporters.otlp: found https and tls.insecure, expected one or the other",
        ),
        (
            "{endpoint: 'http://a:1', tls: {ca_file: x}}",
            "2:9: exporters.otlp: found http and files for TLS, expected https",
        ),
        (
            "{endpoint: 'http://a:1/p'}",
            "2:9: exporters.otlp: found the path /p, expected none with grpc",
        ),
        (
            "{endpoint: 'http://a:1/p/v1/logs/', protocol: http/protobuf}",
            "2:9: exporters.otlp: found the path /p/v1/logs, expected the part before /v1/logs,"
            " which is added",
        ),
        (
            "{endpoint: 'http://a:1/v1/traces', protocol: http/protobuf}",
            "2:9: exporters.otlp: found the path /v1/traces, expected the part before /v1/logs,"
            " which is added",
        ),
        (
            "{endpoint: 'a:1', timeout: 0}",
            "2:36: exporters.otlp.timeout: found 0, expected greater than 0",
        ),
    ],
)
def test_an_error_names_its_position(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, tmp_path)
    assert str(caught.value) == f"{tmp_path}/pathgauge.yaml:{expected}"


@pytest.mark.parametrize(
    "value", ["Bearer secret\n", " Bearer secret", "Bearer s\u00e9cret", "Bearer\x07secret"]
)
def test_an_invalid_header_value_is_an_error_that_does_not_quote_it(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", value)
    with pytest.raises(ConfigError) as caught:
        load("{endpoint: 'a:1', headers: {authorization: '${env:TOKEN}'}}", tmp_path)
    assert (
        str(caught.value)
        == f"{tmp_path}/pathgauge.yaml:2:36: exporters.otlp.headers: found a value of authorization"
        " that no header can have, expected visible ASCII without a line break or a space at"
        " its ends"
    )


def test_an_invalid_header_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found the name 'api key', expected letters"):
        load("{endpoint: 'a:1', headers: {api key: x}}", tmp_path)


def test_headers_may_have_any_case_and_spaces_inside(tmp_path: Path) -> None:
    section = load(
        "{endpoint: 'a:1', headers: {Authorization: 'Bearer a b', X-Scope-OrgID: '', }}", tmp_path
    )
    assert section.headers == {"Authorization": "Bearer a b", "X-Scope-OrgID": ""}
