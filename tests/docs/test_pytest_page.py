"""docs/pytest.md and docs/getting-a-trace-file.md work: their examples are run as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import DOCS

PAGE = (DOCS / "pytest.md").read_text(encoding="utf-8")
AGENT, TEST, TEST_OF_PROCESS, PROCESS, TEST_OF_ALL, TEST_OF_CALLS, SCRIPT = re.findall(
    r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)
[REFERENCE] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
[FAILURE] = re.findall(r"^```\n(the invocations.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TRACE_FILES = (DOCS / "getting-a-trace-file.md").read_text(encoding="utf-8")
[EXPORTER] = re.findall(r"^```python\n(.*?)^```", TRACE_FILES, re.MULTILINE | re.DOTALL)

INI = "[pytest]\naddopts = --strict-markers -p no:asyncio\nfilterwarnings = error\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the page."""
    (tmp_path / "references").mkdir()
    files = {
        "agent.py": AGENT,
        "references/refund.yaml": REFERENCE,
        "test_refund.py": TEST,
        "test_process.py": TEST_OF_PROCESS,
        "run_agent.py": PROCESS,
        "test_all.py": TEST_OF_ALL,
        "test_calls.py": TEST_OF_CALLS,
        "script.py": SCRIPT,
        "pytest.ini": INI,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> str:
    """The output of a command in the folder, and its exit status."""
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    return f"{done.stdout}{done.stderr}\nexit {done.returncode}"


@pytest.mark.slow
def test_the_tests_of_the_page_pass(project: Path) -> None:
    output = run(project, "-m", "pytest", "-v", "-p", "no:cacheprovider")
    assert "test_the_agent_does_what_the_reference_says[refund_damaged] PASSED" in output
    assert "4 passed" in output
    assert output.endswith("exit 0")


@pytest.mark.slow
def test_the_tests_of_the_page_pass_in_several_processes(project: Path) -> None:
    output = run(project, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider")
    assert "4 passed" in output
    assert output.endswith("exit 0")


@pytest.mark.slow
def test_the_failure_on_the_page_is_what_a_wrong_amount_gives(project: Path) -> None:
    (project / "agent.py").write_text(AGENT.replace("amount=59.9)", "amount=60)"))
    output = run(project, "-m", "pytest", "-p", "no:cacheprovider", "test_refund.py")
    failed = [line[8:] for line in output.splitlines() if line.startswith("E  ")]
    shown = "\n".join(failed).replace("AssertionError: ", "")
    assert re.sub(r"trace \w+", "trace", shown) == re.sub(r"trace \w+", "trace", FAILURE.rstrip())


@pytest.mark.slow
def test_the_functions_of_the_page_work_with_the_exporter_of_the_other_page(project: Path) -> None:
    agent = (
        f"{EXPORTER}\nfrom pathgauge import ScenarioSpanProcessor, scenario\n"
        "from agent import refund\n"
        "provider.add_span_processor(ScenarioSpanProcessor())\n"
        "with scenario('refund_damaged'):\n    refund('My parcel!')\n"
        "provider.shutdown()\n"
    )
    (project / "traced.py").write_text(agent)
    assert run(project, "traced.py") == "\nexit 0"
    (project / "traces.jsonl").rename(project / "trace.binpb")
    assert run(project, "script.py") == "\nexit 0"
