"""The whole configuration: the sections of the file, and where they stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr

from pathgauge.collector.config import criteria
from pathgauge.collector.config.exporting import Canary, Exporters, Logging, Store, in_memory
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.config.receiving import Auth, Receivers
from pathgauge.collector.config.redacting import Redaction
from pathgauge.collector.config.scoring import (
    Assembly,
    Conversations,
    Regression,
    Scenario,
    Windows,
)
from pathgauge.collector.config.section import Section, empty, off
from pathgauge.collector.core.documents import Document, KeyPath, Problem
from pathgauge.collector.core.documents.quantities import Switch
from pathgauge.scorers.types import Json


@dataclass(frozen=True)
class _Written:
    """Where the values stand. Any two are equal: it makes no configuration another one."""

    document: Document = field(default=Document("", None), compare=False)


class Config(Section):
    """The whole file. Without any file, the defaults are a working configuration."""

    receivers: Receivers = Receivers()
    auth: Annotated[Auth | None, BeforeValidator(off)] = None
    insecure_bind: Switch = False
    redaction: Annotated[Redaction | None, BeforeValidator(off)] = None
    references: tuple[str, ...] = ()
    """Paths and patterns, relative to `folder`."""
    criteria: Annotated[dict[str, Any], BeforeValidator(empty)] = Field(
        default_factory=lambda: dict(criteria.DEFAULTS)
    )
    """As written, laid over those of `criteria_file`."""
    criteria_file: str | None = None
    judge: Annotated[Judge | None, BeforeValidator(off)] = None
    scenario: Scenario = Scenario()
    assembly: Assembly = Assembly()
    windows: Windows = Windows()
    regression: Regression = Regression()
    conversations: Conversations = Conversations()
    exporters: Exporters = Exporters()
    store: Annotated[Store | None, BeforeValidator(in_memory)] = Store()
    """`memory` is `None`: nothing outlives the process."""
    canary: Annotated[Canary | None, BeforeValidator(off)] = None
    logging: Logging = Logging()

    _folder: Path = PrivateAttr(default=Path())
    _written: _Written = PrivateAttr(default=_Written())

    @property
    def folder(self) -> Path:
        """The folder of the file, which its paths are relative to; the working directory where
        there is no file.
        """
        return self._folder

    def read_from(self, folder: Path, document: Document) -> Config:
        """This configuration as that of a file."""
        read = self.model_copy()
        read._folder, read._written = folder, _Written(document)
        return read

    def with_changes(self, changes: Mapping[str, Json]) -> Config:
        """This configuration with some of its keys replaced, in the same folder."""
        changed = self.model_copy(update=dict(changes))
        changed._folder, changed._written = self._folder, self._written
        return changed

    def problem(self, path: KeyPath, text: str) -> Problem:
        """A mistake that shows only when the configuration is put to use, at its place in the file."""
        return self._written.document.problem(path, text)
