"""Statements for SQLite become statements for PostgreSQL."""

from __future__ import annotations

import pytest

from pathgauge.collector.store.postgres.statements import translated


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "SELECT a FROM t WHERE b = ? AND c IN (?, ?)",
            "SELECT a FROM t WHERE b = $1 AND c IN ($2, $3)",
        ),
        ("SELECT '?', 'it''s ?', ? FROM t", "SELECT '?', 'it''s ?', $1 FROM t"),
        ("SELECT ?::text, a::int FROM t", "SELECT $1::text, a::int FROM t"),
        ("SELECT a FROM t NOT INDEXED WHERE b LIKE '%'", "SELECT a FROM t  WHERE b LIKE '%'"),
        ("SELECT a FROM t INDEXED BY t_by_a WHERE a = ?", "SELECT a FROM t  WHERE a = $1"),
        ("SELECT instr(a, 'b') > 0", "SELECT strpos(a, 'b') > 0"),
        ("SELECT length(CAST(body AS BLOB)) FROM t", "SELECT octet_length(body) FROM t"),
    ],
)
def test_parameters_hints_and_functions_are_rewritten(statement: str, expected: str) -> None:
    assert translated(statement).text == expected
    assert translated(statement).values([1, 2]) == [1, 2]


def test_a_name_may_occur_more_than_once() -> None:
    found = translated("SELECT :b, ':c', x::text, :a FROM t WHERE c < :b OR :a IS NULL")
    assert found.text == "SELECT $1, ':c', x::text, $2 FROM t WHERE c < $1 OR $2 IS NULL"
    assert found.values({"a": 1, "b": 2, "unused": 3}) == [2, 1]
    assert translated("SELECT 1").values({"unused": 3}) == []
