"""Every example, run as a user runs it, makes a running collector give full marks: nothing is lost
between a framework and its score.

Examples install their frameworks from the network, so that only the one without does run by
default. `PATHGAUGE_EXAMPLES=1`, as set by `make examples`, runs all of them, and
`PATHGAUGE_EXAMPLES=short` those of `SHORT`. `PATHGAUGE_EXAMPLES=newest`, as set by `make
dialects-newest`, runs all with the newest release of every package, also beyond the versions that
an example was written for, and prints the versions.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.repository import ROOT
from support.running import Collector, until

EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "instrumenting.md"

MODEL = EXAMPLES / "scripted_model.py"
BY_HAND = "by_hand.py"
SHORT = (
    BY_HAND,
    "google_adk_agent.py",
    "langgraph_openinference.py",
    "openai_agents_openinference.py",
    "pydantic_ai_agent.py",
)
AGENTS = sorted(
    path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".mjs"} and path != MODEL
)
DEMANDED = os.environ.get("PATHGAUGE_EXAMPLES", "")
NEWEST = DEMANDED == "newest"

INSTALL_S, RUN_S = 400, 120
"""Far more than an installation and a run take; only a failure waits so long."""

REFERENCES = EXAMPLES / "references" / "support.yaml"
SCENARIO = "refund_damaged"
ANSWER = "I have refunded 59.90 euros to your card."
ANSWERS_BY_TOOL = ("smolagents_agent.py",)
"""Whose agent gives its answer as a call of the tool `final_answer`."""

MEAN = "pathgauge_score_window_mean"
CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": 1.0, "failure": 0.0}

METADATA = re.compile(r"^# /// script\n(.*?)^# ///$", re.MULTILINE | re.DOTALL)
UPPER_BOUND = re.compile(r",?<[^,\]]*")
NPM_VERSION = re.compile(r"(?<=.)@[0-9.]+$")
NPM_INSTALL = re.compile(r"\A// npm install ((?:.*\n//  )*.*)")


@pytest.fixture(name="model")
def _model() -> Iterator[dict[str, str]]:
    """The variables under which an example finds the scripted model, which runs."""
    with subprocess.Popen(
        [sys.executable, MODEL, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield dict(
            assignment.split("=", 1) for assignment in shlex.split(process.stdout.readline())[1:]
        )
        process.terminate()


def metadata(example: Path) -> dict[str, object]:
    """What the inline metadata of a Python script says."""
    found = METADATA.search(example.read_text())
    assert found, f"{example.name} has no `# /// script`"
    return tomllib.loads(re.sub("^# ?", "", found[1], flags=re.MULTILINE))


def packages(example: Path) -> list[str]:
    """What an example needs, as its package manager takes it."""
    if example.suffix == ".py":
        dependencies = metadata(example)["dependencies"]
        assert isinstance(dependencies, list)
        return dependencies
    found = NPM_INSTALL.search(example.read_text())
    assert found, f"{example.name} does not begin with `// npm install`"
    return found[1].replace("//", "").split()


def wanted(example: Path) -> list[str]:
    """What to install of them."""
    if not NEWEST:
        return packages(example)
    if example.suffix == ".py":
        return [UPPER_BOUND.sub("", package) for package in packages(example)]
    return [
        # Of these, not every newest release accepts the newest of the others.
        package if package.startswith("@opentelemetry/") else NPM_VERSION.sub("@latest", package)
        for package in packages(example)
    ]


def installed(name: str, folder: Path) -> list[str | Path]:
    """The command that runs an example, after its packages were installed."""
    example = EXAMPLES / name
    if name == BY_HAND:
        return [sys.executable, example]
    if example.suffix == ".mjs":
        if not works("npm"):
            pytest.skip("`npm` is not installed")
        install(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *wanted(example)])
        say_versions(["npm", "ls", "--prefix", folder])
        return ["node", shutil.copy(example, folder)]
    if works("uv") and not NEWEST:
        options = ["--quiet", "--no-python-downloads", "--python", sys.executable]
        install(["uv", "sync", *options, "--script", example])
        return ["uv", "run", *options, "--offline", example]
    python = folder / "venv" / "bin" / "python"
    install([sys.executable, "-m", "venv", folder / "venv"])
    install(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *wanted(example),
        ]
    )
    say_versions([python, "-m", "pip", "freeze"])
    return [python, example]


def reference(name: str) -> dict[str, Any]:
    """The reference of an example; the same for all, as far as their frameworks allow."""
    [found] = [
        scenario
        for scenario in yaml.safe_load(REFERENCES.read_text())
        if scenario["scenario"] == SCENARIO
    ]
    found["expected_tools"] += ["final_answer"] if name in ANSWERS_BY_TOOL else []
    return dict(found)


def works(program: str) -> bool:
    """Whether a program is there, and not only a shim of its name."""
    try:
        return (
            subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False


def install(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def say_versions(command: list[str | Path]) -> None:
    if NEWEST:
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.examples
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.slow
def test_an_example_gets_full_marks(name: str, model: dict[str, str], tmp_path: Path) -> None:
    if name != BY_HAND and not (DEMANDED and (DEMANDED != "short" or name in SHORT)):
        pytest.skip("installs a framework from the network: see `make examples`")
    command = installed(name, tmp_path)
    (tmp_path / "references.yaml").write_text(yaml.safe_dump(reference(name)))
    with Collector(tmp_path, references=["references.yaml"], criteria=CRITERIA) as collector:
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OTEL_", "OPENAI_", "GOOGLE_"))
        }
        environment |= {
            **model,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.ports['http']}",
        }
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=RUN_S, check=False
        )
        assert (done.returncode, done.stdout.strip().splitlines()[-1:]) == (0, [ANSWER]), (
            done.stderr
        )

        full_marks = {(SCENARIO, metric): mark for metric, mark in CRITERIA.items()}
        until(lambda: collector.series(MEAN, "scenario", "metric") == full_marks)
        assert collector.series(MEAN, "scenario", "metric") == full_marks, collector.log()
        one = {("scenario", "ok"): 1.0}
        until(
            lambda: collector.series("pathgauge_invocations_total", "match", "status") == one
        )  # counts are shown once they are durable
        assert collector.series("pathgauge_invocations_total", "match", "status") == one
        assert collector.series("pathgauge_invocation_flags_total", "flag") == {}


@pytest.mark.parametrize("name", AGENTS)
def test_an_example_names_the_versions_that_it_was_written_for(name: str) -> None:
    unbounded = [
        package for package in packages(EXAMPLES / name) if not re.search(r"[@<>=]\d", package[1:])
    ]
    assert unbounded == ([] if name != BY_HAND else ["pathgauge"])


@pytest.mark.parametrize(
    ("name", "newest"),
    [
        ("pydantic_ai_agent.py", "pydantic-ai-slim[openai]>=2.68"),
        ("vercel_ai_sdk.mjs", "@ai-sdk/openai@latest"),
    ],
)
def test_the_newest_release_may_be_beyond_the_versions_of_an_example(
    name: str, newest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "NEWEST", True)
    assert newest in wanted(EXAMPLES / name)
    assert not any("<" in package for package in wanted(EXAMPLES / name))


@pytest.mark.parametrize("name", AGENTS)
def test_an_example_says_how_to_run_it(name: str) -> None:
    command = f"uv run examples/{name}" if name.endswith(".py") else f"node {name}"
    assert f"`{command}`" in (EXAMPLES / name).read_text()


@pytest.mark.parametrize("name", AGENTS)
def test_the_page_about_instrumenting_leads_to_every_example(name: str) -> None:
    assert f"](../examples/{name})" in PAGE.read_text()
