"""No message about the configuration quotes what may hold a secret, wherever it was written by
mistake: messages are in logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.core.documents import ConfigError

SECRET = "s3cret-0123456789"
MAPPING = "found text, expected a mapping"
CREDENTIALS = "found an address with credentials, expected it without"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres: postgresql://u:${env:S}@h/db", f"1:11: postgres: {MAPPING}"),
        ("kafka: h:9092 ${env:S}", f"1:8: kafka: {MAPPING}"),
        ("kafka: {client: 'sasl.password=${env:S}'}", f"1:17: kafka.client: {MAPPING}"),
        ("auth: {tenants: {a: '${env:S}'}}", f"1:21: auth.tenants.a: {MAPPING}"),
        ("judge: {model: m, providers: '${env:S}'}", f"1:30: judge.providers: {MAPPING}"),
        (
            "judge: {model: m, providers: {openai: '${env:S}'}}",
            f"1:39: judge.providers.openai: {MAPPING}",
        ),
        (
            "judge: {model: m, providers: {a: {base_url: 'https://u:${env:S}@h/v1'}}}",
            f"1:45: judge.providers.a.base_url: {CREDENTIALS}",
        ),
        (
            "exporters: {otlp: {endpoint: 'h:1', headers: 'authorization=${env:S}'}}",
            f"1:46: exporters.otlp.headers: {MAPPING}",
        ),
        (
            "exporters: {otlp: {endpoint: 'https://u:${env:S}@h:1'}}",
            f"1:30: exporters.otlp.endpoint: {CREDENTIALS}",
        ),
    ],
)
def test_no_message_quotes_a_secret(text: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        config.load(file, {"S": SECRET})
    assert str(caught.value) == f"{file}:{expected}"
