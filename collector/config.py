"""The configuration: a YAML or JSON file comes in, a `Config` goes out, every value checked and every default filled in.

The models below are the format, one class a section. docs/configuration.md tells it to operators.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from collector import criteria
from collector.criteria import Place
from collector.documents import ConfigError, Document, KeyPath, Problem, Problems, show_path, show_value
from collector.documents.quantities import Count, Duration, Endpoint, Size, parse_endpoint
from collector.documents.validation import validate
from collector.reading import DEFAULT_KEYS
from collector.references.files import read_documents
from scorers.types import Json

MiB = 2**20


class Section(BaseModel):
    """A mapping of the file; keys that it does not know are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, value: Json) -> Json:
        return _empty(value)


def _empty(value: Json) -> Json:
    """A key without a value means its defaults, as in the OpenTelemetry Collector."""
    return {} if value is None else value


def _off(value: Json) -> Json:
    return None if value is False else _empty(value)


class Grpc(Section):
    """OTLP over gRPC."""

    endpoint: Annotated[Endpoint, BeforeValidator(parse_endpoint)] = Endpoint("127.0.0.1", 4317)
    max_request_bytes: Size = 16 * MiB


class Http(Section):
    """OTLP over HTTP, protobuf and JSON."""

    endpoint: Annotated[Endpoint, BeforeValidator(parse_endpoint)] = Endpoint("127.0.0.1", 4318)
    max_request_bytes: Size = 16 * MiB


class Protocols(Section):
    """`false` switches a protocol off; it is `None` then."""

    grpc: Annotated[Grpc | None, BeforeValidator(_off)] = Grpc()
    http: Annotated[Http | None, BeforeValidator(_off)] = Http()

    @model_validator(mode="after")
    def _one_is_on(self) -> Protocols:
        if self.grpc is None and self.http is None:
            raise ValueError("found all protocols switched off, expected at least one to receive with")
        return self


class Otlp(Section):
    """The OTLP receiver."""

    protocols: Protocols = Protocols()


class Receivers(Section):
    """Where telemetry comes in."""

    otlp: Otlp = Otlp()


class Scenario(Section):
    """How an invocation names its scenario."""

    keys: Annotated[tuple[str, ...], Field(min_length=1)] = DEFAULT_KEYS
    match_user_input: bool = False


class Assembly(Section):
    """When a trace is complete, and how large it may grow. Times in seconds."""

    settle: Duration = 6.0
    idle: Duration = 30.0
    max_age: Duration = 600.0
    late_ttl: Duration = 300.0
    max_trace_spans: Count = 10_000
    max_trace_bytes: Size = 16 * MiB
    max_open_bytes: Size = 512 * MiB
    max_retained_bytes: Size = 32 * MiB

    @model_validator(mode="after")
    def _in_order(self) -> Assembly:
        if not self.settle <= self.idle <= self.max_age:
            found = f"found settle {self.settle:g}s, idle {self.idle:g}s, max_age {self.max_age:g}s"
            raise ValueError(f"{found}, expected settle <= idle <= max_age")
        if self.max_trace_bytes > self.max_open_bytes:
            found = f"found max_trace_bytes {self.max_trace_bytes}, max_open_bytes {self.max_open_bytes}"
            raise ValueError(f"{found}, expected max_trace_bytes <= max_open_bytes")
        return self


class Windows(Section):
    """Which scores an exported mean is taken over. Times in seconds."""

    size: Count = 100
    max_age: Duration = 3600.0
    stale_after: Duration = 3600.0
    min_samples: Count = 20

    @model_validator(mode="after")
    def _enough_fit(self) -> Windows:
        if self.min_samples > self.size:
            raise ValueError(f"found min_samples {self.min_samples}, size {self.size}, expected min_samples <= size")
        return self


class Conversations(Section):
    """When a conversation has ended. Times in seconds."""

    idle: Duration = 1800.0


class Prometheus(Section):
    """The endpoint that Prometheus scrapes."""

    endpoint: Annotated[Endpoint, BeforeValidator(parse_endpoint)] = Endpoint("127.0.0.1", 9464)
    max_series: Count = 2000


class Exporters(Section):
    """Where scores go out."""

    prometheus: Prometheus = Prometheus()


class Logging(Section):
    """What pathgauge says of itself on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["console", "json"] = "console"


def _memory(value: Json) -> Json:
    if isinstance(value, dict):
        raise ValueError("found a durable store, expected memory: this version keeps results in memory only")
    return value


class Config(Section):
    """The whole file. Without any file, the defaults are a working configuration."""

    receivers: Receivers = Receivers()
    references: tuple[str, ...] = ()
    """Paths and patterns, relative to `folder`."""
    criteria: Annotated[dict[str, Any], BeforeValidator(_empty)] = Field(default_factory=lambda: dict(criteria.DEFAULTS))
    """As written, laid over those of `criteria_file`."""
    criteria_file: str | None = None
    scenario: Scenario = Scenario()
    assembly: Assembly = Assembly()
    windows: Windows = Windows()
    conversations: Conversations = Conversations()
    exporters: Exporters = Exporters()
    store: Annotated[Literal["memory"], BeforeValidator(_memory)] = "memory"
    logging: Logging = Logging()

    _folder: Path = PrivateAttr(default=Path())

    @property
    def folder(self) -> Path:
        """The folder of the file, which its paths are relative to; the working directory where there is no file."""
        return self._folder

    def with_changes(self, changes: Mapping[str, Json]) -> Config:
        """This configuration with some of its keys replaced, in the same folder."""
        changed = self.model_copy(update=dict(changes))
        changed._folder = self._folder
        return changed


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read a configuration file; `None` gives the defaults. Raises `ConfigError` with every problem of the file.

    Scorers are built once, to check the criteria.
    """
    if path is None:
        return Config()
    document = _read(path, environment)
    written = document.data if isinstance(document.data, dict) else {}
    loaded, laid = Config(), Config().criteria
    problems = Problems()
    with problems:
        loaded = validate(Config, document, document.data)
        problems.found += _shared_endpoints(loaded, document)
    with problems:
        laid = _criteria(written, document, path.parent)
    problems.report()
    loaded = loaded.with_changes({"criteria": laid})
    loaded._folder = path.parent
    return loaded


def _read(path: Path, environment: Mapping[str, str] | None = None) -> Document:
    found = read_documents(path, environment)
    if len(found) > 1:
        raise ConfigError([found[1].problem((), "found a second document, expected one")])
    return found[0] if found else Document(str(path), None)


def _criteria(written: Mapping[str, Json], document: Document, folder: Path) -> dict[str, Json]:
    """The criteria of the file, laid over those of its `criteria_file`; values of wrong types are left to the model."""
    named, own = written.get("criteria_file"), written.get("criteria")
    common = criteria_of_file(folder / named) if isinstance(named, str) else {}
    if not isinstance(own, dict):
        return common or dict(criteria.DEFAULTS)
    laid = criteria.lay_over(common, own)
    criteria.build(laid, Place(document, ("criteria",)), changed=own)
    return laid


def criteria_of_file(path: Path) -> dict[str, Json]:
    """The criteria of an ADK `test_config.json`; what else it says is for ADK alone."""
    document = _read(path)
    found: Json = document.data.get("criteria") if isinstance(document.data, dict) else None
    if not isinstance(found, dict):
        raise ConfigError([document.problem(("criteria",), f"found {show_value(found)}, expected a mapping")])
    criteria.build(found, Place(document, ("criteria",)))
    return found


def _shared_endpoints(config: Config, document: Document) -> Iterator[Problem]:
    """Two servers cannot listen at one endpoint."""
    protocols: KeyPath = ("receivers", "otlp", "protocols")
    servers: dict[KeyPath, Grpc | Http | Prometheus | None] = {
        (*protocols, "grpc"): config.receivers.otlp.protocols.grpc,
        (*protocols, "http"): config.receivers.otlp.protocols.http,
        ("exporters", "prometheus"): config.exporters.prometheus,
    }
    taken: dict[Endpoint, KeyPath] = {}
    for path, server in servers.items():
        if server is None or server.endpoint.port == 0:
            continue
        if server.endpoint in taken:
            other = show_path((*taken[server.endpoint], "endpoint"))
            yield document.problem((*path, "endpoint"), f"found {server.endpoint}, expected another one than that of {other}")
        taken[server.endpoint] = path
