"""Checks a configuration and everything that it names, for `pathgauge validate`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pathgauge.collector import config as configuration
from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, resolve
from pathgauge.collector.config.loading import problems_in_references
from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.collector.config.postgres import unreadable_files
from pathgauge.collector.config.sinks import check_sinks
from pathgauge.collector.core.documents import (
    MAX_PROBLEMS_IN_TOTAL,
    ConfigError,
    Problem,
    Problems,
)
from pathgauge.collector.receivers.auth.access import Access, load_access
from pathgauge.collector.service.cluster.roles import ALL, Role


class Checked(NamedTuple):
    """A valid configuration, and what was built from it."""

    config: Config
    active: ActiveConfig
    access: Access


def check(path: Path | None, *, insecure_bind: bool) -> Checked:
    """Read a configuration and all files that it names. Raises `ConfigError` with the problems of
    all of them.
    """
    config = _load(path)
    problems = Problems(MAX_PROBLEMS_IN_TOTAL)
    with problems:
        check_cluster(config)
    with problems:
        active = resolve(config)
    with problems:
        access = load_access(config, insecure_bind=insecure_bind)
    with problems:
        try:
            check_sinks(config)
        except PluginError as error:
            raise ConfigError([Problem(str(path or ""), None, (), str(error))]) from error
    problems.report()
    return Checked(config, active, access)


def check_cluster(config: Config, roles: frozenset[Role] = ALL) -> None:
    """Check what a client of Kafka or PostgreSQL would find, without a server. A gateway does not
    connect to PostgreSQL, and needs none of the files for it. Raises `ConfigError`.
    """
    problems = Problems()
    if config.kafka is not None:
        from pathgauge.collector.receivers.kafka.checking import check_client

        with problems:
            check_client(config)
    if config.postgres is not None and roles != {"gateway"}:
        texts = unreadable_files(config.postgres)
        problems.add(config.problem(("postgres", "conninfo"), text) for text in texts)
    problems.report()


def _load(path: Path | None) -> Config:
    try:
        return configuration.load(path)
    except ConfigError as error:
        if path is None:
            raise
        problems = Problems(MAX_PROBLEMS_IN_TOTAL)
        problems.add(error.problems)
        problems.add(problems_in_references(path))
        raise ConfigError(problems.found) from error
