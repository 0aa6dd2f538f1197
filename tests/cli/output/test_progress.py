"""The progress of long work: seen on a terminal only."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from pathgauge.collector.cli.output.progress import shown_progress
from support.judge_server import JudgeServer, answering
from support.running import PATIENCE_S
from support.turns import otlp, script, turn


def shown(*steps: tuple[str, int, int | None], terminal: bool) -> str:
    """What is on the screen while the steps are reported, one line for each."""
    out = StringIO()
    console = Console(file=out, force_terminal=terminal, width=80, color_system=None)
    with shown_progress(console) as progress:
        for step in steps:
            progress(*step)
    return out.getvalue()


STEPS = [("reading a.bin", 0, 1), ("judging", 2, 7), ("[red]\x1b[2J", 0, None)]


def test_a_terminal_shows_the_last_stage() -> None:
    for step, text in zip(
        STEPS, ("reading a.bin ", "judging, 2 of 7 ", "[red]\\x1b[2J "), strict=True
    ):
        assert text in shown(step, terminal=True)


def test_a_pipe_shows_nothing() -> None:
    assert shown(*STEPS, terminal=False) == ""


def read_all(file: int) -> str:
    """Everything until the other end is closed, which is an error of a terminal."""
    content = b""
    with suppress(OSError), open(file, "rb", buffering=0) as reader:
        while part := reader.read(65_536):
            content += part
    return content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_on_standard_error_if_that_is_a_terminal(
    terminal: bool, tmp_path: Path
) -> None:
    (tmp_path / "traces.bin").write_bytes(otlp(*(turn(script("s", answer=str(n))) for n in (1, 2))))
    answer = answering(reasoning="", verdict="safe").after(0.3)
    with JudgeServer(answer) as model:
        providers = {"local": {"base_url": model.url, "allow_private": True}}
        written = {
            "criteria": {"safety_v1": 1},
            "judge": {"model": "local:judge", "providers": providers},
        }
        (tmp_path / "pathgauge.yaml").write_text(yaml.safe_dump(written))
        reader, writer = pty.openpty() if terminal else os.pipe()
        command = [
            str(Path(sys.executable).with_name("pathgauge")),
            *("score", "traces.bin", "-c", "pathgauge.yaml"),
        ]
        gate = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=writer,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(writer)
        err = read_all(reader)
        out, _ = gate.communicate(timeout=PATIENCE_S)
    assert gate.returncode == 0, err
    assert ("judging, 0 of 2" in err, b"judging" in out) == (terminal, False)
    assert b"\x1b" not in out
