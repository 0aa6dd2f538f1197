"""JSON text inside a document."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.documents import ConfigError, csv_source, embedded
from pathgauge.scorers.types import Json

DOCUMENT = csv_source.read("cell\n\n\n\n\n\n...", "f.csv")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[{"a": 1}]', [{"a": 1}]),
        ("[{'a': None, 'b': (True, 'it\\'s')}]", [{"a": None, "b": [True, "it's"]}]),
        ("{'a': 1}", {"a": 1}),
        ("['x']", ["x"]),
        ('""', ""),
    ],
)
def test_json_and_python_literals_are_parsed(text: str, value: Json) -> None:
    assert embedded.read(DOCUMENT, (0, "cell"), text) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[{",
            (
                "f.csv:7:1: [0].cell: not JSON: found the end of the text, expected a key in double"
                " quotes (character 3 of the text)"
            ),
        ),
        (
            "hello",
            "f.csv:7:1: [0].cell: not JSON: found 'h', expected a value (character 1 of the text)",
        ),
        (
            '{"a": 1, "a": 2}',
            (
                "f.csv:7:1: [0].cell.a: found the key again, expected it once (first in line 1)"
                " (character 10 of the text)"
            ),
        ),
        (
            "['a', {1, 2}]",
            'f.csv:7:1: [0].cell: not JSON: found "\'", expected a value (character 2 of the text)',
        ),
        (
            "['a', b]",
            'f.csv:7:1: [0].cell: not JSON: found "\'", expected a value (character 2 of the text)',
        ),
    ],
)
def test_a_problem_has_the_position_of_the_text(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        embedded.read(DOCUMENT, (0, "cell"), text)
    assert str(caught.value) == expected
