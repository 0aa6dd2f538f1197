"""docs/releases.md shows what the example of a shadow prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.repository import DOCS, ROOT
from support.running import PATHGAUGE

PAGE = (DOCS / "releases.md").read_text(encoding="utf-8")
[CONSOLE] = re.findall(r"^```console\n(\$ python past\.py .*?)^```", PAGE, re.M | re.S)
[SHOWN] = re.findall(r"^```yaml\n(criteria:\n.*?shadow:\n.*?)^```", PAGE, re.M | re.S)
EXAMPLE = ROOT / "examples" / "shadow"


@pytest.mark.slow
def test_the_verdict_of_the_example_is_what_the_commands_print(tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "shadow")
    *commands, last = re.findall(r"^\$ ((?:.*\\\n)*.*)", CONSOLE, re.M)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for command in commands:
        subprocess.run(command, shell=True, cwd=folder, env={"PATH": path}, check=True)
    name, *words = last.split()
    assert name == PATHGAUGE.name
    done = subprocess.run(
        [PATHGAUGE, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    printed = CONSOLE[CONSOLE.index(last) + len(last) :]
    assert aligned(done.stdout) == aligned(printed)


def test_the_page_shows_the_configuration_of_the_example() -> None:
    written = yaml.safe_load((EXAMPLE / "pathgauge.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(SHOWN).items() <= written.items()


def aligned(text: str) -> list[list[str]]:
    """The cells of each line; a terminal aligns them with blanks."""
    lines = [re.split(r"\t| {2,}", line.rstrip()) for line in text.splitlines()]
    return [line for line in lines if line != [""]]
