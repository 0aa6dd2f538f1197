"""Loads a configuration file, or reports every mistake in it with its position."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pathgauge.collector.config import criteria, reference_files
from pathgauge.collector.config.config import Config
from pathgauge.collector.config.criteria import Location, entries
from pathgauge.collector.config.cross_checks import problems_across_sections
from pathgauge.collector.config.kafka import with_files
from pathgauge.collector.config.reference_files import read_documents
from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    Problem,
    Problems,
    show_value,
)
from pathgauge.collector.core.documents.validation import validate
from pathgauge.scorers.types import Json


def load(
    path: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    with_scorers: bool = True,
) -> Config:
    """Read a configuration file; `None` gives the defaults. Raises `ConfigError` with every problem
    of the file.

    Scorers are built once, to check the criteria. Those who only read results do without: the
    modules of scorers may be installed elsewhere.
    """
    if path is None:
        return Config()
    problems = Problems()
    document = entries.by_name(_read(path, environment), problems)
    written = document.data if isinstance(document.data, dict) else {}
    config, merged = Config(), Config().criteria
    with problems:
        config = validate(Config, document, document.data)
        problems.found += problems_across_sections(config, document, path.parent)
    with problems:
        merged = _criteria(written, document, path.parent, with_scorers=with_scorers)
    problems.report()
    changes: dict[str, Any] = {"criteria": merged}
    if config.kafka is not None:
        changes["kafka"] = with_files(config.kafka, path.parent)
    return config.with_changes(changes).with_source(path.parent, document)


def problems_in_references(path: Path) -> tuple[Problem, ...]:
    """The problems of the reference files that a configuration names, whether the rest of it is
    valid or not. Its own problems are left out.
    """
    try:
        document = _read(path, os.environ)
    except ConfigError:
        return ()
    written = document.data.get("references") if isinstance(document.data, dict) else None
    patterns = written if isinstance(written, list) else []
    if not all(isinstance(pattern, str) for pattern in patterns):
        return ()
    loaded = reference_files.load_valid(
        patterns, path.parent, lambda index, text: document.problem(("references", index), text)
    )
    return loaded.problems


def _read(path: Path, environment: Mapping[str, str] | None = None) -> Document:
    found = read_documents(path, environment)
    if len(found) > 1:
        raise ConfigError([found[1].problem((), "found a second document, expected one")])
    return found[0] if found else Document(str(path), None)


def _criteria(
    written: Mapping[str, Json], document: Document, folder: Path, *, with_scorers: bool
) -> dict[str, Json]:
    """The criteria of the file, merged with those of its `criteria_file`. Values of wrong types are
    reported by the model, so they are ignored here.
    """
    file, own = written.get("criteria_file"), written.get("criteria")
    common: dict[str, Json] = {}
    if isinstance(file, str):
        if not os.path.isfile(folder / file):
            text = f"found no such file: {folder / file}"
            raise ConfigError([document.problem(("criteria_file",), text)])
        common = criteria_of_file(folder / file, with_scorers=with_scorers)
    if not isinstance(own, dict):
        return common or dict(criteria.DEFAULTS)
    merged = criteria.merge(common, own)
    if with_scorers:
        criteria.build(merged, Location(document, ("criteria",)), changed=own)
    return merged


def criteria_of_file(path: Path, *, with_scorers: bool = True) -> dict[str, Json]:
    """The criteria of an ADK `test_config.json`. Keys other than those of metrics are ignored."""
    problems = Problems()
    document = entries.of_adk(_read(path), problems)
    found: Json = document.data.get("criteria") if isinstance(document.data, dict) else None
    if not isinstance(found, dict):
        given = "nothing" if found is None else show_value(found)
        text = f"found {given}, expected a mapping"
        raise ConfigError([*problems.found, document.problem(("criteria",), text)])
    if with_scorers:
        with problems:
            criteria.build(found, Location(document, ("criteria",)))
    problems.report()
    return found
