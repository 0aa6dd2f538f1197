"""`pathgauge results` with a collector that runs: it reads the same store, and follows it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT

import pytest

from support.running import PATHGAUGE, PATIENCE_S, Collector, until
from support.turns import otlp, script, trace_id, turn

pytestmark = pytest.mark.slow


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    (tmp_path / "references.yaml").write_text(
        "scenario: refund\nexpected_tools: [{name: find_user}, {name: refund_order}]\n"
    )
    with Collector(
        tmp_path,
        references=["references.yaml"],
        store={"path": "data"},
        criteria={"tool_trajectory_avg_score": 1.0},
    ) as running:
        yield running


def results(folder: Path, *options: str) -> tuple[str, str]:
    """Standard output and standard error of the real command."""
    done = subprocess.run(
        [PATHGAUGE, "results", *options, "--config", "pathgauge.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout, done.stderr


def send(collector: Collector) -> str:
    """One failing run; returns its trace id."""
    spans = turn(script("refund", "find_user"))
    assert collector.post("/v1/traces", otlp(spans))[0] == 200
    return trace_id(spans)


def test_a_failing_run_is_found_exported_and_followed_while_the_collector_runs(
    collector: Collector,
) -> None:
    folder, sent = collector.folder, list[str]()
    followed = folder / "followed.jsonl"

    def sent_until_followed() -> str:
        sent.append(send(collector))
        assert until(lambda: collector.value("pathgauge_failures_total") == len(sent))
        return followed.read_text()

    with (
        followed.open("wb") as file,
        subprocess.Popen(
            [PATHGAUGE, "results", "--follow", "--json", "--config", "pathgauge.yaml"],
            cwd=folder,
            stdout=file,
            stderr=subprocess.PIPE,
        ) as follower,
    ):
        assert until(sent_until_followed)
        follower.send_signal(SIGINT)
        _, errors = follower.communicate(timeout=PATIENCE_S)
        assert (follower.returncode, errors) == (0, b"")
    seen = [json.loads(line)["trace_id"] for line in followed.read_text().splitlines()]
    first = sent.index(seen[0])
    assert seen == sent[first : first + len(seen)]
    listed = results(folder, "--json", "--limit", "500")[0].splitlines()
    assert [json.loads(line)["trace_id"] for line in listed] == sent[::-1]
    document, note = results(folder, "export", sent[0])
    assert json.loads(document)["source"] == "journal"
    assert "from the journal, as sent" in note
    collector.stop()
    assert results(folder, "--json", "--limit", "500")[0].splitlines() == listed
