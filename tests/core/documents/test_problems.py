"""How many problems are reported, and how long their messages are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.config import reference_files
from pathgauge.collector.core.documents import (
    MAX_PROBLEMS,
    MAX_PROBLEMS_IN_TOTAL,
    ConfigError,
    Document,
    Position,
    Problem,
    Problems,
    did_you_mean,
    show_value,
)
from support.positions import at

MORE = "found more than 100 problems, the others are not listed"


def wrong(number: int) -> Problem:
    return Problem("f", Position(number, 1), ("a",), "wrong")


def loaded(folder: Path, *patterns: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        reference_files.load(patterns, folder)
    return caught.value


@given(st.lists(st.integers(1, 60), max_size=8))
def test_the_first_problems_are_reported_in_order(steps: list[int]) -> None:
    problems = Problems()
    number, error = 0, None
    try:
        for size in steps:
            with problems:
                raise ConfigError(wrong(number + index + 1) for index in range(size))
            number += size
        problems.report()
    except ConfigError as caught:
        error = caught
    expected = [wrong(index + 1) for index in range(min(sum(steps), MAX_PROBLEMS))]
    if sum(steps) > MAX_PROBLEMS:
        expected.append(Problem("f", Position(MAX_PROBLEMS, 1), (), MORE))
    assert (list(error.problems) if error else []) == expected


def test_an_error_with_endless_problems_ends() -> None:
    def endless(number: int = 0) -> Problem:
        return wrong(number)

    error = ConfigError(map(endless, iter(lambda: 7, None)))
    assert len(error.problems) == MAX_PROBLEMS_IN_TOTAL + 1


@pytest.mark.parametrize(
    ("name", "text", "needle", "number"),
    [
        ("f.json", json.dumps([{"scenario": f"s{n}", "x": n} for n in range(9999)]), '"x"', 100),
        ("f.jsonl", "{\n" * 9999, "\n", 100),
        ("f.csv", "a,b\n" + "1\n" * 9999, "1", 100),
        ("f.yaml", "scenario: s\n" * 9999, "scenario", 101),
        ("f.yml", "---\nscenario: s\nx: 1\n" * 9999, "x", 100),
        ("t.json", json.dumps({"scenario": "s", "expected_tools": [{}] * 9999}), "{}", 100),
        ("a.json", json.dumps({"eval_cases": [{"eval_id": "x"}] * 9999}), '{"eval_id', 100),
        ("v.json", json.dumps([{"reference_trajectory": 5}] * 9999), "5", 100),
    ],
)
def test_of_a_file_full_of_mistakes_the_first_hundred_are_reported(
    name: str, text: str, needle: str, number: int, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    error = loaded(tmp_path, name)
    assert len(error.problems) == MAX_PROBLEMS + 1
    last, offset = error.problems[-1], -1
    for _ in range(number):
        offset = text.index(needle, offset + 1)
    assert (last.position, last.path, last.text) == (at(text, offset), (), MORE)


def test_every_file_has_its_own_hundred(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text("{\n" * 999)
    (tmp_path / "c.jsonl").write_text("{\n")
    error = loaded(tmp_path, "*.jsonl")
    files = [Path(problem.file).name for problem in error.problems]
    assert [files.count(f"{name}.jsonl") for name in "abc"] == [101, 101, 1]


def test_of_many_files_the_first_thousand_problems_are_reported(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02}.jsonl").write_text("{\n" * 30)
    error = loaded(tmp_path, "*.jsonl")
    assert len(error.problems) == MAX_PROBLEMS_IN_TOTAL + 1
    assert str(error.problems[-1]) == (
        f"{tmp_path}/33.jsonl:10:2: found more than 1000 problems, the others are not listed"
    )


def test_of_many_repeated_scenarios_the_first_thousand_are_reported(tmp_path: Path) -> None:
    rows = "\n".join(['{"scenario": "s", "input": "x"}'] * 3000)
    (tmp_path / "s.jsonl").write_text(rows)
    error = loaded(tmp_path, "s.jsonl")
    assert len(error.problems) == MAX_PROBLEMS_IN_TOTAL + 1
    assert str(error.problems[0]) == (
        f"{tmp_path}/s.jsonl:2:1: [1]: found the scenario 's' again, expected it once (first at"
        f" {tmp_path}/s.jsonl:1)"
    )


def test_long_names_are_clipped() -> None:
    problem = Document("f", None).problem(("k" * 9999, 1), "found " + "x" * 9999)
    assert str(problem) == f"f: {'k' * 4000}…: found {'x' * 3994}…"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("x" * 58, f"'{'x' * 58}'"), ("x" * 99_999, f"'{'x' * 59}…"), (10**80, f"1{'0' * 59}…")],
)
def test_long_values_are_clipped(value: object, expected: str) -> None:
    assert show_value(value) == expected


def test_a_long_name_gets_no_hint() -> None:
    assert did_you_mean("x" * 200, ["x" * 201]) == f"; did you mean {'x' * 201!r}?"
    assert did_you_mean("x" * 201, ["x" * 200]) == ""


def test_of_many_keys_in_no_known_format_the_first_are_shown(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps({f"k{n}": n for n in range(9999)}))
    shown = ", ".join(f"k{n}" for n in range(50))
    found = str(loaded(tmp_path, "f.json"))
    assert found.startswith(
        f"{tmp_path}/f.json:1:1: found the keys {shown} and 9,949 more, expected the key scenario"
    )
