"""`pathgauge curate`: from traces to references that the other commands accept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from pathgauge.collector.cli import app
from support.answered import answered_trace
from support.curated_traffic import (
    BEFORE,
    LATER,
    Behaviour,
    Labelled,
    in_scenario,
    labelled,
    refund,
)
from support.held_out_traffic import HELD_OUT
from support.running import PATHGAUGE
from support.turns import otlp, script, turn

Run = Callable[..., Result]


def traces(runs: Sequence[Labelled]) -> bytes:
    return otlp(*(turn(one.script, conversation=f"{id(one)}") for one in runs))


def write(folder: Path, name: str, runs: Sequence[Labelled]) -> str:
    (folder / name).write_bytes(traces(runs))
    return name


def verdicts(run: Run, file: str) -> list[bool]:
    """Whether each invocation of a trace file meets the proposed references, in order."""
    scored = run("score", file, "--config", "pathgauge.yaml", "--json")
    lines = [json.loads(line) for line in scored.stdout.splitlines()]
    return [
        all(one["verdict"] in {"passed", "informational"} for one in line["results"].values())
        for line in lines
        if "results" in line
    ]


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", HELD_OUT, ids=lambda one: one.__name__)
def test_references_of_real_traces_tell_good_from_bad_runs(
    behaviour: Behaviour, run: Run, folder: Path
) -> None:
    seen = labelled(behaviour, 200, 21, BEFORE, 0.1)
    unseen = labelled(behaviour, 400, 22, LATER, 0.5)
    write(folder, "seen.binpb", seen)
    write(folder, "unseen.binpb", unseen)
    result = run("curate", "seen.binpb", "--yes", "--output", "references.yaml")
    assert result.exit_code == 0, result.stderr
    (folder / "pathgauge.yaml").write_text("references: [references.yaml]\n")
    assert run("validate", "--config", "pathgauge.yaml").exit_code == 0
    accepted = verdicts(run, "unseen.binpb")
    good = [ok for ok, one in zip(accepted, unseen, strict=True) if not one.bad]
    bad = [ok for ok, one in zip(accepted, unseen, strict=True) if one.bad]
    assert sum(good) >= 0.95 * len(good)
    assert sum(bad) <= 0.05 * len(bad)


def runs_of(count: int, bad_share: float = 0.1) -> list[Labelled]:
    return labelled(refund, count, 51, BEFORE, bad_share)


def test_a_person_accepts_edits_and_skips(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [in_scenario(one, name) for name in ("one", "three", "two") for one in runs_of(20)]
    write(folder, "traces", runs)
    editor = folder / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('scenario: one', 'scenario: edited'))\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    result = answered("curate", "traces", "--output", "out.yaml", keys="x\ne\na\ns\na\n")
    assert result.exit_code == 0, result.output
    documents = yaml.safe_load_all((folder / "out.yaml").read_text())
    assert [one["scenario"] for one in documents] == ["edited", "two"]
    assert "2 of 3 proposals accepted" in result.stderr
    assert "lookup_order.order_id: " in result.stderr


def test_an_edited_proposal_that_is_no_reference_is_not_written(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "traces", runs_of(20))
    editor = folder / "editor.py"
    editor.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).write_text('scenario: 7')\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    result = answered("curate", "traces", keys="e\nn\na\n")
    assert result.exit_code == 0
    assert "scenario" not in result.stdout
    assert "the edited proposal:1" in result.stderr
    assert "0 of 1 proposal accepted" in result.stderr


def edited_by(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    (folder / "editor.py").write_text(program)
    monkeypatch.setenv("VISUAL", f"{sys.executable} {folder / 'editor.py'}")


@pytest.mark.slow
def test_what_was_accepted_before_a_stop_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [in_scenario(one, name) for name in ("one", "three", "two") for one in runs_of(20)]
    write(folder, "traces", runs)
    stop = "import os, signal\nos.kill(os.getppid(), signal.SIGINT)\n"
    edited_by(monkeypatch, folder, stop)
    stopped = subprocess.run(
        [PATHGAUGE, "curate", "traces", "-o", "out.yaml"],
        input="a\ne\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert stopped.stderr.endswith("\npathgauge: 1 of 3 proposals accepted\n")
    [document] = yaml.safe_load_all((folder / "out.yaml").read_text())
    assert document["scenario"] == "one"
    ended = answered("curate", "traces", "-o", "ended.yaml", keys="a\ns\n")
    assert ended.exit_code == 2
    assert ended.stderr.endswith(
        "\npathgauge: found no further answer on standard input, expected --yes or --json\n"
        "pathgauge: 1 of 3 proposals accepted\n"
    )
    assert (folder / "ended.yaml").read_text() == (folder / "out.yaml").read_text()


@pytest.mark.parametrize("editor", ["/no/editor", "vi 'unclosed"])
def test_without_an_editor_a_proposal_stays_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, editor: str
) -> None:
    write(folder, "traces", runs_of(20))
    monkeypatch.setenv("VISUAL", editor)
    result = answered("curate", "traces", keys="e\na\n")
    assert result.exit_code == 0, result.exception
    assert f"the editor {editor!r} cannot be started: " in result.stderr
    assert "scenario: refund" in result.stdout


def test_accepted_proposals_that_cannot_be_written_are_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "traces", runs_of(20))
    (folder / "refs").mkdir()
    edited_by(monkeypatch, folder, "import pathlib\npathlib.Path('refs').rmdir()\n")
    result = answered("curate", "traces", "-o", "refs/out.yaml", keys="e\na\n")
    assert result.exit_code == 2
    assert "\nscenario: refund\n" in result.stdout
    assert result.stderr.endswith("pathgauge: refs/out.yaml: No such file or directory\n")


def answered(*arguments: str, keys: str) -> Result:
    return CliRunner().invoke(app, arguments, input=keys, env={"TERM": "dumb"})


def test_scenarios_with_a_reference_are_left_out_unless_all_are_wanted(
    run: Run, folder: Path
) -> None:
    write(folder, "traces", runs_of(20))
    (folder / "refs.yaml").write_text("scenario: refund\nexpected_tools: [lookup_order]\n")
    result = run("curate", "traces", "-r", "refs.yaml", "--yes")
    assert result.exit_code == 1
    assert "20 invocations left out: with a reference" in result.stderr
    (folder / "refs.yaml").write_text("scenario: refund\nresponse_contains: [' ']\n")
    assert run("curate", "traces", "-r", "refs.yaml", "--yes", "--all").exit_code == 0


def test_too_few_runs_give_no_proposal(run: Run, folder: Path) -> None:
    write(folder, "traces", runs_of(8))
    result = run("curate", "traces", "--yes", "--output", "out.yaml")
    assert result.exit_code == 1
    assert "scenario refund: 8 runs, expected 10 (--min-runs)" in result.stderr
    assert not (folder / "out.yaml").exists()
    assert run("curate", "traces", "--yes", "--min-runs", "5").exit_code == 0
    misspelt = run("curate", "traces", "--yes", "--min-runs", "5", "--scenario", "refnd")
    assert misspelt.exit_code == 1
    assert "no usable run of 'refnd'; did you mean 'refund'?" in misspelt.stderr


def test_proposals_as_json_have_their_evidence(run: Run, folder: Path) -> None:
    write(folder, "traces", runs_of(20, 0.0))
    [line] = run("curate", "traces", "--json", "--bad-share", "0").stdout.splitlines()
    proposal = json.loads(line)
    assert (proposal["runs"], proposal["kept"], proposal["accepted"]) == (20, 20, 20)
    [fact] = [one for one in proposal["facts"] if one["part"] == "lookup_order.order_id"][:1]
    assert fact["examples"][0].startswith("'ORD-")
    assert yaml.safe_load(proposal["yaml"]) == proposal["reference"]


def test_lint_reports_problems_and_mutations(run: Run, folder: Path) -> None:
    write(folder, "traces", [Labelled(script("s", "a", "b"), "")] * 6)
    (folder / "refs.yaml").write_text("scenario: s\nexpected_tools: [a, b]\n")
    result = run("lint", "traces", "-r", "refs.yaml")
    assert result.exit_code == 0
    assert "1 reference, matched by 6 of the last 6 runs" in result.stdout
    assert "drop a call\t2\t0\t2/2\t2" in result.stdout
    assert run("lint", "traces", "-r", "refs.yaml", "--min-noticed", "0.99").exit_code == 1
    (folder / "refs.yaml").write_text("scenario: t\nexpected_tools: [a, b]\n")
    result = run("lint", "traces", "-r", "refs.yaml", "--json")
    assert result.exit_code == 1
    [finding] = json.loads(result.stdout)["findings"]
    assert finding["text"] == "matches 0 of the last 6 runs"


def test_lint_that_checked_nothing_fails_and_finds_no_problem(run: Run, folder: Path) -> None:
    (folder / "empty.json").write_text('{"resourceSpans": []}')
    write(folder, "traces", [Labelled(script("s", "a"), "")] * 4)
    (folder / "refs.yaml").write_text("scenario: t\nexpected_tools: [a]\n")
    result = run("lint", "empty.json", "-r", "refs.yaml")
    assert result.exit_code == 1
    assert result.stdout == "1 reference, matched by 0 of the last 0 runs\n"
    assert result.stderr.endswith("\npathgauge: found no run, so nothing was checked\n")
    result = run("lint", "traces")
    assert result.exit_code == 1
    assert result.stdout == "0 references, matched by 0 of the last 4 runs\n"
    assert result.stderr == "pathgauge: found no reference, so nothing was checked\n"
    result = run("lint", "traces", "-r", "refs.yaml")  # too few runs to call it a problem
    assert (result.exit_code, result.stderr) == (0, "")


def test_people_decide_which_runs_of_files_are_learned_from(run: Run, folder: Path) -> None:
    (folder / "traces").mkdir()
    for number in range(30):
        tools = ("search", "book") if number < 15 else ("search",)
        body = otlp(turn(script("trip", *tools), conversation=f"{number}"))
        said = answered_trace(body, "awful") if number >= 15 else body
        (folder / "traces" / f"{number}.binpb").write_bytes(said)
    assert "optional: true" in run("curate", "traces", "--yes").stdout
    (folder / "pathgauge.yaml").write_text("feedback: {labels: {Awful: failed}}\n")
    result = run("curate", "traces", "--yes", "--config", "pathgauge.yaml")
    assert "15 invocations left out: called bad by people" in result.stderr
    assert "optional: true" not in result.stdout
    assert "and 15 others bad, of which it accepts 0." in result.stdout


def test_a_session_is_no_run(run: Run, folder: Path) -> None:
    write(folder, "traces", runs_of(20, 0.0))
    (folder / "pathgauge.yaml").write_text("criteria: {session_turns: 3}\n")
    result = run("curate", "traces", "--yes", "--config", "pathgauge.yaml")
    assert "of 20 runs" in result.stdout
    assert result.stdout == run("curate", "traces", "--yes").stdout


def test_turns_without_a_conversation_id_are_no_runs_of_a_scenario_without_a_reference(
    run: Run, folder: Path
) -> None:
    runs = [in_scenario(one, "trip") for one in runs_of(20)]
    (folder / "traces.binpb").write_bytes(
        otlp(*(turn(one.script, conversation="") for one in runs))
    )
    (folder / "trip.yaml").write_text(
        "{scenario: trip, turns: [{expected_tools: [a]}, {expected_tools: [b]}]}"
    )
    (folder / "pathgauge.yaml").write_text("references: [trip.yaml]\n")
    result = run("curate", "traces.binpb", "--config", "pathgauge.yaml", "--yes")
    assert "scenario: trip" not in result.stdout
    assert "20 invocations left out: with a reference" in result.stderr
