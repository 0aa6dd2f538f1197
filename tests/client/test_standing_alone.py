"""The client can be copied into a service that has OpenTelemetry but not pathgauge."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from pathgauge.collector import client

CLIENT = Path(client.__file__)
PROBE = """
import json, sys
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import SpanProcessor
before = set(sys.modules)
import copied
packages = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(packages - sys.stdlib_module_names)))
"""


def test_a_copy_imports_only_opentelemetry_and_the_standard_library(tmp_path: Path) -> None:
    shutil.copy(CLIENT, tmp_path / "copied.py")
    run = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == ["copied"]


def test_the_installed_client_imports_no_other_module_of_pathgauge() -> None:
    probe = (
        "import sys, pathgauge.collector.client; print(*sorted(name for name in sys.modules if"
        " name.startswith('pathgauge')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=CLIENT.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["pathgauge", "pathgauge.collector", "pathgauge.collector.client"]
