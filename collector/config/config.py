"""The whole configuration: all sections, and their positions in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, PrivateAttr, SerializeAsAny

from pathgauge.collector.config import criteria
from pathgauge.collector.config.dialect_tables import DialectTable
from pathgauge.collector.config.drifting import Drift
from pathgauge.collector.config.exporters import Exporters, read_exporters
from pathgauge.collector.config.feedback import Feedback
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.config.operating import (
    Canary,
    Evidence,
    Logging,
    Store,
    Ui,
    in_memory,
)
from pathgauge.collector.config.postgres import Postgres
from pathgauge.collector.config.pricing import Price
from pathgauge.collector.config.receiving import Auth, Receivers
from pathgauge.collector.config.redacting import Redaction
from pathgauge.collector.config.scoring import (
    Assembly,
    Conversations,
    Scenario,
    Sessions,
    Windows,
)
from pathgauge.collector.config.section import Section, default_if_empty, none_if_false, not_text
from pathgauge.collector.config.shadowing import Shadow
from pathgauge.collector.core.documents import Document, KeyPath, Problem
from pathgauge.collector.core.documents.quantities import Switch
from pathgauge.scorers.types import Json


@dataclass(frozen=True)
class _Source:
    """The file of a configuration. All are equal, so that `Config`s compare by their values."""

    document: Document = field(default=Document("", None), compare=False)
    replaced: frozenset[str] = field(default=frozenset(), compare=False)
    """The keys whose values are not those of the file."""


class Config(Section):
    """The whole file. Without a file, the defaults are a working configuration."""

    receivers: Receivers = Receivers()
    auth: Annotated[Auth | None, BeforeValidator(none_if_false)] = None
    insecure_bind: Switch = False
    redaction: Annotated[Redaction | None, BeforeValidator(none_if_false)] = None
    references: tuple[str, ...] = ()
    """Paths and patterns, relative to `folder`."""
    criteria: Annotated[dict[str, Any], BeforeValidator(default_if_empty)] = Field(
        default_factory=lambda: dict(criteria.DEFAULTS)
    )
    """As written, merged with those of `criteria_file`."""
    criteria_file: str | None = None
    prices: Annotated[dict[str, Price], BeforeValidator(default_if_empty)] = Field(
        default_factory=dict
    )
    """By model, or by a pattern with `*`."""
    judge: Annotated[Judge | None, BeforeValidator(none_if_false)] = None
    shadow: Annotated[Shadow | None, BeforeValidator(none_if_false)] = None
    scenario: Scenario = Scenario()
    dialects: Annotated[dict[str, DialectTable], BeforeValidator(default_if_empty)] = Field(
        default_factory=dict
    )
    """Dialects of in-house frameworks, by name."""
    assembly: Assembly = Assembly()
    windows: Windows = Windows()
    drift: Annotated[Drift | None, BeforeValidator(none_if_false)] = Drift()
    conversations: Conversations = Conversations()
    sessions: Sessions = Sessions()
    exporters: Annotated[SerializeAsAny[Exporters], PlainValidator(read_exporters)] = Field(
        default_factory=lambda: read_exporters({})
    )
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Scorer processes. With 1, this process scores."""
    store: Annotated[Store | None, BeforeValidator(in_memory)] = Store()
    """`None` stands for `memory`: everything is lost when the process ends."""
    kafka: Annotated[Kafka | None, BeforeValidator(none_if_false), BeforeValidator(not_text)] = None
    postgres: Annotated[
        Postgres | None, BeforeValidator(none_if_false), BeforeValidator(not_text)
    ] = None
    evidence: Evidence = Evidence()
    feedback: Annotated[Feedback | None, BeforeValidator(none_if_false)] = Feedback()
    ui: Ui = Ui()
    canary: Annotated[Canary | None, BeforeValidator(none_if_false)] = None
    logging: Logging = Logging()

    _folder: Path = PrivateAttr(default=Path())
    _source: _Source = PrivateAttr(default=_Source())

    @property
    def folder(self) -> Path:
        """The folder that relative paths start from: that of the file, or without a file the
        working directory.
        """
        return self._folder

    def with_source(self, folder: Path, document: Document) -> Config:
        """This configuration, read from a file."""
        copy = self.model_copy()
        copy._folder, copy._source = folder, _Source(document)
        return copy

    def with_changes(self, changes: Mapping[str, Json]) -> Config:
        """This configuration with some keys replaced, in the same folder."""
        changed = self.model_copy(update=dict(changes))
        changed._folder = self._folder
        changed._source = replace(self._source, replaced=self._source.replaced | changes.keys())
        return changed

    def anchored(self) -> Config:
        """This configuration, also when the working directory changes: a plug-in may do that."""
        anchored = self.with_changes({})
        anchored._folder = self._folder.absolute()
        return anchored

    def is_written(self, key: str) -> bool:
        """Whether the value of a section or other top-level key is the one in the file."""
        written = self._source.document.data
        return isinstance(written, dict) and key in written and key not in self._source.replaced

    @property
    def is_empty_file(self) -> bool:
        """Whether the configuration was read from a file without content."""
        return self._source.document.file != "" and self._source.document.data is None

    def problem(self, path: KeyPath, text: str) -> Problem:
        """A problem found after loading, with the position of `path` in the file."""
        return self._source.document.problem(path, text)
