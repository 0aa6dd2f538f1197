"""What the user of the database may do. Tables and their rights are asked for at a start, so that a
process without them ends with a reason instead of trying again for ever.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres.connection import PostgresConnection
from pathgauge.collector.store.postgres.schema import MIGRATIONS, version

_VERSIONS = "pathgauge_schema"
_TABLES = (_VERSIONS, *re.findall(r"CREATE TABLE (\w+)", "".join(MIGRATIONS)))
_NEEDED = ("SELECT", "INSERT", "UPDATE", "DELETE")
_LACKED = """
SELECT name, needed FROM unnest($1::text[], $2::text[]) AS asked (name, needed)
WHERE to_regclass(name) IS NOT NULL AND NOT has_table_privilege(name, needed)
"""
_NOT_OWNED = """
SELECT name FROM unnest($1::text[]) AS asked (name)
JOIN pg_class ON pg_class.oid = to_regclass(name) WHERE NOT pg_has_role(pg_class.relowner, 'USAGE')
"""
_SHOWN = 5


def check(connection: PostgresConnection) -> None:
    """Raises `StoreError` that says which rights the user lacks on what, and `psycopg.Error`."""
    raw = connection.raw
    user, schema = raw.execute("SELECT current_user, current_schema()").fetchone() or ("", None)
    if schema is None:
        lacked = ["USAGE on a schema of its search_path"]
    else:
        lacked = list(_on_tables(connection)) or list(_for_migration(connection, schema))
    if lacked:
        raise StoreError(
            f"postgres: the user {user} lacks {'; '.join(lacked)}; expected the owner of the"
            " database and its tables"
        )


def _on_tables(connection: PostgresConnection) -> Iterator[str]:
    """The rights that are lacked on tables which exist."""
    asked = [(table, right) for table in _TABLES for right in _NEEDED]
    columns = [[table for table, _ in asked], [right for _, right in asked]]
    found = set(connection.raw.execute(_LACKED, columns))
    lacked: dict[str, list[str]] = defaultdict(list)
    for table in _TABLES:
        if rights := [right for right in _NEEDED if (table, right) in found]:
            lacked[", ".join(rights)].append(table)
    for rights_on, tables in lacked.items():
        yield f"{rights_on} on {_shown(tables)}"


def _for_migration(connection: PostgresConnection, schema: str) -> Iterator[str]:
    """The rights that are lacked to bring the tables to this version."""
    if version(connection) >= len(MIGRATIONS):
        return
    raw = connection.raw
    found = raw.execute("SELECT has_schema_privilege($1, 'CREATE')", [schema]).fetchone()
    if found is not None and not found[0]:
        yield f"CREATE on the schema {schema}"
    others = {name for (name,) in raw.execute(_NOT_OWNED, [list(_TABLES)])}
    if not_owned := [name for name in _TABLES if name in others]:
        yield f"the ownership of {_shown(not_owned)}, which an earlier version has made"


def _shown(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} other tables"
