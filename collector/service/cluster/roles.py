"""What a process does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from pathgauge.collector.config import Config
from pathgauge.collector.core.documents import ConfigError, Problem, did_you_mean

Role: TypeAlias = Literal["gateway", "scorer", "gauge"]
ROLES: tuple[Role, ...] = get_args(Role)
ALL: frozenset[Role] = frozenset(ROLES)


def roles_of(names: Iterable[str], config: Config) -> frozenset[Role]:
    """The roles with these names; all without any. Raises `ConfigError`."""
    wanted = list(names)
    problems = [
        Problem(
            "",
            None,
            (),
            f"--role: found {name!r}, expected one of {', '.join(ROLES)}"
            + did_you_mean(name, ROLES),
        )
        for name in wanted
        if name not in ROLES
    ]
    if wanted and config.kafka is None and not problems:
        text = (
            "--role: found no section kafka in the configuration, expected one: without Kafka and"
            " PostgreSQL one process does everything"
        )
        problems.append(Problem("", None, (), text))
    if problems:
        raise ConfigError(problems)
    return frozenset(role for role in ROLES if role in wanted) or ALL
