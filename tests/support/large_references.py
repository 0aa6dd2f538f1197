"""Large reference files of every kind: many scenarios, one huge scenario, deep nesting, long lines,
and many mistakes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import yaml

Row = dict[str, Any]

CALL = {"name": "lookup", "args": {"order": "A-1", "lines": [1, 2]}}
TEXT = 'lorem "ipsum" \\ é\n'


class Kind(NamedTuple):
    """A kind of file. `text` makes one whose size grows with `n`."""

    suffix: str
    text: Callable[[int], str]


def native(n: int) -> Row:
    """A scenario in the native format."""
    return {
        "scenario": f"s{n}",
        "input": f"Do {n}",
        "expected_tools": [CALL, {"name": "refund", "args": {"order": f"A-{n}"}}],
        "expected_response": "Your refund is on its way.",
    }


def vertex(n: int) -> Row:
    """A row of a Vertex AI dataset."""
    calls = [{"tool_name": "lookup", "tool_input": {"order": n}}]
    return {"id": f"s{n}", "prompt": f"Do {n}", "reference_trajectory": calls, "reference": "Ok"}


def adk(n: int) -> Row:
    """A case of an ADK evalset."""
    return {
        "eval_id": f"s{n}",
        "conversation": [
            {
                "user_content": {"parts": [{"text": "Hi"}]},
                "final_response": {"parts": [{"text": "Ok"}]},
                "intermediate_data": {"tool_uses": [{"name": "lookup", "args": {"x": n}}]},
            }
        ],
    }


def graph(n: int) -> Row:
    """A LangGraph trajectory."""
    return {
        "id": f"s{n}",
        "inputs": [f"Do {n}"],
        "outputs": {
            "results": [{"messages": [{"role": "assistant", "content": "Ok"}]}],
            "steps": [["__start__", "planner", "booking"]],
        },
    }


def messages(n: int) -> Row:
    """A row of chat messages."""
    function = {"name": "lookup", "arguments": '{"order": 1}'}
    return {
        "id": f"s{n}",
        "messages": [
            {"role": "user", "content": f"Do {n}"},
            {"role": "assistant", "content": "", "tool_calls": [{"function": function}]},
            {"role": "assistant", "content": "Ok"},
        ],
    }


def nested(levels: int, inner: Any) -> Any:
    """A value inside lists and mappings."""
    for level in range(levels):
        inner = {"k": inner, "j": 1} if level % 2 else [1, inner]
    return inner


def to_yaml(data: Any, **style: Any) -> str:
    """The data as YAML."""
    text: str = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, **style)
    return text


def to_lines(rows: Iterable[Row]) -> str:
    """The rows as JSON lines."""
    return "\n".join(map(json.dumps, rows))


def to_csv(rows: list[Row], show: Callable[[Any], str] = json.dumps) -> str:
    """The rows as CSV; `show` writes values that are not text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: cell if isinstance(cell, str) else show(cell) for key, cell in row.items()}
        )
    return text.getvalue()


def rows(row: Callable[[int], Row], n: int, **changes: Any) -> list[Row]:
    """So many rows. A change to `None` removes a key."""
    changed = [{**row(i), **changes} for i in range(n)]
    return [{key: cell for key, cell in row.items() if cell is not None} for row in changed]


def columns(rows: list[Row]) -> dict[str, list[Any]]:
    """The rows as columns, as pandas writes them."""
    return {key: [row[key] for row in rows] for key in rows[0]}


def one(**keys: Any) -> str:
    """A file with one scenario."""
    return json.dumps({"scenario": "s", **keys})


def conversation(*later: Row, n: int) -> str:
    """One list of chat messages."""
    return json.dumps([{"role": "user", "content": "Hi"}, *(list(later) * n)])


KINDS: Mapping[str, Kind] = {
    "native, one line": Kind(".json", lambda n: json.dumps(rows(native, n))),
    "native, indented": Kind(".json", lambda n: json.dumps(rows(native, n), indent=2)),
    "native, JSON lines": Kind(".jsonl", lambda n: to_lines(rows(native, n))),
    "native, YAML": Kind(".yaml", lambda n: to_yaml(rows(native, n))),
    "native, YAML in one line": Kind(".yaml", lambda n: json.dumps(rows(native, n))),
    "native, YAML documents": Kind(".yaml", lambda n: "---\n".join(map(to_yaml, rows(native, n)))),
    "native, own criteria": Kind(
        ".json", lambda n: json.dumps(rows(native, n, thresholds={"tool_trajectory_f1": 0.5}))
    ),
    "native, unknown keys": Kind(".json", lambda n: json.dumps(rows(native, n, inptu=1))),
    "native, unknown keys in YAML": Kind(".yaml", lambda n: to_yaml(rows(native, n, inptu=1))),
    "native, the same id": Kind(".json", lambda n: json.dumps(rows(native, n, scenario="s"))),
    "native, many turns": Kind(".json", lambda n: one(turns=[{"expected_tools": ["a"]}] * n)),
    "native, many calls": Kind(".json", lambda n: one(expected_tools=[CALL] * 3 * n)),
    "native, many wrong calls": Kind(".json", lambda n: one(expected_tools=[{"nmae": 1}] * 3 * n)),
    "native, calls in any order": Kind(
        ".json", lambda n: one(expected_tools=[{"any_order": [CALL] * 3 * n}])
    ),
    "native, many arguments": Kind(
        ".json",
        lambda n: one(expected_tools=[{"name": "a", "args": {f"x{i}": i for i in range(9 * n)}}]),
    ),
    "native, many wrong matchers": Kind(
        ".json",
        lambda n: one(
            expected_tools=[{"name": "a", "args": {f"x{i}": {"$regex": "("} for i in range(n)}}]
        ),
    ),
    "native, a wrong matcher after many arguments": Kind(
        ".json",
        lambda n: one(
            expected_tools=[{"name": "a", "args": {"x": [0] * 9 * n, "y": {"$regex": "("}}}]
        ),
    ),
    "native, a matcher of many values": Kind(
        ".json",
        lambda n: one(
            expected_tools=[{"name": "a", "args": {"x": {"$any_order": [*range(9 * n)]}}}]
        ),
    ),
    "native, many alternatives": Kind(
        ".json", lambda n: one(expected_tools=["a"], alternatives=[["a", "b"]] * 2 * n)
    ),
    "native, many agents": Kind(
        ".json", lambda n: one(agents={f"a{i}": {"expected_tools": []} for i in range(2 * n)})
    ),
    "native, many thresholds": Kind(
        ".json", lambda n: one(thresholds={f"m{i}": 1 for i in range(9 * n)})
    ),
    "native, deep": Kind(
        ".json",
        lambda n: one(expected_tools=[{"name": "a", "args": {"x": nested(80, 1)}}] * (n // 20)),
    ),
    "native, deep and wrong": Kind(
        ".json",
        lambda n: one(
            expected_tools=[{"name": "a", "args": {"x": nested(80, {"$regex": 5})}}] * (n // 20)
        ),
    ),
    "native, deep YAML": Kind(
        ".yaml",
        lambda n: to_yaml(
            {
                "scenario": "s",
                "expected_tools": [{"name": "a", "args": {"x": nested(80, n)}}] * (n // 20),
            }
        ),
    ),
    "native, long text": Kind(".json", lambda n: one(input=TEXT * 90 * n)),
    "native, long text in YAML": Kind(".yaml", lambda n: one(input=TEXT * 90 * n)),
    "native, long block in YAML": Kind(
        ".yaml", lambda n: "scenario: s\ninput: |\n" + "  lorem ipsum\n" * 50 * n
    ),
    "native, long comment in YAML": Kind(
        ".yaml", lambda n: "scenario: s\n" + "# lorem ipsum\n" * 50 * n + "input: a"
    ),
    "native, YAML anchors": Kind(
        ".yaml",
        lambda n: (
            "scenario: s\nexpected_tools:\n"
            + "".join(f"- &a{i} {{name: a, args: {{x: {i}}}}}\n- *a{i}\n" for i in range(n))
        ),
    ),
    "native, a YAML alias": Kind(
        ".yaml", lambda n: "scenario: s\nexpected_tools:\n- &a {name: a, args: {}}\n" + "- *a\n" * n
    ),
    "not YAML at the end": Kind(".yaml", lambda n: to_yaml(rows(native, n // 4)) + "\n  ]"),
    "not JSON at the end": Kind(".json", lambda n: json.dumps(rows(native, n))[:-1]),
    "not JSON in every line": Kind(".jsonl", lambda n: "{\n" * 50 * n),
    "repeated keys in YAML": Kind(".yaml", lambda n: "scenario: s\n" + "input: x\n" * 9 * n),
    "only brackets": Kind(".json", lambda n: "[" * 500 * n),
    "only brackets in YAML": Kind(".yaml", lambda n: "[" * 500 * n),
    "no known key": Kind(".json", lambda n: json.dumps({f"k{i}": i for i in range(9 * n)})),
    "many columns": Kind(
        ".csv", lambda n: ",".join(f"c{i}" for i in range(20 * n)) + "\n" + ",".join("1" * 20 * n)
    ),
    "rows that are too short": Kind(".csv", lambda n: "a,b\n" + "1\n" * 50 * n),
    "Vertex, CSV": Kind(".csv", lambda n: to_csv(rows(vertex, n))),
    "Vertex, CSV of pandas": Kind(".csv", lambda n: to_csv(rows(vertex, n), repr)),
    "Vertex, CSV without ids": Kind(".csv", lambda n: to_csv(rows(vertex, n, id=None))),
    "Vertex, the same prompt": Kind(
        ".json", lambda n: json.dumps(rows(vertex, n, id=None, prompt="x"))
    ),
    "Vertex, columns": Kind(".json", lambda n: json.dumps(columns(rows(vertex, n)))),
    "Vertex, wrong columns": Kind(
        ".json", lambda n: json.dumps(columns(rows(vertex, n, prompt=5)))
    ),
    "Vertex, a long trajectory": Kind(
        ".json", lambda n: json.dumps(rows(vertex, 1, reference_trajectory=["a"] * 9 * n))
    ),
    "Vertex, a long trajectory in text": Kind(
        ".json",
        lambda n: json.dumps(
            rows(
                vertex,
                1,
                reference_trajectory=json.dumps([{"tool_name": "a", "tool_input": "{}"}] * n),
            )
        ),
    ),
    "ADK": Kind(".json", lambda n: json.dumps({"eval_cases": rows(adk, n)})),
    "ADK, wrong cases": Kind(
        ".json", lambda n: json.dumps({"eval_cases": rows(adk, n, conversation=5)})
    ),
    "ADK, many invocations": Kind(
        ".json",
        lambda n: json.dumps({"eval_cases": rows(adk, 1, conversation=adk(0)["conversation"] * n)}),
    ),
    "LangGraph": Kind(".json", lambda n: json.dumps(rows(graph, n))),
    "LangGraph, without ids": Kind(".json", lambda n: json.dumps(rows(graph, n, id=None))),
    "LangGraph, many turns": Kind(".json", lambda n: json.dumps({"steps": [["a", "b"]] * 3 * n})),
    "messages": Kind(".json", lambda n: json.dumps(rows(messages, n))),
    "messages without ids": Kind(".json", lambda n: json.dumps(rows(messages, n, id=None))),
    "messages, a long conversation": Kind(
        ".json", lambda n: conversation(*messages(0)["messages"], n=n)
    ),
    "messages, all of the user": Kind(
        ".json", lambda n: conversation({"role": "user", "content": "x" * 50}, n=5 * n)
    ),
    "messages of nobody": Kind(
        ".json", lambda n: conversation({"role": "nobody", "content": "x"}, n=2 * n)
    ),
    "messages with many calls": Kind(
        ".json",
        lambda n: conversation(
            {"role": "assistant", "tool_calls": [{"name": "a", "args": {}}] * 3 * n}, n=1
        ),
    ),
}
