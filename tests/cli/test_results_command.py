"""`pathgauge results` finds, explains and exports stored results, from a store or over HTTP."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from typer.testing import Result

from pathgauge.collector.api.queries import ResultQuery
from pathgauge.collector.cli.result_sources.following import Following
from pathgauge.collector.cli.result_sources.source import newest, source_of
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenario
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.scorers.types import ToolCall
from support.api_client import NORTH, client, sources, with_tokens
from support.evaluated import commit, evaluation, opened, raised
from support.serving import serving

Run = Callable[..., Result]

HOSTILE = '=HYPERLINK("http://x")\x1b[31m\t<b>|'
FAILED, STOPPED = evaluation("a"), evaluation("b", "stopped", agent="billing", version="2")
PASSED, UNMATCHED = evaluation("c", "passed"), evaluation("d", scenario="parcl", matched=False)
OF_NORTH = evaluation("n", scenario="northern", tenant="north")
CONFIGURATION = {"store": {"path": "data"}, "references": ["parcel.yaml"]}


def hostile(one: Evaluation) -> Evaluation:
    names: dict[str, Any] = {"agent": HOSTILE, "agent_version": "+1", "user_input": HOSTILE}
    calls = (ToolCall(HOSTILE, {HOSTILE: HOSTILE}, result=HOSTILE),)
    return replace(one, invocation=replace(one.invocation, **names, tool_calls=calls))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that has one result of each kind, and with its configuration."""
    folder = tmp_path_factory.mktemp("collector")
    (folder / "pathgauge.yaml").write_text(json.dumps(CONFIGURATION))
    (folder / "parcel.yaml").write_text("scenario: parcel\nexpected_tools: []\n")
    with opened(folder / "data", EvidencePolicy(passed_per_scenario=0)) as opened_store:
        for age, one in ((7200, FAILED), (30, STOPPED), (20, PASSED), (10, UNMATCHED)):
            commit(opened_store, [one], time.time() - age)
        commit(opened_store, [OF_NORTH], time.time() - 5)
    return folder


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[str]:
    """The URL of the API over the same store, with tokens."""
    unknown = [UnknownScenario("", "parcl", ("parcel",), 3)]
    app = client(sources(store / "data", unknown=unknown), with_tokens(store)).app
    with serving(app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def asked(source: Sequence[object], run: Run) -> Run:
    """`results` with the store, and with the API."""
    return lambda *words: run("results", *words, *source)


def traces(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    named = {
        one.invocation.trace_id: name
        for name, one in {
            "failed": FAILED,
            "stopped": STOPPED,
            "passed": PASSED,
            "unmatched": UNMATCHED,
            "north": OF_NORTH,
        }.items()
    }
    return [named[json.loads(line)["trace_id"]] for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["north", "stopped"]),
        (("--since", "3h"), ["north", "stopped", "failed"]),
        (("--since", "3h", "--until", "1h"), ["failed"]),
        (("--all",), ["north", "unmatched", "passed", "stopped"]),
        (("--verdict", "passed"), ["passed"]),
        (("--verdict", "not_evaluated"), ["unmatched"]),
        (("--agent", "billing"), ["stopped"]),
        (("--scenario", "northern"), ["north"]),
        (("--tenant", "north"), ["north"]),
        (("--version", "2"), ["stopped"]),
        (("--category", "missing_call"), ["stopped"]),
        (("--category", "slow"), []),
        (("--criterion", "trajectory"), ["north", "stopped"]),
        (("--all", "--reason", "unknown_scenario"), ["unmatched"]),
        (("--flag", "truncated"), []),
        (("--limit", "1"), ["north"]),
        (("--all", "--limit", "3"), ["north", "unmatched", "passed"]),
    ],
)
def test_results_are_found_by_the_same_filters_from_both(
    asked: Run, options: tuple[str, ...], expected: list[str]
) -> None:
    assert traces(asked(*options, "--json")) == expected


def test_an_error_of_a_scorer_is_the_first_reason(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pathgauge.yaml").write_text(json.dumps({"store": {"path": "data"}}))
    with opened(tmp_path / "data") as opened_store:
        commit(opened_store, [raised("e")], time.time())
    result = run("results", "--verdict", "error", "--config", tmp_path / "pathgauge.yaml")
    headings, row = (line.split("\t") for line in result.stdout.splitlines())
    found = dict(zip(headings, row, strict=True))
    assert (found["verdict"], found["why"]) == ("error", "own_scorer: error, unknown scenario")


def test_a_pipe_gets_one_row_for_each_result(asked: Run) -> None:
    result = asked("--agent", "billing")
    assert (result.exit_code, result.stderr) == (0, "")
    headings, row = (line.split("\t") for line in result.stdout.splitlines())
    found = dict(zip(headings, row, strict=True))
    assert found.pop("time").startswith("20")
    assert found == {
        "agent": "billing",
        "version": "2",
        "scenario": "parcel",
        "verdict": "failed",
        "category": "missing_call",
        "why": "track missing",
        "scores": "trajectory 0.000",
        "seconds": "2.0",
        "tenant": "",
        "trace": STOPPED.invocation.trace_id,
        "span": STOPPED.invocation.span_id,
    }


def test_more_results_than_are_listed_and_none_at_all_are_said(asked: Run) -> None:
    assert "there are more than these 1" in asked("--limit", "1").stderr
    for options, hint in {
        (): "--all accepts any verdict, --since finds older ones",
        ("--all",): "--since finds older ones",
    }.items():
        found = asked("--agent", "unknown", *options).stderr
        assert found == (
            f"pathgauge: no result matches; {hint}\n"
            "pathgauge: agent: found 'unknown', expected an agent with results, such as billing,"
            " support\n"
        )
    misspelt = asked("--clusters", "--agent", "suport").stderr
    assert "no failure matches" in misspelt
    assert "did you mean 'support'?" in misspelt
    other = asked("--agent", "support", "--scenario", "norhtern", "--all").stderr
    assert "expected an agent" not in other
    assert "scenario: found 'norhtern', expected a scenario with results, such as " in other
    assert other.endswith("; did you mean 'northern'?\n")


def test_a_search_for_groups_that_ends_early_is_not_taken_for_no_failures(
    asked: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathgauge.collector.store.queries.rows.FIRST_WINDOW", 1)
    monkeypatch.setattr("pathgauge.collector.store.queries.clusters.GROUP_S", -1.0)
    monkeypatch.setattr("pathgauge.collector.cli.result_sources.store.CLUSTERS_S", -1.0)
    unknown = asked("--clusters", "--agent", "unknown", "--since", "3h")
    assert unknown.stderr == (
        "pathgauge: the search ended before it found a failure; a --scenario is faster\n"
    )
    monkeypatch.setattr("pathgauge.collector.store.queries.clusters.ROWS_BETWEEN_LOOKS", 1)
    some = asked("--clusters", "--since", "3h")
    assert "pathgauge: grouped only the newest 1 failure" in some.stderr


def test_clusters_group_failures_by_what_failed(asked: Run) -> None:
    result = asked("--clusters", "--since", "3h", "--json", "--tenant", "")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["failures"], one["category"], one["signature"]) for one in found] == [
        (1, "missing_call", "track missing"),
        (1, "wrong_argument", "find_order.order differs"),
    ]
    signature = found[1]["signature"]
    assert traces(asked("--since", "3h", "--tenant", "", "--signature", signature, "--json")) == [
        "failed"
    ]


def test_unknown_scenario_ids_are_counted_with_those_most_like_them(
    asked: Run, request: pytest.FixtureRequest
) -> None:
    result = asked("--unmatched", "--csv")
    expected = 3 if "api" in request.node.name else 1  # the API knows those of the process
    assert list(csv.reader(io.StringIO(result.stdout))) == [
        ["scenario", "invocations", "closest known ids", "tenant"],
        ["parcl", str(expected), "parcel", ""],
    ]


@pytest.mark.parametrize("of_adk", [False, True])
def test_a_store_is_read_without_the_modules_of_the_scorers(
    run: Run, store: Path, tmp_path: Path, *, of_adk: bool
) -> None:
    criteria = {"criteria": {"tone": {"scorer": "not_installed_here:Tone", "threshold": 0.5}}}
    own = {**CONFIGURATION, "store": {"path": str(store / "data")}}
    own.update({"criteria_file": "adk.json"} if of_adk else criteria)
    (tmp_path / "adk.json").write_text(json.dumps(criteria))
    (tmp_path / "pathgauge.yaml").write_text(json.dumps(own))
    (tmp_path / "parcel.yaml").write_text("scenario: parcel\nexpected_tools: []\n")
    found = ("--config", tmp_path / "pathgauge.yaml")
    assert traces(run("results", *found, "--json")) == ["north", "stopped"]
    assert "parcel" in run("results", *found, "--unmatched").stdout
    assert run("results", "show", FAILED.invocation.trace_id, *found).exit_code == 0
    assert run("purge", *found, "--trace", "f" * 32).exit_code == 0
    verdict = run("verdict", *found, "--agent", "billing", "--version", "2", "--against", "1")
    assert verdict.exit_code == 2
    assert "not_installed_here" in verdict.stderr


def test_an_empty_list_of_unknown_scenario_ids_says_since_when(run: Run, tmp_path: Path) -> None:
    """An alert about them outlives a restart, after which a running collector knows none."""
    (tmp_path / "pathgauge.yaml").write_text(json.dumps({"store": {"path": "data"}}))
    with opened(tmp_path / "data") as opened_store:
        commit(opened_store, [PASSED])
    result = run("results", "--unmatched", "--config", tmp_path / "pathgauge.yaml")
    assert "those since the start or the last reload" in " ".join(result.stderr.split())


def test_the_result_of_one_of_several_tenants_is_explained(tmp_path: Path, run: Run) -> None:
    (tmp_path / "pathgauge.yaml").write_text(json.dumps({"store": {"path": "data"}}))
    with opened(tmp_path / "data") as opened_store:
        commit(opened_store, [evaluation("a", tenant=name) for name in ("", "north", "south")])
    ids = FAILED.invocation.trace_id, FAILED.invocation.span_id
    words = "results", "show", *ids, "--config", str(tmp_path / "pathgauge.yaml")
    assert "several tenants have this trace" in run(*words).stderr
    for tenant in ("", "south"):
        shown = run(*words, "--tenant", tenant, "--json")
        assert json.loads(shown.stdout)["result"]["tenant"] == tenant


def test_a_result_is_explained(asked: Run) -> None:
    result = asked("show", STOPPED.invocation.trace_id.upper())
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.partition(" ")[2] == (
        "failed, missing_call: track missing\n"
        f"  trace {STOPPED.invocation.trace_id}, span {STOPPED.invocation.span_id}\n"
        "  agent billing, version 2, scenario parcel, reference v1, seconds 2\n"
        "  user: Where is my parcel?\n"
        "  expected answer: It is in Bremen.\n"
        "  actual answer: It is in Bremen.\n"
        "  trajectory 0.000 failed: 1 of 2 expected calls matched; missing track\n"
        "  trajectory\n"
        "  \texpected\tactual\n"
        '  =\tfind_order(order="A-1")\tfind_order(order="A-1")\n'
        "  -\ttrack\t\n"
        "\n"
        "= matched, ~ other arguments, ? arguments not recorded, - missing, + unexpected\n"
        "\n"
    )


def test_a_result_without_evidence_is_shown_with_its_scores(asked: Run) -> None:
    result = asked("show", PASSED.invocation.trace_id, PASSED.invocation.span_id)
    assert result.exit_code == 0
    assert "  trajectory 1.000 passed" in result.stdout
    assert "what explains the result is not kept" in result.stderr


def test_one_invocation_of_a_trace_is_shown_as_json(asked: Run) -> None:
    result = asked("show", FAILED.invocation.trace_id, FAILED.invocation.span_id, "--json")
    [found] = map(json.loads, result.stdout.splitlines())
    assert found["evidence"]["invocation"]["final_response"] == "It is in Bremen."
    assert [call["mark"] for call in found["comparisons"][0]["calls"]] == ["~", "="]


def test_an_exported_trace_is_scored_like_the_run(asked: Run, run: Run, store: Path) -> None:
    result = asked("export", FAILED.invocation.trace_id, "--output", "trace.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "rebuilt from the evidence" in result.stderr
    [scored] = map(json.loads, run("invocations", "trace.json").stdout.splitlines())
    assert (scored["agent"], scored["scenario_id"]) == ("support", "parcel")
    assert [(one["name"], one["arguments"]) for one in scored["tool_calls"]] == [
        ("find_order", {"order": "A-2"}),
        ("track", {}),
    ]


def test_a_stored_trace_becomes_a_reference(run: Run, store: Path) -> None:
    trace = FAILED.invocation.trace_id
    result = run("record", "--from-store", trace, "--config", store / "pathgauge.yaml")
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "scenario: parcel\n"
        "input: Where is my parcel?\n"
        "expected_tools:\n"
        "  - {name: find_order, args: {order: A-2}}\n"
        "  - {name: track, args: {}}\n"
        "expected_response: It is in Bremen.\n"
    )


@pytest.mark.parametrize(
    "options", [(), ("--from-store", "x", "traces.json"), ("--url", "http://x", "traces.json")]
)
def test_a_reference_is_recorded_from_files_or_from_a_store(
    run: Run, folder: Path, options: tuple[str, ...]
) -> None:
    (folder / "traces.json").touch()
    result = run("record", *options)
    assert result.exit_code == 2
    assert "give either files, or --from-store" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--verdict", "bad"), "verdict: found 'bad', expected one of passed"),
        (("--since", "soon"), "--since: found 'soon', expected a time such as"),
        (("--category", "x"), "category: found 'x', expected one of missing_call"),
        (("--clusters", "--flag", "truncated"), "--clusters cannot be combined with --flag"),
        (("--clusters", "--all"), "--clusters cannot be combined with --all"),
        (("--unmatched", "--tenant", ""), "--unmatched cannot be combined with --tenant"),
        (("--unmatched", "--since", "1h"), "--unmatched cannot be combined with --since"),
        (("--unmatched", "--all"), "--unmatched cannot be combined with --all"),
        (("--unmatched", "--flag", "truncated"), "--unmatched cannot be combined with --flag"),
        (("--clusters", "--unmatched"), "at most one of --clusters, --unmatched and --follow"),
        (("--all", "--verdict", "passed"), "at most one of --all and --verdict"),
        (("--json", "--csv"), "at most one of --json and --csv"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_mistakes_are_named(asked: Run, words: tuple[str, ...], message: str) -> None:
    result = asked(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", ["show", "export"])
@pytest.mark.parametrize("given", [FAILED.invocation.trace_id[:8], "x" * 32])
def test_a_shortened_trace_id_is_refused_as_such(asked: Run, command: str, given: str) -> None:
    result = asked(command, given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"found {given!r}, expected the 32 hexadecimal digits of a trace id" in result.stderr


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_trace_that_is_not_stored_is_an_error(asked: Run, command: str) -> None:
    result = asked(command, "0123" * 8)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("pathgauge: ")


def test_options_in_front_of_a_command_are_refused(run: Run, store: Path) -> None:
    result = run("results", "--config", store / "pathgauge.yaml", "show", "0123")
    assert result.exit_code == 2
    assert "give options behind `show`" in result.stderr


def test_a_missing_store_and_one_in_memory_are_explained(run: Run, folder: Path) -> None:
    assert "expected the folder of a collector" in run("results").stderr
    (folder / "pathgauge.yaml").write_text("store: memory\n")
    result = run("results", "--config", "pathgauge.yaml")
    assert result.exit_code == 2
    assert "found memory, expected a store on disk" in result.stderr


def test_a_token_opens_what_it_may(
    run: Run, served: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(*options: Any) -> Result:
        return run("results", "--all", "--json", "--url", served, *options)

    result = seen()
    assert result.exit_code == 2
    assert "found no token, expected one that the collector accepts" in result.stderr
    monkeypatch.setenv("PATHGAUGE_TOKEN", "wrong-token-00000")
    assert "found an unknown token" in seen().stderr
    assert len(traces(seen("--token-file", store / "reader.token"))) == 4
    monkeypatch.setenv("PATHGAUGE_TOKEN", NORTH)
    assert traces(seen()) == ["north"]
    trace = STOPPED.invocation.trace_id
    for command in ("show", "export"):
        assert run("results", command, trace, "--url", served).exit_code == 2


def test_certificates_are_verified(run: Run, store: Path, folder: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path("ca.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path("server.pem")
    with serving(client(sources(store / "data")).app, ssl_certfile="server.pem") as port:
        url = f"https://localhost:{port}"
        result = run("results", "--url", url)
        assert (result.exit_code, result.stdout) == (2, "")
        assert (
            f"cannot ask the collector at {url}: its certificate is not accepted," in result.stderr
        )
        assert "see --ca-file" in result.stderr
        assert len(traces(run("results", "--json", "--url", url, "--ca-file", "ca.pem"))) == 2


def test_an_address_without_a_collector_is_an_error(run: Run, folder: Path) -> None:
    for url, message in {
        "ftp://example": "expected a URL",
        "http://127.0.0.1:1": "cannot ask the collector at http://127.0.0.1:1: Connection refused",
    }.items():
        result = run("results", "--url", url)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr


def test_hostile_names_cannot_run_formulas_or_control_the_terminal(run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text(json.dumps(CONFIGURATION))
    with opened(folder / "data") as opened_store:
        escape = evaluation("e", agent="a\x1b[31m")
        commit(opened_store, [escape, hostile(FAILED)], time.time())
    options = ("--config", "pathgauge.yaml")
    written = run("results", "--csv", *options).stdout
    found, other = csv.DictReader(io.StringIO(written))
    assert other["agent"] == "a\\x1b[31m"
    assert found["agent"] == "'" + HOSTILE.replace("\x1b", "\\x1b").replace("\t", "\\t")
    assert found["version"] == "'+1"
    assert found["seconds"] == "2.0"
    shown = run("results", "show", FAILED.invocation.trace_id, *options).stdout
    for text in (written, run("results", *options).stdout, shown):
        assert "\x1b" not in text
        assert not any(line.startswith("=") for line in text.splitlines() if "HYPER" in line)


def test_new_results_are_followed_without_gaps_or_repetitions(folder: Path) -> None:
    with opened(folder / "data") as opened_store:
        commit(opened_store, [evaluation("before")], 1_000.0)
        (folder / "pathgauge.yaml").write_text(json.dumps(CONFIGURATION))
        source = source_of(folder / "pathgauge.yaml")
        following = Following(source, ResultQuery(limit=1, cursor=None, verdict="failed"))
        assert following.new() == []
        expected = []
        for number in range(5):
            runs = [evaluation(f"{number} {part}") for part in "ab"]
            commit(opened_store, [*runs, evaluation(f"{number}", "passed")], 1_000.0 + number // 2)
            if number % 3:
                continue
            expected = [one.trace_id for one in following.new()]
            assert expected[-2:] == [one.invocation.trace_id for one in runs]
        assert len(expected) == 6
        assert len(following.new()) == 2
        assert following.new() == []


def test_following_waits_for_a_collector_that_restarts_but_not_for_a_token(served: str) -> None:
    query = ResultQuery(limit=1, cursor=None)
    with pytest.raises(StoreError) as away:
        Following(source_of(None, "http://127.0.0.1:1"), query)
    with pytest.raises(StoreError) as refused:
        Following(source_of(None, served), query)
    assert [Following.is_over(one.value) for one in (away, refused)] == [False, True]


def test_a_page_is_cut_to_the_number_that_is_wanted(store: Path) -> None:
    source = source_of(store / "pathgauge.yaml")
    query = ResultQuery(limit=3, cursor=None)
    assert [len(list(newest(source, query, wanted))) for wanted in (2, 4, 50)] == [2, 4, 5]


@pytest.mark.slow
def test_ten_thousand_results_are_listed_page_by_page(run: Run, folder: Path) -> None:
    (folder / "pathgauge.yaml").write_text(json.dumps(CONFIGURATION))
    with opened(folder / "data", EvidencePolicy(keep="none")) as opened_store:
        for start in range(0, 10_000, 1_000):
            runs = [evaluation(f"{number}") for number in range(start, start + 1_000)]
            commit(opened_store, runs, time.time())
    began = time.monotonic()
    result = run("results", "--limit", "20000", "--json", "--config", "pathgauge.yaml")
    assert time.monotonic() - began < 20
    found = [json.loads(line)["trace_id"] for line in result.stdout.splitlines()]
    assert found == [
        evaluation(f"{number}").invocation.trace_id for number in reversed(range(10_000))
    ]
