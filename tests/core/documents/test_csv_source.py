"""CSV with positions."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.documents import ConfigError, Document, Position, csv_source

NAMES = st.lists(
    st.text("abc,\"'\n é", min_size=1, max_size=3), min_size=1, max_size=4, unique=True
)


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        csv_source.read(text, "f.csv")
    return str(caught.value)


def test_each_row_is_a_mapping_with_the_position_of_its_first_line() -> None:
    text = 'id,prompt\n1,"two\nlines, and ""quotes"""\n\n2,three\n3,\n'
    document = csv_source.read(text, "f.csv")
    assert document == Document(
        "f.csv",
        [
            {"id": "1", "prompt": 'two\nlines, and "quotes"'},
            {"id": "2", "prompt": "three"},
            {"id": "3"},
        ],
    )
    assert [document.position(path) for path in ((), (0,), (1,), (2,), (3,))] == [
        Position(1, 1),
        Position(2, 1),
        Position(5, 1),
        Position(6, 1),
        Position(1, 1),
    ]


def test_a_cell_has_the_position_of_its_row() -> None:
    assert csv_source.read("a,b\n1,2\n3,4", "f.csv").position((1, "b", 0)) == Position(3, 1)


@pytest.mark.parametrize("text", ["", "\n", "a,b\n", "\n\na,b\n\n"])
def test_text_without_rows_is_an_empty_list(text: str) -> None:
    assert csv_source.read(text, "f.csv").data == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a,b\n1,2\n1\n1,2,3",
            (
                "f.csv:3:1: found 1 cell, expected 2 as in the first row\nf.csv:4:1: found 3"
                " cells, expected 2 as in the first row"
            ),
        ),
        ("\na,b,a\n", "f.csv:2:1: found the column 'a' again, expected it once"),
        (
            "a,,b\n1,2,3",
            "f.csv:1:1: found a column without a name, expected names in the first row",
        ),
        ("a;b\n1;2", "f.csv:1:1: found columns separated by ';', expected commas"),
        ("a\tb\n1\t2", "f.csv:1:1: found columns separated by '\\t', expected commas"),
        ('a\n1\n"2', "f.csv:3:1: not CSV: unexpected end of data"),
        ('a\n"1"2\n', "f.csv:2:1: not CSV: ',' expected after '\"'"),
    ],
)
def test_a_problem_has_the_line_of_its_row(text: str, expected: str) -> None:
    assert message(text) == expected


@given(
    NAMES.flatmap(
        lambda names: st.lists(
            st.fixed_dictionaries(dict.fromkeys(names, st.text("ab,\"'\n\u2028é"))), min_size=1
        )
    )
)
def test_written_csv_is_read_back_without_empty_cells(rows: list[dict[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    assert csv_source.read(text.getvalue(), "f.csv").data == [
        {name: cell for name, cell in row.items() if cell} for row in rows
    ]
