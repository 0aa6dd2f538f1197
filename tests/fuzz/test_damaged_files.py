"""Damaged files of operators: they are read, or every problem is told as the documentation says;
nothing else happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pathgauge.collector import config
from pathgauge.collector.config import reference_files
from pathgauge.collector.config.secret_files import SecretFileError
from pathgauge.collector.core.documents import ConfigError
from pathgauge.collector.receivers.auth.tokens import TokenFile
from support.fuzzing import Target, hold
from support.repository import REFERENCE_FILES

GOLDEN = REFERENCE_FILES
BATCHES = 4

_CONFIG = b"""\
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "${env:HOST:-127.0.0.1}:4317", max_request_bytes: 16MiB}
      http: false
references: [references/*.yaml]
criteria:
  tool_trajectory_f1: {threshold: 0.8, match_mode: name_and_args}
  loose: {scorer: tool_trajectory_f1, threshold: 0.9, ordered: false}
  latency: 30
  composite: {of: [latency, loose]}
assembly: {settle: 6s, idle: 1m30s, max_open_bytes: 512MiB}
windows:
  size: 100
store: memory
logging: {level: info}
"""
_YAML = (
    *(
        b": ",
        b"- ",
        b"? ",
        b"|\n",
        b"\n",
        b"\n  ",
        b"\t",
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"'",
        b"#",
        b"---\n",
        b"%YAML 1.1\n",
    ),
    *(
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!int ",
        b"\\x",
        b"${",
        b"${env:NO}",
        b"$$",
        b"null",
        b"~",
        b".inf",
        b"1e999",
        b"9" * 5000,
        b"-1",
    ),
    *(b"\xc3\x28", b"\xef\xbb\xbf", b"\0"),
)
_JSON = (
    b"null",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b"\\u0000",
    b"\\ud800",
    b"1e999",
    b"NaN",
    b"9" * 5000,
    b"\xc3\x28",
    b'"turns":',
    b'"args":',
)
_CSV = (b",", b'"', b"\n", b"\r", b"''", b"[{", b"}]", b"\0", b"\xc3\x28")
_TOKENS = (b"0123456789abcdef0123456789abcdef\n# for rotation\nZmVkY2JhOTg3NjU0MzIxMA==\n",)


def config_file(path: Path) -> object:
    return config.load(path, {})


def token_file(path: Path) -> object:
    return TokenFile(path).holds("0123456789abcdef0123456789abcdef")


def golden(*suffixes: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(GOLDEN.iterdir()) if path.suffix in suffixes)


@dataclass(frozen=True)
class Kind:
    """A kind of file, told by its name."""

    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path], object]
    refusal: type[Exception]
    words: tuple[bytes, ...]
    share: float

    def target(self, folder: Path) -> Target:
        path = folder / self.name

        def read(data: bytes) -> None:
            path.write_bytes(data)
            self.read(path)

        return Target(self.name, self.seeds, read, (self.refusal,), self.words, self.share)


KINDS = (
    Kind("pathgauge.yaml", (_CONFIG,), config_file, ConfigError, _YAML, 0.005),
    Kind(
        "pathgauge.json",
        (b'{"criteria": {"latency": {"threshold": 30}}, "windows": {"size": 10}}',),
        config_file,
        ConfigError,
        _JSON,
        0.02,
    ),
    Kind("references.yaml", golden(".yaml"), reference_files.read, ConfigError, _YAML, 0.01),
    Kind("references.json", golden(".json"), reference_files.read, ConfigError, _JSON, 0.05),
    Kind("references.jsonl", golden(".jsonl"), reference_files.read, ConfigError, _JSON, 0.05),
    Kind("references.csv", golden(".csv"), reference_files.read, ConfigError, _CSV, 0.05),
    Kind(
        "tokens",
        _TOKENS,
        token_file,
        SecretFileError,
        (b"\n", b" ", b"#", b"\r\n", b"=", b"\xff"),
        0.1,
    ),
)


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_read_or_its_problems_are_told(
    kind: Kind, batch: int, tmp_path: Path
) -> None:
    hold(kind.target(tmp_path), batch, BATCHES)
