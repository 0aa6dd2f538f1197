"""The section `postgres`: the database of results, and of the state of scorers, when several
processes share it.

The address is libpq's own, so that every way to authenticate and to encrypt works. It may hold a
password: no message quotes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated

from pydantic import AfterValidator, Field

from pathgauge.collector.config.section import Section
from pathgauge.collector.core.documents import did_you_mean

_EXPECTED = (
    "an address such as postgresql://pathgauge@db.example/pathgauge?sslmode=verify-full, or libpq's"
    " names and values such as host=db.example dbname=pathgauge"
)
_CHOICES: Mapping[str, Sequence[str]] = {
    "sslmode": ("prefer", "disable", "allow", "require", "verify-ca", "verify-full"),
    "channel_binding": ("prefer", "disable", "require"),
    "gssencmode": ("prefer", "disable", "require"),
}
"""Values that libpq checks only when it connects; the defaults come first."""


def _conninfo(value: str) -> str:
    if "=" not in value and not value.startswith(("postgresql://", "postgres://")):
        raise ValueError(f"found something else, expected {_EXPECTED}")
    if missing_package():
        return value
    from psycopg import ProgrammingError  # noqa: PLC0415 - the package is optional
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        settings = conninfo_to_dict(value)
    except (ProgrammingError, UnicodeError):
        raise ValueError(f"found an address that libpq cannot read, expected {_EXPECTED}") from None
    for name, choices in _CHOICES.items():
        found = str(settings.get(name) or choices[0])
        if found not in choices:
            hint = did_you_mean(found, choices)
            raise ValueError(f"found {name}={found}, expected one of {', '.join(choices)}{hint}")
    return value


class Postgres(Section):
    """The database."""

    conninfo: Annotated[str, AfterValidator(_conninfo), Field(repr=False)]
    """A connection string of libpq. Passwords may also come from `PGPASSFILE` and the like."""


def certificates_of(postgres: Postgres) -> Mapping[str, str]:
    """The files of certificates that the address names, by libpq's settings."""
    if missing_package():
        return {}
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - the package is optional

    settings = conninfo_to_dict(postgres.conninfo)
    named = {name: settings.get(name) for name in ("sslrootcert", "sslcert")}
    return {name: str(file) for name, file in named.items() if file and file != "system"}


def missing_package() -> bool:
    """Whether the package psycopg is not installed."""
    return find_spec("psycopg") is None
