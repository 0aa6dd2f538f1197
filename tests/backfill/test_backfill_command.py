"""`pathgauge backfill`: what it writes, when it refuses, and what judges may cost."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pathgauge import FinalResponseMatch
from pathgauge.collector.cli import app
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import Progress
from pathgauge.collector.store.schema import MIGRATIONS
from support.answered import answered_trace
from support.backfilled import arguments, at, configured, newest_results, rows, samples
from support.evaluated import WALL, opened
from support.exports import tempo_json
from support.judge_server import JudgeRequest, JudgeServer, Reply, answering
from support.past import START, Archive, archive
from support.running import Collector, until
from support.trace_servers import Answer, Query, jaeger, trace_server
from support.two_versions import fill, runs

SECONDS = 1800
PAST = archive(60, SECONDS)
Run = Callable[..., Result]


@pytest.fixture
def traces(tmp_path: Path) -> str:
    """The address of files with the past."""
    (tmp_path / "traces.jsonl").write_bytes(b"\n".join(tempo_json(one.body) for one in PAST.traces))
    configured(tmp_path)
    return f"file://{tmp_path}/traces.jsonl"


@pytest.fixture
def backfill(tmp_path: Path, traces: str) -> Run:
    def invoke(*more: object, address: str = traces) -> Result:
        return CliRunner().invoke(app, arguments(tmp_path, address, SECONDS, *more))

    return invoke


def test_results_have_their_original_times(backfill: Run, tmp_path: Path) -> None:
    done = backfill()
    assert (done.exit_code, done.stderr) == (0, "")
    assert "done: 60 traces" in done.stdout
    series = tmp_path / "past" / "openmetrics.txt"
    assert series.is_file()
    assert f"create-blocks-from openmetrics {series} makes" in done.stdout
    starts = {one.trace_id: one.start / 1e9 for one in PAST.traces}
    found = rows(tmp_path / "past", "SELECT trace_id, at FROM results WHERE revision = 0")
    assert len(found) == len(starts)
    settle = 6.0
    for trace_id, scored in found:
        assert settle < scored - starts[trace_id] < settle + 2


def test_series_have_the_values_of_their_times(backfill: Run, tmp_path: Path) -> None:
    assert backfill("--label", "job=pathgauge", "--step", "5m").exit_code == 0
    counted = [
        (time, value)
        for labels, value, time in samples(tmp_path / "past", "pathgauge_invocations_scored_total")
    ]
    ended = sorted(
        at for (at,) in rows(tmp_path / "past", "SELECT at FROM results WHERE revision = 0")
    )
    expected = [(time, float(sum(at <= time for at in ended))) for time, _ in counted]
    assert counted == expected
    assert counted[-1][1] == 60
    assert [time % 300 for time, _ in counted[:-1]] == [0] * (len(counted) - 1)
    text = (tmp_path / "past" / "openmetrics.txt").read_text()
    of_series = [line for line in text.splitlines() if not line.startswith("#")]
    assert all('job="pathgauge"' in line for line in of_series)


@pytest.mark.slow
def test_a_finished_backfill_that_is_repeated_changes_nothing(
    backfill: Run, tmp_path: Path
) -> None:
    assert backfill("--step", "5m").exit_code == 0
    series, before = (tmp_path / "past" / "openmetrics.txt").read_text(), rows(tmp_path / "past")
    again = backfill("--step", "5m")
    assert "resumed: 0 traces" in again.stdout
    assert (tmp_path / "past" / "openmetrics.txt").read_text() == series
    assert rows(tmp_path / "past") == before
    described = [line for line in series.splitlines() if line.startswith("#")]
    assert len(described) == len(set(described))


def test_the_ordinary_commands_read_the_store(backfill: Run, tmp_path: Path) -> None:
    assert backfill().exit_code == 0
    read = ("results", "--config", str(tmp_path / "pathgauge.yaml"), "--all", "--json")
    found = CliRunner().invoke(app, [*read, "--since", "2025-10-01"])
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert Counter(json.loads(line)["verdict"] for line in lines)["passed"] > 10


def test_sessions_end_as_the_configuration_says(backfill: Run, tmp_path: Path) -> None:
    sessions = {"idle": "90s", "settle": "5s"}
    configured(tmp_path, criteria={"session_turns": 3}, sessions=sessions)
    done = backfill()
    assert "done: 60 traces" in done.stdout
    assert "60 invocations" in done.stdout
    read = rows(tmp_path / "past", "SELECT at, body FROM results WHERE revision = 0")
    found = [(at, known) for at, body in read if (known := json.loads(body).get("session"))]
    starts = {one.trace_id: one.start / 1e9 for one in PAST.traces}
    ended = [(scored, known) for scored, known in found if known["ended_by"] == "idle"]
    assert len(ended) > 40
    for scored, known in ended:
        newest = max(starts[trace_id] for trace_id, _ in known["turns"])
        assert 96 < scored - newest < 98


@pytest.mark.slow
def test_the_past_has_no_feedback_if_it_is_switched_off(backfill: Run, tmp_path: Path) -> None:
    answer = {"key": "logfire.feedback.name", "value": {"stringValue": "liked"}}
    liked = {"key": "liked", "value": {"boolValue": True}}
    lines = (tmp_path / "traces.jsonl").read_text().splitlines()
    request = json.loads(lines[0])
    request["batches"][0]["scopeSpans"][0]["spans"][0]["attributes"] += [answer, liked]
    (tmp_path / "traces.jsonl").write_text("\n".join([json.dumps(request), *lines[1:]]))
    assert backfill("--output", tmp_path / "with").exit_code == 0
    configured(tmp_path, feedback=False)
    assert backfill("--output", tmp_path / "without").exit_code == 0
    count = "SELECT count(*) FROM feedback"
    assert rows(tmp_path / "with", count) == [(1,)]
    assert rows(tmp_path / "without", count) == [(0,)]


@pytest.mark.slow
def test_a_collector_that_starts_on_the_store_has_a_past(backfill: Run, tmp_path: Path) -> None:
    begin = int(time.time()) - SECONDS
    recent = archive(60, SECONDS, begin=begin)
    (tmp_path / "traces.jsonl").write_bytes(
        b"\n".join(tempo_json(one.body) for one in recent.traces)
    )
    assert backfill("--since", at(begin), "--until", at(begin + SECONDS)).exit_code == 0
    before = newest_results(tmp_path / "past")
    settings = json.loads((tmp_path / "pathgauge.yaml").read_text())
    with Collector(tmp_path, **settings) as collector:
        assert until(lambda: collector.value("pathgauge_invocations_scored_total")) == 60
        first_seen = "pathgauge_agent_version_first_seen_timestamp_seconds"
        for (agent,), seen in collector.series(first_seen, "agent").items():
            assert agent in ("desk", "guide")
            assert begin < seen < begin + 600
        assert collector.value("pathgauge_score_window_samples", agent="desk") > 20
        learned = collector.value("pathgauge_traffic_drift_invocations", agent="guide")
        assert learned == sum(b"browse" in one.body for one in recent.traces)
    assert newest_results(tmp_path / "past") == before


@pytest.mark.parametrize("taken", [True, False])
def test_what_people_said_in_the_past_is_stored_unless_it_is_switched_off(
    backfill: Run, tmp_path: Path, *, taken: bool
) -> None:
    configured(tmp_path, **({} if taken else {"feedback": False}))
    first, *others = (one.body for one in PAST.traces)
    bodies = map(tempo_json, [answered_trace(first, "thumbs_down"), *others])
    (tmp_path / "traces.jsonl").write_bytes(b"\n".join(bodies))
    assert backfill().exit_code == 0
    found = rows(tmp_path / "past", "SELECT trace_id, given, at FROM feedback")
    assert [trace_id for trace_id, *_ in found] == [PAST.traces[0].trace_id] * taken
    for _, given, stored in found:
        assert START < given <= stored <= START + SECONDS


@pytest.mark.slow
def test_a_folder_of_something_else_is_refused(backfill: Run, tmp_path: Path) -> None:
    assert backfill().exit_code == 0
    changed = backfill("--step", "30s")
    assert changed.exit_code == 2
    assert "found a backfill with other criteria, references or options" in changed.stderr
    (tmp_path / "copy.jsonl").write_bytes((tmp_path / "traces.jsonl").read_bytes())
    for section in ({"sessions": {"idle": "2m"}}, {"feedback": False}):
        configured(tmp_path, **section)
        assert "found a backfill with other criteria" in backfill().stderr
    configured(tmp_path)
    moved = backfill(address=f"file://{tmp_path}/copy.jsonl")
    assert moved.exit_code == 2
    assert "found a backfill from file://" in moved.stderr


@pytest.mark.slow
def test_changed_references_in_shadow_need_another_folder(backfill: Run, tmp_path: Path) -> None:
    shadow = {"shadow": {"references": ["next.yaml"]}}
    configured(tmp_path, **shadow)
    (tmp_path / "next.yaml").write_text("scenario: weather\nexpected_tools: [get_weather]\n")
    assert backfill().exit_code == 0
    (tmp_path / "next.yaml").write_text("scenario: weather\nexpected_tools: []\n")
    changed = backfill()
    assert changed.exit_code == 2
    assert "found a backfill with other criteria, references or options" in changed.stderr


def test_the_store_of_a_collector_is_never_changed(backfill: Run, tmp_path: Path) -> None:
    with opened(tmp_path / "past") as store:
        fill(store, [*runs("1", "p")])
        assert store.commit(Progress(0, 5.0, WALL, counts=[Row(("traces_opened",), [1])]))
    before = rows(tmp_path / "past")
    refused = backfill()
    assert refused.exit_code == 2
    assert "found the store of a collector, expected a new folder" in refused.stderr
    assert rows(tmp_path / "past") == before


def test_a_folder_in_use_is_that_of_the_option(backfill: Run, tmp_path: Path) -> None:
    with opened(tmp_path / "past"):
        refused = backfill()
    text = "found {} in use, expected a separate folder for every collector"
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"pathgauge: --output: {text.format(tmp_path / 'past')}\n",
    )


def test_the_store_of_an_earlier_version_is_not_brought_up_to_date(
    backfill: Run, tmp_path: Path
) -> None:
    with opened(tmp_path / "past") as store:
        fill(store, [*runs("1", "p")])
    path = tmp_path / "past" / "pathgauge.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 5")
    refused = backfill()
    assert refused.exit_code == 2
    expected = (
        f"found schema version 5, expected {len(MIGRATIONS)}: an earlier version of pathgauge"
    )
    assert expected in refused.stderr
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (5,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--since", "soon"), "--since: found 'soon', expected a time such as"),
        (("--until", "2020-01-01"), "--since: found a time after --until"),
        (("--step", "10m"), "--step: found 10m, expected 1s to 5m"),
        (("--label", "job"), "--label: found 'job', expected NAME=VALUE"),
        (("--label", "__name__=x"), "--label: found '__name__=x', expected NAME=VALUE"),
        (("--label", "job=a", "--label", "job=b"), "--label: found job twice, expected it once"),
        (("--label", "agent=x"), "--label: found agent, which is a label of pathgauge_"),
        (("--tenant", "shop"), "--tenant: found 'shop', expected none"),
    ],
)
def test_a_wrong_option_is_refused(backfill: Run, options: tuple[str, ...], message: str) -> None:
    found = backfill(*options)
    assert found.exit_code == 2
    assert message in found.stderr


def test_a_period_begins_in_1970_and_ends_now_at_the_latest(backfill: Run, tmp_path: Path) -> None:
    begin = time.time()
    recent = archive(60, SECONDS, begin=int(begin) - SECONDS)
    (tmp_path / "traces.jsonl").write_bytes(
        b"\n".join(tempo_json(one.body) for one in recent.traces)
    )
    done = backfill("--since", "99999999d", "--until", "2999-01-01", "--step", "5m")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "done: 60 traces" in done.stdout
    [known] = rows(tmp_path / "past", "SELECT state FROM counts WHERE name = '[\"backfill\"]'")
    [position] = json.loads(known[0])
    assert position["since"] == 0
    assert begin - 1 < position["until"] / 1e9 <= time.time()


def test_redaction_and_tenants_apply_to_the_past(backfill: Run, tmp_path: Path) -> None:
    tenants = {
        "shop": {"token_file": "shop"},
        "desk": {"token_file": "desk"},
    }
    configured(
        tmp_path, auth={"tenants": tenants}, redaction={"content": False}, evidence={"keep": "all"}
    )
    for name in tenants:
        (tmp_path / name).write_text(f"a-token-of-the-{name}-0123456789abcdef")
    done = backfill("--tenant", "shop")
    assert (done.exit_code, done.stderr.count("expected")) == (0, 0)
    assert {row[0] for row in rows(tmp_path / "past")} == {"shop"}
    assert b"It is refunded" not in (tmp_path / "past" / "pathgauge.db").read_bytes()
    assert backfill("--tenant", "nobody").exit_code == 2


def judged(folder: Path, model: JudgeServer) -> None:
    criteria: dict[str, Any] = {"final_response_match_v2": {"threshold": 0.5, "samples": 1}}
    providers = {"local": {"base_url": model.url, "allow_private": True}}
    prices = {"judge": {"input": 1.0, "output": 10.0}}
    judge = {"model": "local:judge", "providers": providers, "prices": prices}
    configured(folder, criteria=criteria, judge=judge)


def verdict(request: JudgeRequest) -> Reply:
    right = request.data["response"] == request.data["expected_response"]
    return answering(reasoning="Compared.", verdict="valid" if right else "invalid")


@pytest.fixture
def model(tmp_path: Path, traces: str) -> Iterator[JudgeServer]:
    with JudgeServer(judge=verdict) as server:
        judged(tmp_path, server)
        yield server


def refunds(past: Archive) -> int:
    return sum(b"issue_refund" in one.body or b"I looked at it" in one.body for one in past.traces)


def test_judges_are_not_asked_before_somebody_agrees(
    backfill: Run, model: JudgeServer, tmp_path: Path
) -> None:
    refused = backfill()
    assert refused.exit_code == 2
    asked = f"invocations: about {refunds(PAST)} requests with"
    assert asked in refused.stderr
    assert "US dollars" in refused.stderr
    answers = re.search(r"at most (\d+) output tokens", refused.stderr)
    assert answers is not None
    assert int(answers[1]) == refunds(PAST) * FinalResponseMatch().max_tokens
    assert "found no terminal to ask, expected --yes, or --without-judges" in refused.stderr
    assert model.requests == []
    assert rows(tmp_path / "past") == []


def test_judges_score_the_past_within_the_estimate(
    backfill: Run, model: JudgeServer, tmp_path: Path
) -> None:
    done = backfill("--yes")
    assert done.exit_code == 0
    results = newest_results(tmp_path / "past").values()
    scored = [one for *_, body in results for one in body["criteria"] if one["value"] is not None]
    assert len(scored) == refunds(PAST)
    assert {one["value"] for one in scored} == {0.0, 1.0}
    assert 0 < len(model.requests) <= refunds(PAST)
    assert "judges gave no score" not in done.stdout
    shown = samples(tmp_path / "past", "pathgauge_score_window_mean")
    assert len({value for _, value, _ in shown}) > 1
    assert rows(tmp_path / "past", "SELECT * FROM awaited") == []


def test_the_report_says_which_scores_judges_did_not_give(
    backfill: Run, model: JudgeServer, tmp_path: Path
) -> None:
    settings = json.loads((tmp_path / "pathgauge.yaml").read_text())
    judge = {**settings["judge"], "budget": {"calls_per_day": 1}}
    configured(tmp_path, criteria=settings["criteria"], judge=judge)
    done = backfill("--yes")
    assert (done.exit_code, len(model.requests)) == (0, 1)
    reasons = [
        one["reason"]
        for *_, body in newest_results(tmp_path / "past").values()
        for one in body["criteria"]
    ]
    number = reasons.count("budget")
    assert 0 < number < refunds(PAST)
    assert f"judges gave no score in {number} cases: budget {number}\n" in done.stdout


@pytest.mark.slow
def test_a_backfill_that_goes_on_keeps_to_its_budget(
    backfill: Run, model: JudgeServer, tmp_path: Path
) -> None:
    settings = json.loads((tmp_path / "pathgauge.yaml").read_text())
    judge = {**settings["judge"], "budget": {"calls_per_day": 3}}
    configured(tmp_path, criteria=settings["criteria"], judge=judge)
    whole = jaeger(PAST)

    def until_asked(path: str, query: Query) -> Answer:
        return (400, b"not now") if len(model.requests) >= 2 else whole(path, query)

    with trace_server(until_asked) as server:
        stopped = backfill("--yes", address=f"jaeger://127.0.0.1:{server.port}")
    assert (stopped.exit_code, len(model.requests)) == (2, 2)
    with trace_server(whole, server.port) as server:
        done = backfill("--yes", address=f"jaeger://127.0.0.1:{server.port}")
    assert (done.exit_code, len(model.requests)) == (0, 3)


@pytest.mark.slow
def test_without_judges_their_criteria_are_not_evaluated(
    backfill: Run, model: JudgeServer, tmp_path: Path
) -> None:
    assert backfill("--without-judges").exit_code == 0
    assert model.requests == []
    results = newest_results(tmp_path / "past").values()
    reasons = {one["reason"] for *_, body in results for one in body["criteria"]}
    assert "judge_not_asked" in reasons
    assert "judge_unconfigured" not in reasons
    settings = json.loads((tmp_path / "pathgauge.yaml").read_text())
    del settings["judge"]
    (tmp_path / "pathgauge.yaml").write_text(json.dumps(settings))
    assert backfill("--without-judges", "--output", tmp_path / "other").exit_code == 0
    results = newest_results(tmp_path / "other").values()
    assert "judge_unconfigured" in {
        one["reason"] for *_, body in results for one in body["criteria"]
    }


@pytest.mark.slow
def test_judges_in_shadow_are_not_asked_and_somebody_is_told(
    backfill: Run, model: JudgeServer, tmp_path: Path
) -> None:
    settings = json.loads((tmp_path / "pathgauge.yaml").read_text())
    criterion = {"threshold": 0.9, "samples": 1}
    shadow = {
        "criteria": {"final_response_match_v2": criterion},
        "budget": {"calls_per_day": 1000},
    }
    configured(tmp_path, criteria={"failure": 0.5}, judge=settings["judge"], shadow=shadow)
    done = backfill()
    assert (done.exit_code, model.requests) == (0, [])
    assert done.stderr == (
        "pathgauge: shadow: a backfill does not ask judges in shadow, so these criteria have no"
        " scores there: final_response_match_v2\n"
    )
    results = newest_results(tmp_path / "past").values()
    in_shadow = [one for *_, body in results for one in body["shadow"]["criteria"]]
    assert {one["reason"] for one in in_shadow} == {"judge_not_asked"}
    unwatched = backfill("--without-judges", "--output", tmp_path / "other")
    assert "a backfill does not ask" not in unwatched.stderr
