"""`pathgauge score` with criteria that ask a model: the gate waits for the judges."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from support.judge_providers import o_series
from support.judge_server import JudgeRequest, JudgeServer, Reply, answering, failing
from support.running import PATIENCE_S, until
from support.turns import otlp, script, turn

Run = Callable[..., Result]

REFERENCE = {
    "scenario": "refund",
    "turns": [{"expected_response": "Refunded."}, {"expected_response": "Goodbye."}],
}


def judge(request: JudgeRequest) -> Reply:
    """Judges by the words of the answer."""
    right = request.data["response"] == request.data["expected_response"]
    return answering(reasoning="I compared them.", verdict="valid" if right else "invalid")


def configured(folder: Path, model: JudgeServer, **more: Any) -> None:
    providers = {"local": {"base_url": model.url, "allow_private": True}}
    written = {
        "references": ["references.yaml"],
        "criteria": {"final_response_match_v2": {"threshold": 0.5, "samples": 1}},
        "judge": {"model": "local:judge", "providers": providers, "retries": 0, **more},
    }
    (folder / "references.yaml").write_text(yaml.safe_dump(REFERENCE))
    (folder / "pathgauge.yaml").write_text(yaml.safe_dump(written))


def talk(folder: Path, *answers: str) -> None:
    (folder / "traces.bin").write_bytes(
        otlp(*(turn(script("refund", answer=answer)) for answer in answers))
    )


def test_verdicts_are_part_of_the_gate_and_of_the_score_of_a_conversation(
    run: Run, folder: Path
) -> None:
    talk(folder, "Refunded.", "Goodbye.", "Anything else?")
    with JudgeServer(judge=judge) as model:
        configured(folder, model)
        shown = run("score", "traces.bin", "--config", "pathgauge.yaml", "--json")
        gate = run("score", "traces.bin", "--config", "pathgauge.yaml")
    results = [json.loads(line)["results"] for line in shown.stdout.splitlines()[:-1]]
    assert [result["final_response_match_v2"]["score"] for result in results if result] == [
        1.0,
        1.0,
    ]
    assert gate.exit_code == 0, gate.output
    assert "0.667" in gate.stdout  # the turn that nobody expected counts as 0


def test_a_verdict_below_the_threshold_fails_the_gate(run: Run, folder: Path) -> None:
    talk(folder, "No.", "Goodbye?")
    with JudgeServer(judge=judge) as model:
        configured(folder, model)
        result = run("score", "traces.bin", "--config", "pathgauge.yaml")
    assert result.exit_code == 1
    assert (
        "final_response_match_v2 for my_agent Failed. Expected 0.5, but got 0. [refund]"
        in result.stderr
    )


def test_a_gate_whose_model_fails_does_not_pass(run: Run, folder: Path) -> None:
    talk(folder, "Refunded.", "Goodbye.")
    with JudgeServer(failing(500)) as model:
        configured(folder, model)
        result = run("score", "traces.bin", "--config", "pathgauge.yaml")
    assert result.exit_code == 1
    assert "the server failed: HTTP 500: it failed" in result.stderr


SUPPORT_EVAL_PROMPT = """
You are evaluating a customer support agent. Score the trajectory on:
1. Did the agent resolve the customer's issue?
2. Did the agent avoid unnecessary tool calls?

Score 1.0 if all criteria met, 0.5 for partial, 0.0 for failure.
Explain your reasoning.
"""


@pytest.mark.parametrize(
    ("criterion", "score"),
    [
        ({"scorer": "trajectory_accuracy"}, True),
        (
            {"scorer": "llm_judge", "prompt": SUPPORT_EVAL_PROMPT, "choices": [0, 0.5, 1]},
            1.0,
        ),
    ],
)
def test_o3_mini_judges_as_written(
    run: Run, folder: Path, criterion: dict[str, Any], score: object
) -> None:
    """The model refuses the temperature, and its reasoning does not fit into the default limit."""
    talk(folder, "Refunded.")
    answer = answering(reasoning="It did.", score=score)
    with JudgeServer(judge=o_series(answer)) as model:
        provider = {"base_url": model.url, "api_key": "sk-1234567", "allow_private": True}
        written = {
            "criteria": {"judged": {"model": "openai:o3-mini", "threshold": 1, **criterion}},
            "judge": {"model": "openai:gpt-4.1-mini", "providers": {"openai": provider}},
        }
        (folder / "pathgauge.yaml").write_text(yaml.safe_dump(written))
        result = run("score", "traces.bin", "--config", "pathgauge.yaml")
    assert result.exit_code == 0, result.output
    assert {request.body["model"] for request in model.requests} == {"o3-mini"}


def test_all_files_share_one_budget_and_one_cache(run: Run, folder: Path) -> None:
    for name, answers in {
        "one.bin": ("Refunded.", "Goodbye."),
        "two.bin": ("Refunded.", "Bye."),
    }.items():
        (folder / name).write_bytes(
            otlp(*(turn(script("refund", answer=answer)) for answer in answers))
        )
    with JudgeServer(judge=judge) as model:
        configured(folder, model, budget={"calls_per_day": 2})
        result = run("score", "one.bin", "two.bin", "--config", "pathgauge.yaml", "--json")
    results = [
        json.loads(line)["results"]["final_response_match_v2"]
        for line in result.stdout.splitlines()[:-1]
    ]
    assert [one["reason"] or one["score"] for one in results] == [1.0, 1.0, 1.0, "budget"]
    assert len(model.requests) == 2


@contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """Restores SIGINT for child processes. Shells make background processes ignore it, and children
    inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_ctrl_c_ends_it_while_a_model_is_asked(folder: Path) -> None:
    talk(folder, "Refunded.")
    with JudgeServer(judge=lambda request: replace(judge(request), delay=PATIENCE_S)) as model:
        configured(folder, model)
        command = [
            str(Path(sys.executable).with_name("pathgauge")),
            "score",
            "traces.bin",
            "--config",
            "pathgauge.yaml",
        ]
        with heeding_ctrl_c():
            gate = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        assert until(lambda: bool(model.requests))
        gate.send_signal(signal.SIGINT)
        said = gate.communicate(timeout=PATIENCE_S)
    assert (gate.returncode, *said) == (130, "", "")
