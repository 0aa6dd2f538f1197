"""The section `postgres`: the database of results, and of the state of scorers, when several
processes share it.

The address is libpq's own, so that every way to authenticate and to encrypt works. It may hold a
password: no message quotes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
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
CA = "sslrootcert"
_FILES = (CA, "sslcert", "sslkey")


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


def tls_files(postgres: Postgres) -> Mapping[str, str]:
    """The files of certificates and of a key that the address names, by libpq's settings."""
    if missing_package():
        return {}
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - the package is optional

    settings = conninfo_to_dict(postgres.conninfo)
    if settings.get("sslmode") == "disable":
        return {}
    named = {name: str(settings.get(name) or "") for name in _FILES}
    return {name: file for name, file in named.items() if file and not _is_no_file(name, file)}


def _is_no_file(name: str, value: str) -> bool:
    """Whether libpq takes it for the CAs of the system, or for a key of an engine of OpenSSL."""
    return (name, value) == (CA, "system") or (name == "sslkey" and ":" in value)


def unreadable_files(postgres: Postgres) -> Iterator[str]:
    """What is wrong with files that the address names. libpq may connect without one that is
    missing: `sslmode=require` then accepts any server.
    """
    for name, file in tls_files(postgres).items():
        try:
            Path(file).open("rb").close()
        except OSError as error:
            yield f"found {name}={file}, expected a readable file ({error.strerror})"


def missing_package() -> bool:
    """Whether the package psycopg is not installed."""
    return find_spec("psycopg") is None
