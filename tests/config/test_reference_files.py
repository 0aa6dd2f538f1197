"""Reference files: patterns, formats, versions, duplicates, changes."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress
from pathlib import Path

import pytest

from pathgauge.collector.config import Config, active, reference_files
from pathgauge.collector.core.documents import ConfigError
from pathgauge.scorers.types import Reference
from support.repository import REFERENCE_FILES

GOLDEN = REFERENCE_FILES
SAME = (
    "native.yaml",
    "snake_case.evalset.json",
    "camel_case.test.json",
    "vertex.csv",
    "vertex.jsonl",
    "openai.jsonl",
)
"""Files in different formats that contain the same scenario."""

KEYS = (
    "the key scenario (pathgauge), messages (chat messages), steps (LangGraph trajectories),"
    " reference_trajectory (Vertex AI dataset) or eval_cases (ADK evalset)"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that messages show short paths."""
    monkeypatch.chdir(tmp_path)
    return Path()


def write(name: str, text: str) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def scenario(name: str) -> str:
    return f"scenario: {name}\ninput: x\n"


def message(*patterns: str) -> str:
    with pytest.raises(ConfigError) as caught:
        reference_files.load(patterns)
    return str(caught.value)


def ids(*patterns: str, folder: Path = Path()) -> list[str]:
    return [entry.reference.scenario_id for entry in reference_files.load(patterns, folder).entries]


def test_patterns_are_relative_to_the_folder_and_find_each_file_once(folder: Path) -> None:
    write("conf/refs/b.yaml", scenario("b"))
    write("conf/refs/a.yaml", scenario("a"))
    write("conf/refs/deep/c.yaml", scenario("c"))
    write("conf/refs/notes.txt", "not a reference")
    assert ids("refs/a.yaml", "refs/**/*.yaml", folder=Path("conf")) == ["a", "b", "c"]
    assert ids(str(Path("conf/refs").resolve() / "*.yaml")) == ["a", "b"]


def test_a_path_with_pattern_characters_is_a_path_if_the_file_exists(
    folder: Path,
) -> None:
    write("refs[1].yaml", scenario("a"))
    assert ids("refs[1].yaml") == ["a"]


def test_a_pattern_without_files_is_a_warning_and_a_path_without_file_is_an_error(
    folder: Path,
) -> None:
    write("refs/a.yaml", scenario("a"))
    assert reference_files.load(["evalsets/*.json"]).warnings == (
        "no file matches the references 'evalsets/*.json' in .",
    )
    assert message("refs/b.yaml") == "refs/b.yaml: found no such file"
    assert (
        message("refs")
        == "refs: found a folder, expected a file or a pattern such as folder/*.yaml"
    )


def test_the_format_is_detected_from_the_content(folder: Path) -> None:
    write("a.yaml", '{"eval_cases": [{"eval_id": "a", "conversation": [{"user_content": {}}]}]}')
    write("b.json", '[{"scenario": "b", "input": "x"}]')
    assert ids("*") == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "scenari: a\ninput: x",
            f"r.yaml:1:1: found the keys scenari, input, expected {KEYS}; did you mean 'scenario'?",
        ),
        ("{}", f"r.yaml:1:1: found no keys, expected {KEYS}"),
        ("[]", f"r.yaml:1:1: found a list, expected {KEYS}"),
        ("42", f"r.yaml:1:1: found 42, expected {KEYS}"),
        ("", "r.yaml: found an empty file, expected references"),
        ("---\n# nothing\n---\n", "r.yaml: found an empty file, expected references"),
        ("a: [", "r.yaml:1:5: not YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_a_file_in_no_known_format_is_an_error(folder: Path, text: str, expected: str) -> None:
    write("r.yaml", text)
    assert message("r.yaml") == expected


def test_empty_documents_between_others_are_ignored(folder: Path) -> None:
    write("r.yaml", f"---\n---\n{scenario('a')}---\n")
    assert ids("r.yaml") == ["a"]


def test_files_that_are_not_text_are_errors(folder: Path) -> None:
    Path("r.yaml").write_bytes(b"scenario: \xff")
    assert message("r.yaml") == "r.yaml: found bytes that are not UTF-8 at offset 10, expected text"
    Path("r.yaml").write_bytes(gzip.compress(b"scenario: a"))
    assert message("r.yaml").startswith("r.yaml: found gzip data, expected text: only trace files")
    Path("r.yaml").write_text("scenario: a", encoding="utf-16")
    assert message("r.yaml") == "r.yaml: found UTF-16, expected UTF-8"


def test_a_byte_order_mark_is_ignored(folder: Path) -> None:
    Path("r.json").write_bytes(b"\xef\xbb\xbf" + b'{"scenario": "a", "input": "x"}')
    assert ids("r.json") == ["a"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone.yaml", "No such file or directory"),
        (".", "Is a directory"),
        ("\0", "embedded null byte"),
    ],
)
def test_files_that_cannot_be_read_are_errors(folder: Path, name: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        reference_files.read(Path(name))
    assert str(caught.value) == f"{name}: cannot be read: {reason}"


@pytest.mark.parametrize(
    "pattern",
    ["", "\0", "a\0*", "[", "**", "/\0", "x" * 5000, "[!]", "~", "../../../../../../../nowhere/*"],
)
def test_any_pattern_finds_files_or_is_refused(folder: Path, pattern: str) -> None:
    with suppress(ConfigError):
        assert reference_files.load([pattern]).entries == ()
    assert reference_files.fingerprint([pattern]) == ()


def test_a_duplicate_scenario_is_an_error_with_both_positions(folder: Path) -> None:
    write("a.yaml", scenario("s"))
    write("b.yaml", f"{scenario('t')}---\n{scenario('s')}")
    assert (
        message("*.yaml")
        == "b.yaml:4:1: found the scenario 's' again, expected it once (first at a.yaml:1)"
    )


def test_problems_of_all_files_are_reported_at_once(folder: Path) -> None:
    write("a.yaml", "scenario: 1\ninput: x")
    write("b.yaml", scenario("s"))
    write("c.json", "{")
    assert message("*.yaml", "c.json", "d.yaml").split("\n") == [
        "a.yaml:1:11: scenario: found 1, expected text",
        "c.json:1:2: not JSON: found the end of the file, expected a key in double quotes",
        "d.yaml: found no such file",
    ]


def test_a_reference_has_its_source(folder: Path) -> None:
    write("r.yaml", "- {scenario: a, input: x}\n- {scenario: b, input: y}\n")
    assert [entry.reference.source for entry in reference_files.load(["r.yaml"]).entries] == [
        "r.yaml:1",
        "r.yaml:2",
    ]


def versions(*names: str) -> list[str]:
    found: list[Reference] = [
        entry.reference for name in names for entry in reference_files.read(GOLDEN / name).entries
    ]
    return [reference.version for reference in found if reference.scenario_id == "lights_off"]


def test_the_version_is_the_same_for_the_same_content_in_every_format() -> None:
    assert set(versions(*SAME)) == {"23910f16c053"}


@pytest.mark.parametrize(
    "changed",
    [
        "scenario: b\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]",
        "scenario: a\ninput: y\nexpected_tools: [{name: t, args: {a: 1}}]",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 2}}]",
        "scenario: a\ninput: x\nexpected_tools: [t]",
        "scenario: a\ninput: x\nexpected_tools: []",
        "scenario: a\ninput: x",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\nexpected_response: z",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\ncriteria: {failure: 0}",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}, optional: true}]",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\nalternatives: [[]]",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\nforbidden_tools: [u]",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\nresponse_contains: [u]",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\nexpected_agent: u",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\nescalate: false",
        "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]\nagents: {u: {}}",
    ],
)
def test_the_version_changes_with_the_content(folder: Path, changed: str) -> None:
    before = write("r.yaml", "scenario: a\ninput: x\nexpected_tools: [{name: t, args: {a: 1}}]")
    version = reference_files.read(before).entries[0].reference.version
    assert reference_files.read(write("r.yaml", changed)).entries[0].reference.version != version


def test_the_order_of_keys_does_not_change_the_version(folder: Path) -> None:
    one = reference_files.read(
        write("a.yaml", "scenario: a\nexpected_tools: [{name: t, args: {a: 1, b: 2}}]")
    )
    two = reference_files.read(
        write("b.yaml", "expected_tools: [{args: {b: 2, a: 1}, name: t}]\nscenario: a")
    )
    assert one.entries[0].reference.version == two.entries[0].reference.version


def test_a_matcher_and_its_literal_form_have_different_versions(folder: Path) -> None:
    texts = [
        "{$any: true}",
        "{$ignore: true}",
        "{$literal: {$any: true}}",
        "{$literal: {$literal: {$any: true}}}",
        "{any: true}",
    ]
    written = [
        write(f"{index}.yaml", f"scenario: a\nexpected_tools: [{{name: t, args: {{x: {text}}}}}]")
        for index, text in enumerate(texts)
    ]
    assert len(
        {reference_files.read(file).entries[0].reference.version for file in written}
    ) == len(texts)


def test_default_values_do_not_change_the_version(folder: Path) -> None:
    plain = (
        "scenario: a\ninput: x\nexpected_tools: [{name: t, optional: false}, {any_order: [u]}]\n"
    )
    nothing = (
        "alternatives: []\nforbidden_tools: []\nresponse_contains: []\nagents: {}\ncriteria:"
        " {}\nthresholds: {}"
    )
    before = (
        reference_files.read(write("a.yaml", "scenario: a\ninput: x\nexpected_tools: [t, u]"))
        .entries[0]
        .reference.version
    )
    assert (
        reference_files.read(write("b.yaml", plain + nothing)).entries[0].reference.version
        == before
    )


def test_the_expected_interval_and_required_do_not_change_the_version(folder: Path) -> None:
    more = "\nexpected_interval: 1h\nrequired: true"
    one = reference_files.read(write("a.yaml", "scenario: a\ninput: x")).entries[0].reference
    two = reference_files.read(write("b.yaml", f"scenario: a\ninput: x{more}")).entries[0].reference
    assert one.version == two.version
    assert (one.expected_interval, one.required) == (None, False)
    assert (two.expected_interval, two.required) == (3600.0, True)


def test_thresholds_and_criteria_of_the_same_content_are_the_same_version(folder: Path) -> None:
    one = (
        reference_files.read(write("a.yaml", "scenario: a\ncriteria: {latency: 1.5}"))
        .entries[0]
        .reference
    )
    two = (
        reference_files.read(write("b.yaml", "scenario: a\nthresholds: {latency: 1.5}"))
        .entries[0]
        .reference
    )
    assert one.version == two.version


def test_a_problem_in_a_threshold_has_its_line(folder: Path) -> None:
    write(
        "r.yaml",
        "scenario: a\ncriteria: {failure: 0}\nthresholds:\n  latency: -5\n  no_such_scorer: 1",
    )
    with pytest.raises(ConfigError) as caught:
        active.resolve(Config(references=("r.yaml",)))
    lines = str(caught.value).split("\n")
    assert [line.split(" ")[0] for line in lines] == ["r.yaml:4:12:", "r.yaml:5:3:"]


def test_scenario_ids_that_differ_too_late_are_a_warning(folder: Path) -> None:
    write("a.yaml", scenario("x" * 200 + " one"))
    write("b.yaml", scenario("x" * 200 + " two"))
    write("c.yaml", scenario("x" * 199 + "y"))
    assert reference_files.load(["*.yaml"]).warnings == (
        "b.yaml:1:1: found a scenario id with the same first 200 characters as that at a.yaml:1;"
        " metrics and results do not tell them apart",
    )


def test_notes_of_a_format_are_warnings(folder: Path) -> None:
    write("d.jsonl", '{"prompt": "x", "reference_trajectory": []}\n')
    (warning,) = reference_files.load(["d.jsonl"]).warnings
    assert warning.startswith("d.jsonl: rows without an id")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"scenario": "a", "input": "x"}\n{"scenario": "b", "input": "x"}\n'),
        ("a.ndjson", '{"scenario": "a", "input": "x"}\n{"scenario": "b", "input": "x"}\n'),
        ("a.csv", "scenario,input\na,x\nb,x\n"),
        ("A.CSV", "scenario,input\na,x\nb,x\n"),
        ("A.JSONL", '{"scenario": "a", "input": "x"}\n{"scenario": "b", "input": "x"}\n'),
        ("A.JSON", '[\n\t{"scenario": "a", "input": "x"},\n\t{"scenario": "b", "input": "x"}\n]'),
    ],
)
def test_json_lines_and_csv_may_contain_scenarios(folder: Path, name: str, text: str) -> None:
    write(name, text)
    assert ids(name) == ["a", "b"]


def test_a_named_format_is_the_only_one_tried(folder: Path) -> None:
    file = write("r.yaml", "[{scenario: a, input: x}]")
    assert reference_files.read(file, "pathgauge").titles == {"pathgauge"}
    with pytest.raises(
        ConfigError,
        match=r"^r.yaml:1:1: found a list, expected the key eval_cases \(ADK evalset\)$",
    ):
        reference_files.read(file, "adk")


def test_a_vertex_row_with_a_scenario_id_is_not_a_native_scenario(folder: Path) -> None:
    file = write("d.jsonl", '{"scenario": "a", "prompt": "x", "reference_trajectory": []}\n')
    assert reference_files.read(file).titles == {"Vertex AI dataset"}


def test_reading_several_files_reports_all_problems(folder: Path) -> None:
    one, two, three = (
        write("a.yaml", scenario("a")),
        write("b.yaml", "scenario: 1"),
        write("c.yaml", scenario("a")),
    )
    with pytest.raises(ConfigError) as caught:
        reference_files.read_all([one, two, three])
    assert str(caught.value).split("\n")[1:] == [
        "c.yaml:1:1: found the scenario 'a' again, expected it once (first at a.yaml:1)"
    ]
    assert [
        entry.reference.scenario_id for entry in reference_files.read_all([one])["a.yaml"].entries
    ] == ["a"]


def test_the_fingerprint_changes_with_the_files(folder: Path) -> None:
    patterns = ["*.yaml"]
    seen = [reference_files.fingerprint(patterns)]
    file = write("a.yaml", scenario("a"))
    seen.append(reference_files.fingerprint(patterns))
    os.utime(file, ns=(1, 1))
    seen.append(reference_files.fingerprint(patterns))
    file.write_text(scenario("longer"), encoding="utf-8")
    os.utime(file, ns=(1, 1))
    seen.append(reference_files.fingerprint(patterns))
    write("b.yaml", scenario("b"))
    seen.append(reference_files.fingerprint(patterns))
    file.unlink()
    seen.append(reference_files.fingerprint(patterns))
    assert len(set(seen)) == len(seen)
    assert (
        reference_files.fingerprint(patterns)
        == seen[-1]
        == reference_files.load(patterns).fingerprint
    )
