"""`workers: 2`, with real processes: results are those of one process, and what an operator does
reaches every scorer.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.testing import span, trace_id
from support.judge_server import JudgeServer, answering
from support.running import PATHGAUGE, PATIENCE_S, Collector, until

pytestmark = pytest.mark.slow

REFERENCES: list[dict[str, Any]] = [
    {"scenario": "refund", "expected_tools": ["find_order", "refund"]},
    {"scenario": "dialogue", "turns": [{"expected_tools": ["greet"]}, {"expected_tools": []}]},
]
ASSEMBLY = {"settle": "300ms", "idle": "600ms", "max_age": "60s", "late_ttl": "60s"}


@contextmanager
def collector(folder: Path, workers: int = 2, **configuration: Any) -> Iterator[Collector]:
    folder.mkdir(exist_ok=True)
    (folder / "references.json").write_text(json.dumps(REFERENCES))
    settings = {
        "references": ["references.json"],
        "criteria": {"tool_trajectory_f1": 0.5, "tool_calls": None},
        "assembly": ASSEMBLY,
        "store": {},
        "workers": workers,
    }
    with Collector(folder, **(settings | configuration)) as running:
        yield running


def scorers(collector: Collector) -> list[int]:
    """The scorer processes, by their ids."""
    pid = collector.process.pid
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def run(
    name: str, *tools: str, secret: bytes = b"", more: dict[str, Any] | None = None
) -> list[Span]:
    """One agent run, which is a trace."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "pathgauge.scenario.id": "refund",
        "secret": secret or None,
        **(more or {}),
    }
    spans = [span(name, "invoke_agent support", attributes, trace=name, end=9.0)]
    for number, tool in enumerate(tools):
        called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        spans.append(
            span(f"{name} {tool}", tool, called, trace=name, parent=name, start=number + 1.0)
        )
    return spans


def names(count: int, prefix: str = "run") -> list[str]:
    """Names of traces, as many for each of two scorers."""
    found: dict[int, list[str]] = {0: [], 1: []}
    number = 0
    while min(map(len, found.values())) < count:
        name, number = f"{prefix} {number}", number + 1
        found[partition_of_trace(trace_id(name), 2)].append(name)
    return [name for both in zip(found[0][:count], found[1][:count], strict=True) for name in both]


def send(collector: Collector, *runs: list[Span], **headers: str) -> None:
    """Send all in one request until it is accepted."""
    body = encode_request([one for spans in runs for one in spans])
    assert until(lambda: collector.post("/v1/traces", body, **headers)[0] == 200)


def scored(collector: Collector) -> float:
    return collector.value("pathgauge_invocations_scored_total")


def test_all_pages_and_the_api_show_what_scorers_have_found(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        both = names(1)
        send(running, *(run(name, "find_order") for name in both))
        assert until(lambda: scored(running) == 2)
        for name in both:
            status, page = running.get(f"/api/v1/results/{trace_id(name)}")
            assert (status, trace_id(name) in page) == (200, True), page
        assert "refund" in running.get("/")[1]
        assert running.get("/readyz")[0] == 200


def unready(collector: Collector) -> str:
    """What `/readyz` says with a 503; empty if it is ready."""
    status, text = collector.get("/readyz")
    return text if status == 503 else ""


def test_a_request_to_a_scorer_that_is_down_is_refused_until_it_is_back(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        first, *_ = scorers(running)
        os.kill(first, signal.SIGSTOP)  # a signal for the group would reach it, too
        os.kill(first, signal.SIGKILL)
        assert "scorer" in until(lambda: unready(running))
        assert running.get("/metrics")[0] == 200
        assert until(lambda: running.get("/readyz")[0] == 200)
        assert running.value("pathgauge_scorer_restarts_total") == 1
        send(running, *map(run, names(2)))
        assert until(lambda: running.value("pathgauge_invocations_read_total") == 4)


def test_a_scorer_that_hangs_is_not_up_and_a_purge_names_it(tmp_path: Path) -> None:
    def is_up() -> float:
        return running.value("pathgauge_scorer_up", scorer="0")

    with collector(tmp_path) as running:
        first, *_ = scorers(running)
        assert is_up() == 1
        os.kill(first, signal.SIGSTOP)
        config = tmp_path / "pathgauge.yaml"
        ended = subprocess.run(
            [PATHGAUGE, "purge", "--config", config, "--trace", trace_id("run")],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (
            2,
            "pathgauge: scorer 0 does not answer, so not everything was removed: purge again when"
            " /readyz is 200\n",
        )
        assert is_up() == 0
        assert running.get("/debug/traces")[0] == 200
        assert until(lambda: running.events("scorer does not answer"))
        os.kill(first, signal.SIGCONT)
        assert until(lambda: running.events("scorer answers again"))
        assert is_up() == 1
        assert running.value("pathgauge_scorer_restarts_total") == 0
        assert len(running.events("scorer does not answer")) == 1


def test_pages_and_metrics_answer_while_all_scorers_are_down(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        for pid in scorers(running):
            os.kill(pid, signal.SIGKILL)
        for path in ("/metrics", "/"):
            assert running.get(path)[0] == 200
        assert running.get("/debug/traces")[0] == 200
        assert until(lambda: running.get("/readyz")[0] == 200)
        ended = running.events("scorer ended; it is started again")
        assert [line["signal"] for line in ended] == ["SIGKILL"] * len(scorers(running))


def test_open_traces_of_all_scorers_are_explained(tmp_path: Path) -> None:
    waiting = ASSEMBLY | {"idle": "50s"}
    with collector(tmp_path, assembly=waiting) as running:
        both = names(1)
        for name in both:
            child = run(name)
            child[0].proto.parent_span_id = b"12345678"
            send(
                running,
                [Span(child[0].proto.SerializeToString(), child[0].resource, child[0].scope)],
            )
        assert until(lambda: running.value("pathgauge_traces_open") == 2)
        page = running.get("/debug/traces")[1]
        assert [trace_id(name) in page for name in both] == [True, True]


def test_reloads_reach_all_scorers_and_those_that_are_started_later(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        running.configure(
            references=["references.json"],
            criteria={"tool_trajectory_avg_score": 1.0},
            assembly=ASSEMBLY,
            conversations={"idle": "1h"},  # needs a restart, as does:
            workers=3,
            store={},
        )
        (tmp_path / "references.json").write_text(
            json.dumps([{"scenario": "refund", "expected_tools": ["look"]}])
        )
        running.signal(signal.SIGHUP)
        assert until(lambda: running.events("reloaded"))
        tries = count(1)

        def passed() -> float:
            labels = {"metric": "tool_trajectory_avg_score", "outcome": "pass"}
            return running.value("pathgauge_evaluations_total", **labels)

        def is_applied() -> bool:
            """Whether a run passes at each scorer."""
            before, number = passed(), next(tries)
            send(running, *(run(name, "look") for name in names(1, f"try {number}")))
            read = "pathgauge_invocations_read_total"
            assert until(lambda: running.value(read) == 2 * number)
            return passed() == before + 2

        assert until(is_applied)  # scorers apply it on their own
        for pid in scorers(running):
            os.kill(pid, signal.SIGKILL)
        assert is_applied()


def test_scorers_that_are_started_while_references_are_invalid_have_the_last_valid_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "shadow.json").write_text(json.dumps(REFERENCES))
    shadow = {"references": ["shadow.json"]}
    with collector(tmp_path, shadow=shadow) as running:
        for name in ("references.json", "shadow.json"):
            (tmp_path / name).write_text("{")
        assert until(
            lambda: running.events("reload failed, the last good configuration stays active")
        )
        for pid in scorers(running):
            os.kill(pid, signal.SIGKILL)
        send(running, *(run(name, "find_order", "refund") for name in names(1)))
        assert until(lambda: scored(running) == 2)
        passed = running.value(
            "pathgauge_evaluations_total", metric="tool_trajectory_f1", outcome="pass"
        )
        shadowed = running.value(
            "pathgauge_shadow_changes_total", metric="tool_trajectory_f1", change="same"
        )
        assert (passed, shadowed) == (2, 2)


def test_the_canary_is_scored(tmp_path: Path) -> None:
    with collector(tmp_path, canary={"interval": "1s"}) as running:
        assert until(lambda: running.value("pathgauge_canary_traces_total", outcome="ok") > 1)


def test_judges_of_all_scorers_keep_to_one_budget(tmp_path: Path) -> None:
    with JudgeServer(answering(reasoning="Nothing harmful in it.", verdict="safe")) as model:
        provider = {"base_url": model.url, "api_key": "none", "allow_private": True}
        judge = {
            "model": "local:judge",
            "providers": {"local": provider},
            "budget": {"calls_per_day": 5},
            "cache_size": 0,
            "queue_size": 11,
            "concurrency": 3,
        }
        with collector(tmp_path, criteria={"safety_v1": 1.0}, judge=judge) as running:
            outputs = "gen_ai.output.messages"
            send(running, *(run(name, more={outputs: said(name)}) for name in names(6)))
            assert until(
                lambda: (
                    (
                        running.value("pathgauge_evaluations_total", metric="safety_v1")
                        + running.value("pathgauge_not_evaluated_total", metric="safety_v1")
                    )
                    >= 12
                )
            )
            assert running.value("pathgauge_queue_capacity", queue="judges") == 11 + 3
        assert len(model.requests) == 5


def said(text: str) -> str:
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])


def purged(folder: Path, *selection: str) -> None:
    config = folder / "pathgauge.yaml"
    subprocess.run([PATHGAUGE, "purge", "--config", config, *selection], check=True)


def files_with(folder: Path, marker: bytes) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in (folder / "pathgauge-data").rglob("*")
        if path.is_file() and marker in path.read_bytes()
    ]


@pytest.mark.parametrize("running", [True, False])
def test_a_purge_leaves_no_byte_in_any_file(tmp_path: Path, running: bool) -> None:
    marker = {name: Random(name).randbytes(200) for name in names(1)}
    with collector(tmp_path, logging={"format": "json", "level": "debug"}) as one:
        for name, secret in marker.items():
            talk = {"gen_ai.conversation.id": name, "pathgauge.scenario.id": "dialogue"}
            send(one, run(name, "find_order", secret=secret, more=talk))
        assert until(lambda: scored(one) == 2)
        assert all(files_with(tmp_path, secret) for secret in marker.values())
        for name in marker if running else ():
            purged(tmp_path, "--trace", trace_id(name))
            assert files_with(tmp_path, marker[name]) == []
    for name in () if running else marker:
        purged(tmp_path, "--trace", trace_id(name))
        assert files_with(tmp_path, marker[name]) == []


@pytest.mark.parametrize("running", [True, False])
def test_a_purge_of_a_tenant_reaches_all_scorers(tmp_path: Path, running: bool) -> None:
    marker = {tenant: Random(tenant).randbytes(200) for tenant in ("blue", "green")}
    tenants = {tenant: {"token_file": tenant} for tenant in marker}
    for tenant in tenants:
        (tmp_path / tenant).write_text(f"{tenant}-{'0' * 32}\n")
    open_for_long = ASSEMBLY | {"settle": "40s", "idle": "50s"}
    with collector(tmp_path, auth={"tenants": tenants}, assembly=open_for_long) as one:
        for tenant, secret in marker.items():
            runs = [run(name, "find_order", secret=secret) for name in names(2)]
            send(one, *runs, authorization=f"Bearer {tenant}-{'0' * 32}")
        assert all(len(files_with(tmp_path, secret)) >= 2 for secret in marker.values())
        if running:
            purged(tmp_path, "--tenant", "blue")
    if not running:
        purged(tmp_path, "--tenant", "blue")
    assert files_with(tmp_path, marker["blue"]) == []
    assert len(files_with(tmp_path, marker["green"])) >= 2


def test_a_scorer_without_its_store_goes_on_without_what_it_held(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        send(running, *map(run, names(5)))
        assert until(lambda: running.value("pathgauge_invocations_read_total") == 10)
    [folder] = (tmp_path / "pathgauge-data").glob("scorers-*/0")
    shutil.rmtree(folder)
    folder.mkdir()
    with collector(tmp_path) as again:
        send(again, *map(run, names(2, "again")))
        assert until(lambda: again.value("pathgauge_invocations_read_total") == 14)


def test_a_stop_without_any_traffic_is_quick_and_silent(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 6
        assert [line for line in running.log() if line["level"] in ("error", "warning")] == []


def test_a_start_without_a_usable_store_says_why(tmp_path: Path) -> None:
    with collector(tmp_path):
        pass
    [folder] = (tmp_path / "pathgauge-data").glob("scorers-*/1")
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "pathgauge.db").mkdir()
    reason = reason_of_scorer(tmp_path, 1)
    assert "pathgauge.db" in reason


def test_a_scorer_that_cannot_start_names_the_place_of_the_mistake(tmp_path: Path) -> None:
    with collector(tmp_path):
        pass
    configuration = tmp_path / "pathgauge.yaml"
    settings = json.loads(configuration.read_text())
    [folder] = (tmp_path / "pathgauge-data").glob("scorers-*/1")
    (folder / "lock").unlink()
    (folder / "lock").mkdir()
    settings["store"] = {"path": "pathgauge-data"}
    configuration.write_text(json.dumps(settings, indent=1))
    reason = reason_of_scorer(tmp_path, 1)
    assert reason.startswith(
        f"{place(configuration, 'pathgauge-data')}: store.path: found {folder},"
    )

    (tmp_path / "tone.py").write_text(
        "import sys\n"
        "from pathgauge import ToolTrajectoryF1\n"
        "if sys.argv[0].endswith('process.py'): raise OSError('no licence here')\n"
    )
    settings["criteria"] = {"tone": {"scorer": "tone:ToolTrajectoryF1"}}
    configuration.write_text(json.dumps(settings, indent=1))
    reason = reason_of_scorer(tmp_path, 0)
    assert reason.startswith(f"{place(configuration, 'tone:')}: criteria.tone.scorer: importing")
    assert "no licence here" in reason


def place(file: Path, value: str) -> str:
    """Where a value stands in a file."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if f'"{value}' in line:
            return f"{file}:{number}:{line.index(value)}"
    raise AssertionError(value)


def reason_of_scorer(folder: Path, scorer: int) -> str:
    """Why it cannot start, as the log says."""
    command = [str(PATHGAUGE), "serve", "--config", str(folder / "pathgauge.yaml")]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert ended.returncode != 0
    [*lines, last] = ended.stderr.splitlines()
    assert last == "pathgauge: a scorer process did not start; the log says why"
    told = [line for line in map(json.loads, lines) if line["event"] == "scorer cannot start"]
    [line, *_] = [one for one in told if one["scorer"] == scorer]
    assert line["level"] == "error"
    return str(line["reason"])


def test_a_stop_does_not_wait_for_turns_on_their_way_between_scorers(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        for name in names(20):
            talk = {"gen_ai.conversation.id": name, "pathgauge.scenario.id": "dialogue"}
            send(running, run(name, "greet", more=talk))
        time.sleep(0.4)
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 6
        assert [line for line in running.log() if line["level"] in ("error", "warning")] == []


def test_no_process_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    with collector(tmp_path) as running:
        pids = scorers(running)
        running.stop(signal.SIGKILL)
        assert until(lambda: not any(map(is_running, pids)))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False
